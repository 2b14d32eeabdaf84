"""Runs a comparison of two functions, and says what follows from it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from embaudit.declared.document import Page
from embaudit.declared.rule import Finding, Level, Rule
from embaudit.embedders.function import Answers, EmbeddingFunction, roles_to_compare, taken_alike
from embaudit.questions.parity.asking import AGAIN, BatchingCheck, ask_as, ask_otherwise, confirmed, still_the_same
from embaudit.questions.parity.clients import has_headers, has_other_ids
from embaudit.questions.parity.compare import (
    ROLES,
    KindDifference,
    compare_kind,
    is_apart,
    moved,
    rounding_of,
    texts_by_kind,
)
from embaudit.questions.parity.findings import ROUNDED, asked_for, findings_of
from embaudit.questions.parity.networks import padding_so_far
from embaudit.questions.parity.page import parity_page
from embaudit.questions.parity.requested import (
    NOT_NORMALISED,
    FirstDimensions,
    as_cut,
    cut_alike,
    ignored_dimensions,
    is_cut_alone,
)
from embaudit.questions.parity.without_vector import SteadyControl, no_vector_of_first, requests_of
from embaudit.questions.report import AnswerFigure, Report
from embaudit.words.errors import EmbauditError, one_line
from embaudit.words.sentences import within

if TYPE_CHECKING:
    from embaudit.checkpoint import Checkpoint, TextKind
    from embaudit.measures.quality.material import Material
    from embaudit.questions.parity.corpora import CorpusDifference
    from embaudit.questions.parity.explain import Explanation

Verdict = Literal["the same function", "another function", "could not be compared"]
Progress = Callable[[str], None]
EXPLANATION = Rule("explanation", reason="`not measured`: the search for the reason of a difference failed")


@dataclass(frozen=True)
class ParityReport(Report):
    """What came of a comparison.

    Attributes:
        checkpoint, other: as the user named them; the first is the one whose inside is known, if one's is.
        checkpoint_id: empty if the first may change behind its name.
        inside: whether the first one's inside is known: only then can a difference be explained.
        kinds: each text alone, by kind.
        asked: an endpoint asked in other ways.
        explanation: of texts that are asked for as nothing in particular; None if there is nothing to explain.
        in_roles: of those that are asked for as queries, or as documents.
        corpora: what both make of pairs and queries.
        reach: up to where it was tried, as the end of "the same function"; empty if that is all that is declared.
    """

    levels: ClassVar[Mapping[str, Level]] = {
        "the same function": "ok",
        "another function": "problem",
        "could not be compared": "not measured",
    }

    checkpoint: str
    checkpoint_id: str
    other: str
    inside: bool = field(default=True, kw_only=True)
    kinds: tuple[KindDifference, ...]
    asked: tuple[BatchingCheck, ...] = ()
    explanation: Explanation | None = None
    in_roles: Mapping[str, Explanation] = field(default_factory=dict)
    corpora: tuple[CorpusDifference, ...] = ()
    dimensions: tuple[int, int] = (0, 0)
    seconds: float = 0.0
    requests: int = 0
    reach: str = field(default="", kw_only=True)
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
            return f"The same function{' in lower precision' if self.is_rounded else ''}{self.reach}{self.and_look}."
        cause = next(finding for finding in self.by_level() if finding.level == "problem")
        return f"Another function: {within(cause.sentence)}"

    @property
    def differs(self) -> tuple[str, ...]:
        """What explains the difference, each as the end of "it …"; of queries or documents alone behind that word."""
        plainly = () if self.explanation is None else self.explanation.sentences
        alone = {role: one.sentences for role, one in self.in_roles.items() if one.sentences != plainly}
        return (*plainly, *(f"{asked_for(role)}: {said}" for role, some in alone.items() for said in some))

    def causes(self) -> tuple[str, ...]:
        return self.differs

    def left_on(self, kind: str) -> float:
        """The largest 1 − cosine that the explanation leaves on a kind; NaN if it has none."""
        if kind in self.in_roles:
            return self.in_roles[kind].worst
        return float("nan") if self.explanation is None else self.explanation.left.get(kind, float("nan"))

    @property
    def is_rounded(self) -> bool:
        """Whether they differ by no more, and everywhere by about as much, as half precision rounds."""
        return any(finding.name == ROUNDED.name for finding in self.findings)

    def page(self) -> Page:
        return parity_page(self)

    @property
    def compared(self) -> list[KindDifference]:
        """Kinds of which a text could be compared."""
        return [kind for kind in self.kinds if np.isfinite(kind.distances).any()]

    def answer_figures(self) -> Iterator[AnswerFigure]:
        yield AnswerFigure("kinds_apart", sum(map(is_apart, self.compared)), of=len(self.compared))
        for kind in self.compared:
            yield AnswerFigure("worst", kind.worst, kind.kind, of=len(kind.texts))
        yield AnswerFigure("requests", self.requests)

    def content(self) -> dict[str, Any]:
        return {
            "checkpoint": self.checkpoint,
            "checkpoint_id": self.checkpoint_id,
            "other": self.other,
            "reach": self.reach.strip(),
            "dimensions": list(self.dimensions),
            "explanation": None if self.explanation is None else self.explanation.as_json(),
            "in_roles": {role: one.as_json() for role, one in self.in_roles.items()},
            "kinds": [kind.as_json() for kind in self.kinds],
            "asked": [asked.as_json() for asked in self.asked],
            "corpora": [corpus.as_json() for corpus in self.corpora],
            "requests": self.requests,
        }


def compare_with(
    first: EmbeddingFunction,
    second: EmbeddingFunction,
    material: Material,
    *,
    with_explanation: bool = True,
    progress: Progress = lambda what: None,
) -> ParityReport:
    """Compare two functions. The one whose inside is known, a checkpoint in float32, is what the other is held against.

    Args:
        material: pairs and queries that both encode.

    Raises:
        EmbauditError: if one of them gives no vectors at all.
    """
    # A passport is verified with what else is here, and without torch.
    from embaudit.questions.change.declared import compare_configs, said_of
    from embaudit.questions.parity.corpora import compare_on
    from embaudit.questions.parity.explain import Explanation, explain
    from embaudit.questions.parity.ranges import Reach, ask_many_at_once, try_long_texts
    from embaudit.questions.parity.roles import as_named, explain_roles, left_on_fresh_texts, told_by_one

    start = time.monotonic()
    known, other = (second, first) if first.checkpoint is None and second.checkpoint is not None else (first, second)
    known, by_name = as_named(known, other)
    known, other = cut_alike(*taken_alike(known, other))
    checkpoint = known.checkpoint
    roles = roles_to_compare(known, other)
    texts = texts_by_kind(checkpoint, roles=roles)
    progress("texts of every kind")
    before = known.requests, other.requests
    ours, theirs = asked_alone(known, texts), asked_alone(other, texts)
    if isinstance(known, FirstDimensions) and theirs["plain"].vectors.shape[1] > known.kept:
        # It gives all of them, whatever it is asked for: that is said, and all are compared.
        known = known.function
        ours = asked_alone(known, texts)
    logs = [
        requests_of(texts, answers, first + 1, function.requests - first) if function.may_depend_on_asking else []
        for function, answers, first in zip((known, other), (ours, theirs), before, strict=True)
    ]
    dimensions = tuple(found["plain"].vectors.shape[1] for found in (ours, theirs))
    kinds = tuple(
        compare_kind(kind, some, ours[kind].vectors, theirs[kind].vectors, theirs[kind].failures)
        for kind, some in texts.items()
    )
    asked: tuple[BatchingCheck, ...] = ()
    if other.may_depend_on_asking and dimensions[1]:
        progress("the same texts in other ways")
        batch, alone = _batch(texts, theirs)
        rounding = rounding_of([kind for kind in kinds if kind.kind not in ROLES])
        asked = tuple(ask_otherwise(other, checkpoint, batch, alone, rounding, logs[1])) if batch else ()
        if checkpoint is not None and any(one.how == AGAIN and not one.is_repeatable for one in asked):
            asked = tuple(_because_of_padding(checkpoint, texts, theirs, one) for one in asked)
        if asked and not any(one.is_off for one in asked):
            control = SteadyControl(other, logs[1], rounding)
            many = confirmed(lambda: ask_many_at_once(other, batch, alone, rounding), control)
            asked += () if many is None else (many,)
        for kind in kinds:
            if kind.kind in ROLES and other.alike(ROLES[kind.kind]) != "text":
                asked += tuple(
                    ask_as(other, ROLES[kind.kind], kind.texts, theirs[kind.kind].vectors, rounding_of([kind]))
                )
    apart = moved(kinds)
    is_different = dimensions[0] != dimensions[1] or bool(apart)
    explanation: Explanation | None = None
    in_roles: dict[str, Explanation] = {}
    failed: tuple[Finding, ...] = ()

    def ask(some: Sequence[str], role: TextKind) -> np.ndarray:
        return _asked_as(other, some, role, dimensions[1], 1).vectors

    # What is another vector the next time is not explained by one reading.
    is_steady = all(one.is_repeatable for one in asked)
    if with_explanation and checkpoint is not None and is_different and dimensions[1] and is_steady:
        progress("what explains the difference")
        try:
            plainly = {kind: some for kind, some in texts.items() if kind not in ROLES}
            vectors = {kind: answers.vectors for kind, answers in theirs.items()}
            own = {kind: answers.vectors for kind, answers in ours.items()}
            if isinstance(known, FirstDimensions) and is_cut_alone(kinds, own, vectors):
                left = {kind.kind: kind.worst for kind in kinds if kind.kind in plainly}
                explanation = Explanation((NOT_NORMALISED,), left)
            elif not apart or any(kind.kind in plainly for kind in apart):
                explanation = explain(checkpoint, plainly, {kind: vectors[kind] for kind in plainly})
                explanation = left_on_fresh_texts(explanation, ask)
            differing = apart if dimensions[0] == dimensions[1] else kinds
            if explanation is None or NOT_NORMALISED not in explanation.differs:
                in_roles = explain_roles(checkpoint, texts, differing, vectors, explanation, ask)
        except Exception as error:  # a model of a stranger, used as nobody uses it, may raise anything
            reason = f"The search for the reason failed: {one_line(error)}"
            failed = (EXPLANATION.finding("not measured", reason, advice="Report it, with the names of both."),)
    declared = ""
    if checkpoint is not None and other.checkpoint is not None and is_different:
        declared = said_of(compare_configs(other.checkpoint, checkpoint), "checkpoint")
    reach, long = Reach(), list[Finding]()
    if checkpoint is not None and not is_different and is_steady:
        progress("texts up to the declared limit")
        reach, long = try_long_texts(checkpoint, other, is_asked=other.may_depend_on_asking)
    # A server that is asked got the texts as they are.
    if explanation is not None and checkpoint is not None and other.kind not in ("endpoint", "checkpoint"):
        rows = {kind: answers.vectors for kind, answers in theirs.items()}
        is_foreign = has_other_ids(checkpoint, texts, rows)
        explanation = replace(explanation, has_headers=has_headers(kinds), has_other_ids=is_foreign)
    if isinstance(known, FirstDimensions):
        explanation = None if explanation is None else as_cut(explanation)
        in_roles = {role: as_cut(one) for role, one in in_roles.items()}
    one_tells = tuple(told_by_one(known, other, [_by_text(texts, answers) for answers in (ours, theirs)]))
    progress("pairs and queries")
    corpora = tuple(compare_on(material, known, other))
    if is_steady:
        ended = [still_the_same(function, log) for function, log in zip((known, other), logs, strict=True)]
        asked += tuple(one for one in ended if one is not None)
    if any(one.how == AGAIN and not one.is_repeatable for one in asked):
        # What was found rests on vectors that do not stay.
        explanation, in_roles, corpora = None, {}, ()
    return ParityReport(
        checkpoint=known.name,
        checkpoint_id=known.identity,
        other=other.name,
        inside=checkpoint is not None,
        kinds=kinds,
        asked=asked,
        explanation=explanation,
        in_roles=in_roles,
        corpora=corpora,
        dimensions=(dimensions[0], dimensions[1]),
        reach=reach.said,
        findings=(
            *ignored_dimensions(known, dimensions[0]),
            *ignored_dimensions(other, dimensions[1]),
            *findings_of(kinds, (dimensions[0], dimensions[1]), explanation, asked, known.kind, in_roles, declared),
            *(no_vector_of_first(kinds, ours, theirs, known.name) if checkpoint is None else ()),
            *long,
            *by_name,
            *one_tells,
            *failed,
        ),
        seconds=time.monotonic() - start,
        requests=known.requests + other.requests,
    )


def _because_of_padding(
    checkpoint: Checkpoint, texts: Mapping[str, Sequence[str]], theirs: Mapping[str, Answers], asked: BatchingCheck
) -> BatchingCheck:
    """What is said of a text that is asked again, if it is padding that grew meanwhile."""
    if asked.how != AGAIN or asked.is_repeatable:
        return asked
    plainly = [kind for kind in texts if kind not in ROLES]
    in_order = [text for kind in plainly for text in texts[kind]]
    rows = np.concatenate([theirs[kind].vectors for kind in plainly])
    cause = padding_so_far(checkpoint, in_order, rows, asked.rounding)
    return replace(asked, cause=cause) if cause else asked


def _by_text(texts: Mapping[str, Sequence[str]], answers: Mapping[str, Answers]) -> dict[str, np.ndarray]:
    """A function's vectors of texts that are asked for as nothing in particular."""
    plainly = [kind for kind in texts if kind not in ROLES]
    return {text: row for kind in plainly for text, row in zip(texts[kind], answers[kind].vectors, strict=True)}


def asked_alone(
    function: EmbeddingFunction, texts: Mapping[str, Sequence[str]], at_once: int = 1
) -> dict[str, Answers]:
    """A function's vectors of each text by itself, by kind, in the order of the texts.

    Texts come first: if it gives no vector of these, it gives none at all, and that is an error. That it gives none of
    queries is an answer.
    """
    found: dict[str, Answers] = {}
    plainly = {kind: some for kind, some in texts.items() if kind not in ROLES}
    answers = function.encode([text for some in plainly.values() for text in some], most=1, at_once=at_once)
    start = 0
    for kind, some in plainly.items():
        places = range(start, start + len(some))
        failures = {place - start: answers.failures[place] for place in places if place in answers.failures}
        found[kind] = Answers(answers.vectors[start : start + len(some)], failures)
        start += len(some)
    for kind in (kind for kind in texts if kind in ROLES):
        found[kind] = _asked_as(function, texts[kind], ROLES[kind], answers.vectors.shape[1], at_once)
    return {kind: found[kind] for kind in texts}


def _asked_as(function: EmbeddingFunction, texts: Sequence[str], role: TextKind, width: int, at_once: int) -> Answers:
    """Vectors of texts in a role; of another dimension than a text's, they are none."""
    try:
        answers = function.encode(texts, role, most=1, at_once=at_once)
    except EmbauditError as error:
        return Answers(
            np.full((len(texts), width), np.nan), dict.fromkeys(range(len(texts)), error.happened.rstrip("."))
        )
    given = answers.vectors.shape[1]
    if not width or given == width:
        return answers
    why = f"a vector of {given} numbers, where texts have {width}"
    failures = {**dict.fromkeys(range(len(texts)), why), **answers.failures}
    return Answers(np.full((len(texts), width), np.nan), failures)


def _batch(texts: Mapping[str, Sequence[str]], theirs: Mapping[str, Answers]) -> tuple[list[str], np.ndarray]:
    """Distinct texts of all kinds that have a vector alone: two of each kind first."""
    chosen: dict[str, np.ndarray] = {}
    for place in (0, 1):
        for kind, some in texts.items():
            if kind not in ROLES and place < len(some) and np.isfinite(theirs[kind].vectors[place]).all():
                chosen.setdefault(some[place], theirs[kind].vectors[place])
    return list(chosen), np.array(list(chosen.values()))
