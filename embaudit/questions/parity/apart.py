"""Which differences between two functions count, and which are rounding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embaudit.questions.parity.compare import HALF_LENGTH, SAME, SAME_LENGTH, KindDifference, rounds_as_half
from embaudit.questions.parity.texts import ROLES


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
