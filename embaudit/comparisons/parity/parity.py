"""Runs a comparison of two functions, and says what follows from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.comparisons.parity.asking import AskedOtherwise, ask_otherwise
from embaudit.comparisons.parity.compare import KindDifference, compare_kind, rounding_of
from embaudit.comparisons.parity.findings import ROUNDED, findings_of, is_apart, is_rounding
from embaudit.comparisons.parity.other import OtherCheckpoint, rows_of
from embaudit.comparisons.parity.texts import texts_by_kind
from embaudit.endpoint.client import Answers, Endpoint
from embaudit.errors import one_line
from embaudit.finding import Finding, worst_first

if TYPE_CHECKING:
    from embaudit.comparisons.parity.corpora import CorpusDifference
    from embaudit.comparisons.parity.explain import Explanation
    from embaudit.measures.quality.material import Material

Verdict = Literal["the same function", "another function", "could not be compared"]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class ParityReport:
    """What came of a comparison.

    Attributes:
        checkpoint, other: as the user named them.
        kinds: each text alone, by kind.
        asked: an endpoint asked in other ways.
        explanation: None if there is nothing to explain.
        corpora: what both make of pairs and queries.
    """

    checkpoint: str
    checkpoint_id: str
    other: str
    kinds: tuple[KindDifference, ...]
    asked: tuple[AskedOtherwise, ...] = ()
    explanation: Explanation | None = None
    corpora: tuple[CorpusDifference, ...] = ()
    dimensions: tuple[int, int] = (0, 0)
    seconds: float = 0.0
    requests: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> Verdict:
        if any(finding.level == "problem" for finding in self.findings):
            return "another function"
        has_vectors = any(np.isfinite(kind.distances).any() for kind in self.kinds)
        return "the same function" if has_vectors else "could not be compared"

    @property
    def line(self) -> str:
        """The verdict in one line."""
        if self.verdict == "could not be compared":
            return "Could not be compared: no text has a vector on both sides."
        if self.verdict == "the same function":
            looks = sum(finding.level == "look" for finding in self.findings)
            more = f"; look at {looks} thing{'s' if looks > 1 else ''}" if looks else ""
            return f"The same function{' in lower precision' if self.is_rounded else ''}{more}."
        cause = next(finding for finding in self.by_level() if finding.level == "problem")
        return f"Another function: {cause.sentence[0].lower()}{cause.sentence[1:]}"

    @property
    def is_rounded(self) -> bool:
        """Whether they differ by no more, and everywhere by about as much, as half precision rounds."""
        return any(finding.name == ROUNDED for finding in self.findings)

    def by_level(self) -> list[Finding]:
        return worst_first(self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "checkpoint": self.checkpoint,
            "checkpoint_id": self.checkpoint_id,
            "other": self.other,
            "verdict": self.verdict,
            "line": self.line,
            "dimensions": list(self.dimensions),
            "explanation": None if self.explanation is None else self.explanation.as_json(),
            "findings": [vars(finding) for finding in self.by_level()],
            "kinds": [kind.as_json() for kind in self.kinds],
            "asked": [asked.as_json() for asked in self.asked],
            "corpora": [corpus.as_json() for corpus in self.corpora],
            "requests": self.requests,
            "seconds": round(self.seconds, 1),
        }


def compare_with(
    checkpoint: Checkpoint,
    other: Endpoint | OtherCheckpoint,
    name: str,
    material: Material,
    *,
    with_explanation: bool = True,
    progress: Progress = lambda what: None,
) -> ParityReport:
    """Compare a checkpoint with what serves it.

    Args:
        checkpoint: loaded in float32.
        other: an endpoint, or another checkpoint's vectors.
        name: of the other.
        material: pairs and queries that both encode.

    Raises:
        EndpointError: if the endpoint does not answer.
    """
    # A passport is verified with what else is here, and without torch.
    from embaudit.comparisons.parity.corpora import compare_on
    from embaudit.comparisons.parity.explain import explain

    start = time.monotonic()
    own = rows_of(checkpoint)
    texts = texts_by_kind(checkpoint)
    progress("texts of every kind")
    ours = {kind: own(some) for kind, some in texts.items()}
    theirs = asked_alone(other, texts)
    dimension = theirs["plain"].vectors.shape[1]
    kinds = tuple(
        compare_kind(kind, some, ours[kind], theirs[kind].vectors, theirs[kind].failures)
        for kind, some in texts.items()
    )
    asked: tuple[AskedOtherwise, ...] = ()
    if isinstance(other, Endpoint) and dimension:
        progress("the same texts in other ways")
        batch, alone = _batch(texts, theirs)
        asked = tuple(ask_otherwise(other, checkpoint, batch, alone, rounding_of(kinds))) if batch else ()
    is_different = dimension != checkpoint.dimension or (
        any(is_apart(kind) for kind in kinds) and not is_rounding(kinds)
    )
    explanation = None
    failed: tuple[Finding, ...] = ()
    # What is another vector the next time is not explained by one reading.
    if with_explanation and is_different and dimension and all(one.is_repeatable for one in asked):
        progress("what explains the difference")
        try:
            explanation = explain(checkpoint, texts, {kind: found.vectors for kind, found in theirs.items()})
        except Exception as error:  # a model of a stranger, used as nobody uses it, may raise anything
            reason = f"The search for the reason failed: {one_line(error)}"
            failed = (Finding("not measured", reason, name="explanation"),)
    progress("pairs and queries")
    corpora = tuple(compare_on(material, own, lambda some: other.encode(some).vectors))
    return ParityReport(
        checkpoint=str(checkpoint.resolved.ref),
        checkpoint_id=checkpoint.checkpoint_id,
        other=name,
        kinds=kinds,
        asked=asked,
        explanation=explanation,
        corpora=corpora,
        dimensions=(checkpoint.dimension, dimension),
        findings=(*findings_of(kinds, (checkpoint.dimension, dimension), explanation, asked), *failed),
        seconds=time.monotonic() - start,
        requests=other.requests if isinstance(other, Endpoint) else 0,
    )


def asked_alone(
    other: Endpoint | OtherCheckpoint, texts: Mapping[str, Sequence[str]], at_once: int = 1
) -> dict[str, Answers]:
    """The other's vectors of each text by itself."""
    if not isinstance(other, Endpoint):
        return {kind: other.encode(some) for kind, some in texts.items()}
    flat = [text for some in texts.values() for text in some]
    answers = other.encode(flat, most=1, at_once=at_once)
    found, start = {}, 0
    for kind, some in texts.items():
        places = range(start, start + len(some))
        failures = {place - start: answers.failures[place] for place in places if place in answers.failures}
        found[kind] = Answers(answers.vectors[start : start + len(some)], failures)
        start += len(some)
    return found


def _batch(texts: Mapping[str, Sequence[str]], theirs: Mapping[str, Answers]) -> tuple[list[str], np.ndarray]:
    """Distinct texts of all kinds that have a vector alone: two of each kind first."""
    chosen: dict[str, np.ndarray] = {}
    for place in (0, 1):
        for kind, some in texts.items():
            if place < len(some) and np.isfinite(theirs[kind].vectors[place]).all():
                chosen.setdefault(some[place], theirs[kind].vectors[place])
    return list(chosen), np.array(list(chosen.values()))
