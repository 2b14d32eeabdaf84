"""Finding: are vectors of length 1, and if not, what does a ranking by dot product lose that takes them for it?

One rule for checkpoints and for served models. Vectors of any length are sound where they are compared as the
checkpoint was trained: by cosine, which divides lengths out, or by dot product, which they are part of. Files say
which, or not; an endpoint says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.settings import read_settings
from embaudit.declared.rule import Finding, Rule, number
from embaudit.measures.quality.measured import Measured, MeasuredCollection, MeasuredPairs, as_json
from embaudit.measures.quality.scores import ResampledScore
from embaudit.words.estimate import with_interval

UNIT = 2**-7
LENGTHS = Rule(
    "norm",
    "lengths of the vectors; scores by dot product minus those by cosine",
    look_if=f"lengths differ from 1 by more than {number(UNIT)}, and cosine is declared, or nothing, or "
    "Normalize (in modules.json, or on the model card); of a served model, that declares nothing, also where all "
    "numbers are whole",
    reason="rounding in half precision stays below 1e-3; a length that bfloat16 divides by is rounded to 8 bits. Such "
    "vectors are sound where cosine is used, so that it is never a problem: the finding says what a ranking by dot "
    "product would change, with its interval. all-MiniLM-L6-v2 without its Normalize: nDCG@10 by −.10 [−.14, −.06] on "
    "the sample. `ok` if the dot product or a distance is declared (`similarity_fn_name`): lengths are part of what "
    "was trained. Whole numbers are codes, with which an index must be told to work",
)
# By which a model card normalises: the architecture that sentence-transformers writes, its team's tables, and code.
CARD_NORMALISES = re.compile(
    r"^\s*\(\d+\): Normalize\(|normali[sz]ed embeddings[^|\n]*\|\s*(?:yes|true)\b"
    r"|F\.normalize\(|normalize_embeddings=True",
    re.IGNORECASE | re.MULTILINE,
)
ADVICE_FOR_FILES = (
    "Set every index and server to cosine, or add the module to the checkpoint: model.append(Normalize()), "
    "model.save_pretrained(OTHER)."
)
ADVICE_FOR_ENDPOINTS = "Set the index to cosine, or normalise vectors before they are stored and asked for."


@dataclass(frozen=True)
class Declared:
    """What is declared about lengths.

    Attributes:
        similarity: by which vectors are compared, if a file says so.
        normalises: whether modules.json lists Normalize.
        card_normalises: whether the model card normalises vectors.
        is_served: whether it is an endpoint, which declares nothing.
    """

    similarity: str = ""
    normalises: bool = False
    card_normalises: bool = False
    is_served: bool = False

    @classmethod
    def by(cls, checkpoint: Checkpoint) -> Declared:
        folder = checkpoint.resolved.folder
        return cls(
            str(read_settings(folder).get("similarity_fn_name") or "").lower(),
            any(module.kind == "Normalize" for module in checkpoint.recipe.modules),
            _says_so(folder / "README.md"),
        )

    @property
    def by_lengths(self) -> str:
        """The similarity that lengths are part of, if one is declared."""
        if self.similarity.startswith("dot"):
            return "the dot product"
        names = {"euclidean": "the Euclidean distance", "manhattan": "the Manhattan distance"}
        return names.get(self.similarity, "")

    @property
    def said(self) -> str:
        """The declaration as part of a sentence."""
        if self.is_served:
            return "an endpoint does not say how they are to be compared"
        if self.normalises:
            return "though modules.json declares Normalize"
        if self.card_normalises:
            return "though its model card normalises them"
        if self.similarity:
            return f"and it declares {self.by_lengths or 'cosine'} (similarity_fn_name)"
        return "and no file says how they are to be compared (similarity_fn_name, Normalize)"


def length_findings(
    vectors: Sequence[np.ndarray], measured: Sequence[Measured], declared: Declared, figures: dict[str, Any]
) -> list[Finding]:
    """One finding, or none without a vector.

    Args:
        vectors: (n, D) each, as served; besides those of ``measured``.
        measured: what a ranking is measured on.
        figures: gets the lengths and what ranking by dot product changes, by data set.
    """
    rows = [*vectors, *(side.served for one in measured for side in _sides(one))]
    lengths = np.concatenate([np.linalg.norm(part.astype(np.float64), axis=1) for part in rows] or [np.empty(0)])
    lengths = lengths[np.isfinite(lengths) & (lengths > 0)]
    if not len(lengths):
        return []
    least, most = float(lengths.min()), float(lengths.max())
    figures["lengths"] = {"least": least, "most": most}
    if max(abs(least - 1), abs(most - 1)) <= UNIT:
        span = f"{least:.4g} to {most:.4g}" if round(least, 3) != round(most, 3) else f"{most:.4g}"
        return [LENGTHS.finding("ok", f"Vectors have length {span}: their dot product is the cosine.", value=most)]
    gains = {one.name: _of_dot_product(one) for one in _told_by(measured)}
    figures["lengths"]["dot_product"] = {name: as_json(gain) for name, gain in gains.items()}
    is_whole = all(bool((part[np.isfinite(part)] == np.round(part[np.isfinite(part)])).all()) for part in rows)
    return [_of(least, most, gains, declared, _told_by(measured), is_whole=is_whole)]


def _of(
    least: float,
    most: float,
    gains: dict[str, ResampledScore],
    declared: Declared,
    measured: Sequence[Measured],
    *,
    is_whole: bool,
) -> Finding:
    span = f"Vectors have lengths from {least:.4g} to {most:.4g}"
    is_contradicted = declared.normalises or declared.card_normalises
    if declared.by_lengths and not is_contradicted:
        instead = _by_data(measured, {name: _reversed(gain) for name, gain in gains.items()})
        is_dot = declared.similarity.startswith("dot")
        return LENGTHS.finding(
            "ok",
            f"{span}, which count: it declares {declared.by_lengths} (similarity_fn_name)."
            + (f" Ranked by cosine instead, it changes {instead}." if instead and is_dot else ""),
            value=most,
        )
    by_data = _by_data(measured, gains)
    changes = f"Ranked by dot product, it changes {by_data}." if by_data else "Their dot product is not the cosine."
    advice = ADVICE_FOR_ENDPOINTS if declared.is_served else ADVICE_FOR_FILES
    meaning = (
        "Compared by cosine it is as good as its scores. What takes dot products for cosines ranks by length, too."
    )
    if is_whole:
        meaning = "They are int8 or binary codes, with which an index must be told to work."
        advice = "Check that the index compares them as such."
    elif is_contradicted:
        meaning = "What takes dot products for cosines, as the declaration allows, ranks by length, too."
        advice = (
            "If dimensions are cut (truncate_dim) or a module follows Normalize, normalise again after it."
            if declared.normalises
            else "The module was lost, most likely when it was saved. " + ADVICE_FOR_FILES
        )
    elif gains and all((gain.value or 0.0) >= 0 for gain in gains.values()):
        meaning = (
            "Ranking by dot product loses nothing here; scores are still no cosines, and cut-offs for cosines do not "
            "fit them."
        )
        if not declared.is_served:
            advice = 'If it was trained for the dot product, declare it ("similarity_fn_name": "dot"); else: ' + advice
    what = "It gives whole numbers: vectors" if is_whole else "Vectors"
    said = f"{'; ' if declared.is_served else ', '}{declared.said}"
    return LENGTHS.finding("look", f"{what}{span.removeprefix('Vectors')}{said}. {changes}", meaning, advice, most)


def _by_data(measured: Sequence[Measured], gains: Mapping[str, ResampledScore]) -> str:
    """``nDCG@10 by −.10 [−.14, −.06] on the 90 queries of sample``."""
    return ", ".join(
        f"{one.metric} by {with_interval(gains[one.name].estimate(), signed=True)} on {one.name}" for one in measured
    )


def _told_by(measured: Sequence[Measured]) -> list[Measured]:
    """Judged collections, whose rankings lengths change; without any, scored pairs."""
    collections = [one for one in measured if isinstance(one, MeasuredCollection)]
    return list(collections or measured)


def _of_dot_product(one: Measured) -> ResampledScore:
    """The score by dot product, minus that by cosine."""
    by_dot, by_cosine = (one.score(one.similarities(similarity=name)) for name in ("dot", "cosine"))
    return by_dot.minus(by_cosine)


def _reversed(gain: ResampledScore) -> ResampledScore:
    return ResampledScore(-gain.value, -gain.resampled)


def _sides(one: Measured) -> tuple[Any, Any]:
    return (one.firsts, one.seconds) if isinstance(one, MeasuredPairs) else (one.queries, one.documents)


def _says_so(card: Path) -> bool:
    try:
        return bool(CARD_NORMALISES.search(card.read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return False
