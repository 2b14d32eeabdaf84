"""How far two functions are apart, by kind of text.

Which differences between two functions count, and which are rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.corpora.downstream.task import unit_rows
from embaudit.questions.parity.texts import ROLES

# 1 − cosine up to here is rounding in float32; up to the second, rounding in half precision.
SAME, HALF = 1e-5, 2e-3
# Of a vector's length, relative to the other's.
SAME_LENGTH = 1e-3
# The same in half precision: a length that bfloat16 divides by is rounded to 8 bits, and so is what comes out.
HALF_LENGTH = 2**-7
# 1 − cosine that an explanation may leave, and what the very reading leaves: one token of a long text leaves more.
LEFT, EXACT = 1e-4, 1e-9
# Half precision moves some kinds of text more than others, and none by so many times what it moves most of them.
UNEVEN = 100
# Of one text, two vectors in half precision may be so many times as far apart as one of them is from float32's.
SPREAD = 10


@dataclass(frozen=True)
class KindDifference:
    """Two functions on the texts of one kind.

    Attributes:
        distances: (n,) 1 − cosine, 0 where both are zeros; NaN where one of them has no vector.
        ratios: (n,) the other's length / the checkpoint's; NaN where one of them has no vector.
        is_known: (n,) whether the checkpoint has one.
        failures: why the other has no vector, by text.
        zeros: the texts of which the other's vector is zeros.
    """

    kind: str
    texts: tuple[str, ...]
    distances: np.ndarray
    ratios: np.ndarray
    is_known: np.ndarray
    failures: Mapping[int, str]
    zeros: frozenset[int] = frozenset()

    def is_zero(self, place: int) -> bool:
        """Whether the other's vector of a text is zeros."""
        return place in self.zeros

    @property
    def worst(self) -> float:
        """The largest 1 − cosine; NaN if no text has a vector on both sides."""
        return float(np.nanmax(self.distances)) if np.isfinite(self.distances).any() else float("nan")

    @property
    def median(self) -> float:
        return float(np.nanmedian(self.distances)) if np.isfinite(self.distances).any() else float("nan")

    @property
    def worst_text(self) -> str:
        """The text whose vectors are farthest apart."""
        return self.texts[int(np.nanargmax(self.distances))] if np.isfinite(self.distances).any() else ""

    def as_json(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "texts": len(self.texts),
            "median": _number(self.median),
            "worst": _number(self.worst),
            "worst_text": self.worst_text,
            "length_ratio": _number(float(np.nanmedian(self.ratios)) if np.isfinite(self.ratios).any() else np.nan),
            "failures": {self.texts[place]: reason for place, reason in self.failures.items()},
        }


def compare_kind(
    kind: str, texts: Sequence[str], ours: np.ndarray, theirs: np.ndarray, failures: Mapping[int, str]
) -> KindDifference:
    """Compare (n, D) vectors of the same texts; of another dimension, nothing but failures is compared."""
    distances = ratios = np.full(len(texts), np.nan)
    if ours.shape == theirs.shape:
        distances = apart(ours, theirs)
        own, other = (np.linalg.norm(rows, axis=1) for rows in (ours, theirs))
        # A static model gives zeros for a text without a token that it knows: so does the same one elsewhere.
        distances = np.where((own == 0) & (other == 0), 0.0, distances)
        # Zeros where there should be a vector are none: that is said, and no other length.
        ratios = np.where((own > 0) & (other > 0), other / own.clip(min=1e-30), np.nan)
    zeros = frozenset(np.flatnonzero(~theirs.any(axis=1)).tolist()) if theirs.shape[1:] > (0,) else frozenset[int]()
    return KindDifference(kind, tuple(texts), distances, ratios, np.isfinite(ours).all(axis=1), failures, zeros)


def rounds_as_half(largest: np.ndarray) -> bool:
    """Whether differences are those of half precision: no larger, everywhere, and nowhere much larger than elsewhere.

    A defect moves some texts and leaves others as they are in float32; half precision leaves none of them so.

    Args:
        largest: (n,) 1 − cosine of texts, or the largest of several texts of a kind.
    """
    known = largest[np.isfinite(largest)]
    return bool(len(known) and known.max() <= HALF and known.min() > EXACT and known.max() <= UNEVEN * np.median(known))


def rounding_of(kinds: Sequence[KindDifference]) -> float:
    """Up to where two of the other's vectors of one text differ by rounding alone.

    It is told from how far each text alone is from the checkpoint's in float32, not from the other's vectors
    themselves: in half precision, many of them come out bit for bit whatever they are asked beside, and some do not.
    """
    worst = max((kind.worst for kind in kinds if np.isfinite(kind.worst)), default=HALF)
    return float(np.clip(SPREAD * worst, SAME, HALF))


def apart(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(N,) 1 − cosine of corresponding rows of (N, D), in float64; NaN where one has NaN or is zero."""
    one, two = (unit_rows(np.asarray(rows, dtype=np.float64)) for rows in (first, second))
    is_zero = (np.linalg.norm(one, axis=1) < 0.5) | (np.linalg.norm(two, axis=1) < 0.5)
    # Half the squared distance of unit vectors keeps its digits where 1 − cosine loses them.
    return np.asarray(np.where(is_zero, np.nan, ((one - two) ** 2).sum(axis=1) / 2))


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def is_apart(kind: KindDifference) -> bool:
    """Whether some text's vectors differ, in direction or in length."""
    ratios = kind.ratios[np.isfinite(kind.ratios)]
    return bool(kind.worst > SAME) or bool(len(ratios) and np.abs(ratios - 1).max() > SAME_LENGTH)


def is_rounding(kinds: Sequence[KindDifference]) -> bool:
    """Whether differences are small, and on all kinds of about one size: a defect moves some kinds and not others."""
    compared = [kind for kind in kinds if np.isfinite(kind.distances).any()]
    if not compared:
        return False
    ratios = np.concatenate([kind.ratios for kind in compared])
    largest = np.array([kind.worst for kind in compared])
    return bool(np.nanmax(np.abs(ratios - 1)) <= HALF_LENGTH) and rounds_as_half(largest)


def _is_rounding_of_texts(kinds: Sequence[KindDifference]) -> bool:
    """The same; of one kind alone, of its texts, each taken by itself."""
    if len(kinds) > 1:
        return is_rounding(kinds)
    (kind,) = kinds
    ratios = kind.ratios[np.isfinite(kind.ratios)]
    is_long_enough = bool(len(ratios)) and bool(np.abs(ratios - 1).max() <= HALF_LENGTH)
    return is_long_enough and rounds_as_half(kind.distances)


def moved(kinds: Sequence[KindDifference]) -> list[KindDifference]:
    """The kinds that differ by more than rounding; queries, or documents, may be rounded alone."""
    if is_rounding(kinds):
        return []
    plainly = [kind for kind in kinds if kind.kind not in ROLES]
    groups = [plainly, *([kind] for kind in kinds if kind.kind in ROLES)]
    rounded = {kind.kind for some in groups if some and _is_rounding_of_texts(some) for kind in some}
    return [kind for kind in kinds if is_apart(kind) and kind.kind not in rounded]


def farthest(kind: KindDifference) -> float:
    """How far it is, to sort by: a kind without a vector is not."""
    return float(np.nan_to_num(kind.worst))
