"""Fewer dimensions than a model has: both sides are cut, and what came must be what was asked for.

The numbers that vectors are given in: fractions or their bytes, whole numbers (int8), signs, or packed bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from embaudit.corpora.downstream import unit_rows
from embaudit.declared.rule import Finding, Rule
from embaudit.embedders.function import Answers, EmbeddingFunction, WrappedFunction
from embaudit.questions.parity.compare import HALF, HALF_LENGTH, KindDifference

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind
    from embaudit.questions.parity.explain import Explanation


# The rule of what is said where all dimensions come.
IGNORED = Rule(
    "dimensions_ignored",
    problem_if="it gives another number of dimensions than `--dimensions` asks for",
    reason="an index of the size that was asked for refuses its vectors, or keeps a part of them",
)
# How an explanation says so where nobody asked for it.
KEEPS, NORMALISES = "keeps the first ", "normalises its vectors"
NOT_NORMALISED = "cuts its vectors and does not normalise them again"


class FirstDimensions(WrappedFunction):
    """Another function's first dimensions, normalised again if its vectors have length 1."""

    def __init__(self, function: EmbeddingFunction, dimensions: int) -> None:
        super().__init__(function)
        self.kept = self.dimension = dimensions

    @property
    def live(self) -> EmbeddingFunction:
        return FirstDimensions(self.function.live, self.kept)

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        answers = self.function.encode(texts, role, most=most, at_once=at_once)
        return Answers(first_of_rows(answers.vectors, self.kept), answers.failures)


def first_of_rows(rows: np.ndarray, dimensions: int) -> np.ndarray:
    """(n, d) the first d numbers of rows; of unit vectors, unit vectors."""
    lengths = np.linalg.norm(np.asarray(rows, dtype=np.float64), axis=1)
    known = lengths[np.isfinite(lengths)]
    are_unit = len(known) and np.abs(known - 1).max() <= HALF_LENGTH
    first = np.asarray(rows, dtype=np.float64)[:, :dimensions]
    return unit_rows(first) if are_unit else first


def cut_alike(first: EmbeddingFunction, second: EmbeddingFunction) -> tuple[EmbeddingFunction, EmbeddingFunction]:
    """Both, one cut to as many dimensions as the other is asked for."""
    asked = [one.asked_dimensions for one in (first, second)]
    if (asked[0] is None) == (asked[1] is None):
        return first, second
    most = next(one for one in asked if one is not None)
    one, two = (
        FirstDimensions(each, most) if own is None and (each.dimension is None or each.dimension > most) else each
        for each, own in zip((first, second), asked, strict=True)
    )
    return one, two


def ignored_dimensions(function: EmbeddingFunction, given: int) -> Iterator[Finding]:
    """Whether a function gives another number of dimensions than it was asked for.

    Args:
        given: the dimensions of its vectors.
    """
    asked = function.asked_dimensions
    if asked is not None and given and given != asked:
        yield IGNORED.finding(
            "problem",
            f"Asked for {asked:,} dimensions, {function.name} gives {given:,}: the request is ignored.",
            "An index of the size that was asked for refuses its vectors, or keeps a part of them.",
            f"Leave --dimensions out, or have the server take the first {asked:,} numbers and normalise them.",
            float(given),
        )


def as_cut(told: Explanation) -> Explanation:
    """An explanation without what was asked for: the first dimensions, normalised again."""
    differs = tuple(one for one in told.differs if not one.startswith(KEEPS))
    return replace(told, differs=differs, length="" if told.length == NORMALISES else told.length)


def is_cut_alone(
    kinds: Sequence[KindDifference], ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]
) -> bool:
    """Whether vectors point where they should and are shorter, each by another share, as vectors that were cut are.

    Args:
        ours: (n, d) by kind, cut and normalised.
    """
    if not all(kind.worst <= HALF for kind in kinds if np.isfinite(kind.worst)):
        return False
    lengths = np.concatenate([np.linalg.norm(theirs[kind.kind], axis=1) for kind in kinds])
    unit = np.concatenate([np.linalg.norm(ours[kind.kind], axis=1) for kind in kinds])
    known = np.isfinite(lengths) & np.isfinite(unit) & (unit > 0) & (lengths > 0)
    return bool(
        known.any()
        and np.abs(unit[known] - 1).max() <= HALF_LENGTH
        and lengths[known].max() < 1
        and np.ptp(lengths[known]) > HALF_LENGTH * lengths[known].max()
    )


BYTE, SIGNED, FLOAT32 = 8, 128, 4
# What unit vectors are multiplied by before they are rounded, and how far from the best product a scale is looked for.
SCALES = (127.0, 128.0, 255.0, 100.0)
NEARBY, TRIED = 0.01, 41


@dataclass(frozen=True)
class Form:
    """How a vector's numbers are written.

    Attributes:
        said: what is different from fractions, as the end of "it …"; empty if nothing is.
        write: (n, D) fractions in this form, given the other's (n, D) vectors of the same texts for the scale.
        read: the other's rows, with packed bits unpacked.
    """

    said: str
    write: Callable[[np.ndarray, np.ndarray], np.ndarray]
    read: Callable[[np.ndarray], np.ndarray] = lambda rows: rows


FRACTIONS = Form("", lambda vectors, theirs: vectors)
SIGNS = Form(
    "gives signs (binary vectors) in place of numbers", lambda vectors, theirs: np.where(vectors > 0, 1.0, -1.0)
)
BITS = Form("gives bits (binary vectors) in place of numbers", lambda vectors, theirs: (vectors > 0).astype(float))


def forms_of(theirs: Mapping[str, np.ndarray], dimension: int) -> list[Form]:
    """The forms that the other's vectors by kind may have, the likeliest first.

    Args:
        dimension: of the checkpoint's vectors.
    """
    every = np.concatenate(list(theirs.values()))
    known = every[np.isfinite(every).all(axis=1)]
    if not len(known) or not (known == np.round(known)).all():
        return [FRACTIONS]
    if known.shape[1] * BYTE == dimension:
        packed = replace(BITS, said="gives bits packed into bytes (ubinary vectors)", read=_unpacked)
        if not (known < 0).any():
            return [packed]
        # As sentence-transformers' "binary" writes bytes; or the same bytes, read with a sign.
        less = replace(
            BITS,
            said="gives bits packed into bytes, minus 128 (binary vectors)",
            read=lambda rows: _unpacked(rows, SIGNED),
        )
        return [less, packed]
    if known.shape[1] == FLOAT32 * dimension and known.min() >= -SIGNED and known.max() < 2 * SIGNED:
        said = "gives the bytes of float32 as numbers: base64 that is decoded and not read as float32"
        return [Form(said, lambda vectors, theirs: vectors, _floats)]
    values = set(np.unique(known)[:3])
    if values <= {0.0, 1.0}:
        return [BITS]
    if values <= {-1.0, 1.0}:
        return [SIGNS]
    return [Form("gives whole numbers (int8 vectors) in place of fractions", _rounded)]


def _rounded(vectors: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Whole numbers at the scale at which most of them are the other's."""
    known = np.isfinite(vectors).all(axis=1) & np.isfinite(theirs).all(axis=1)
    ours, wanted = vectors[known], theirs[known]
    if not len(ours):
        return vectors
    products = np.einsum("nd,nd->n", ours, wanted) / np.einsum("nd,nd->n", ours, ours).clip(min=1e-30)
    nearest = float(np.median(products))
    scales = np.array([*SCALES, *(nearest * (1 + NEARBY * np.linspace(-1, 1, TRIED)))])
    alike = sum((np.rint(scales[:, None] * row) == same).sum(axis=1) for row, same in zip(ours, wanted, strict=True))
    best = scales[np.argmax(alike)]
    return np.asarray(np.round(vectors * best))


def _floats(rows: np.ndarray) -> np.ndarray:
    """(n, D) float32 of (n, 4·D) of their bytes; NaN where there is no vector."""
    is_known = np.isfinite(rows).all(axis=1)
    numbers = (np.nan_to_num(rows).astype(np.int64) % (2 * SIGNED)).astype(np.uint8)
    with np.errstate(all="ignore"):
        found = np.ascontiguousarray(numbers).view("<f4").astype(float)
    found[~is_known] = np.nan
    return found


def _unpacked(rows: np.ndarray, offset: int = 0) -> np.ndarray:
    """(n, 8·D) bits of (n, D) bytes; NaN where there is no vector."""
    is_known = np.isfinite(rows).all(axis=1)
    bits = bits_of_bytes(np.nan_to_num(rows), offset).astype(float)
    bits[~is_known] = np.nan
    return bits


def bits_of_bytes(rows: np.ndarray, offset: int) -> np.ndarray:
    """(n, 8·D) booleans of (n, D) bytes, signed or not, from each of which an offset was taken."""
    return np.unpackbits(((np.asarray(rows).astype(np.int64) + offset) % 256).astype(np.uint8), axis=1).astype(bool)
