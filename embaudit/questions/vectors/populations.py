"""Do two populations share an index: vectors of two models, or of two lengths?

Topics make clusters in one space; two models make two spaces. The rows are split in two by 2-means. In the halves of
one space the directions that vary most are largely the same, in two spaces they are unrelated:

    alignment A = tr(C₁C₂) / (‖C₁‖‖C₂‖),    of unrelated spaces: tr C₁ · tr C₂ / (D ‖C₁‖‖C₂‖)

with the covariances C within each half; A is put on a scale from 0, unrelated, to 1, as alike as two random halves of
the same side are (so that few rows do not look unrelated).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from embaudit.questions.vectors.unit import unit_float32

FEWEST, ROWS = 300, 6_000
ROUNDS = 20
# A side with a smaller share has too few rows in a sample for a covariance.
SMALLEST = 100
# Measured with all-MiniLM-L6-v2: two spaces 0.0002 to 0.03, the halves of one 0.11 (encyclopedia and bank questions)
# to 0.55. Topics may lie nearer still, so that this is only ever something to look at.
UNRELATED = 0.05
# Distance of the two means in standard deviations along the line between them (Ashman et al. 1994).
APART = 2.0
# Cosine of copies, and rows that are looked at together.
COPY, BLOCK = 0.999, 1_000
# Of the logarithm of lengths.
GAP = 0.25


@dataclass(frozen=True)
class TwoPopulations:
    """Two kinds of rows in one index.

    Attributes:
        what: ``spaces`` or ``lengths``.
        share: of the smaller one, in the sample.
        places: of a few rows of each, in the sample.
        figure: the alignment, or the ratio of the lengths.
    """

    what: str
    share: float
    places: tuple[np.ndarray, np.ndarray]
    figure: float


def two_spaces(vectors: np.ndarray) -> TwoPopulations | None:
    """Whether (n, D) rows in random order lie in two unrelated spaces; None if not, or if there are too few rows."""
    found = _split(vectors[:ROWS])
    if found is None:
        return None
    # Copies of one vector lie in one point and vary in no direction.
    kept = _without_copies(unit_float32(vectors[:ROWS]))
    again = _split(vectors[kept])
    return again and replace(again, places=(kept[again.places[0]], kept[again.places[1]]))


def _without_copies(units: np.ndarray) -> np.ndarray:
    """Places of the rows that are no copy of an earlier one."""
    is_copy = np.zeros(len(units), dtype=bool)
    for start in range(0, len(units), BLOCK):
        rows = units[start : start + BLOCK]
        is_near = rows @ units[: start + len(rows)].T >= COPY
        is_copy[start : start + len(rows)] = np.tril(is_near, start - 1).any(axis=1)
    return np.flatnonzero(~is_copy)


def _split(vectors: np.ndarray) -> TwoPopulations | None:
    if len(vectors) < FEWEST or vectors.shape[1] < 16:
        return None
    units = unit_float32(vectors)
    side = _two_means(units)
    sides = [np.flatnonzero(side == one) for one in (0, 1)]
    if min(map(len, sides)) < SMALLEST:
        return None
    line = units[sides[1]].mean(axis=0) - units[sides[0]].mean(axis=0)
    along = [units[own] @ line for own in sides]
    spread = np.sqrt((along[0].var() + along[1].var()) / 2)
    if abs(along[1].mean() - along[0].mean()) < APART * spread:
        return None
    figure = alignment(units[sides[0]], units[sides[1]])
    if figure is None or figure > UNRELATED:
        return None
    return TwoPopulations("spaces", min(map(len, sides)) / len(units), (sides[0], sides[1]), figure)


def alignment(first: np.ndarray, second: np.ndarray) -> float | None:
    """How much the directions in which two sets of unit vectors vary are the same: 0 unrelated, 1 as in one set.

    None if a set varies alike in all directions, so that unrelated ones cannot be told.
    """
    whole = _aligned(_covariance(first), _covariance(second))
    halves = [_aligned(_covariance(rows[::2]), _covariance(rows[1::2])) for rows in (first, second)]
    # Halves have half of the rows: their noise is twice that of a side.
    reliability = [2 * half / (1 + half) for half, _ in halves]
    alike, chance = float(np.sqrt(reliability[0] * reliability[1])), whole[1]
    return None if alike - chance < 0.1 else float((whole[0] - chance) / (alike - chance))


def _covariance(rows: np.ndarray) -> np.ndarray:
    off = rows - rows.mean(axis=0)
    return np.asarray(off.T @ off / len(rows))


def _aligned(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """A, and what it is for unrelated spaces."""
    norms = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float((first * second).sum()) / norms, float(np.trace(first) * np.trace(second)) / (len(first) * norms)


def _two_means(units: np.ndarray) -> np.ndarray:
    """(n,) side of each row by 2-means, started from the direction that varies most."""
    off = units - units.mean(axis=0)
    side = (off @ np.linalg.eigh(off.T @ off)[1][:, -1] > 0).astype(int)
    for _ in range(ROUNDS):
        if min(side.sum(), len(side) - side.sum()) == 0:
            break
        means = np.array([units[side == one].mean(axis=0) for one in (0, 1)])
        new = ((units @ means.T) - np.square(means).sum(axis=1) / 2).argmax(axis=1)
        if (new == side).all():
            break
        side = new
    return np.asarray(side)


def two_lengths(norms: np.ndarray) -> TwoPopulations | None:
    """Whether lengths fall into two groups with nothing between: the widest gap of their logarithms decides."""
    logs = np.log(norms)
    order = np.argsort(logs)
    gaps = np.diff(logs[order])
    inner = slice(max(1, len(logs) // 200), len(logs) - max(1, len(logs) // 200))
    if len(logs) < FEWEST or not len(gaps[inner]):
        return None
    place = int(np.argmax(gaps[inner])) + inner.start + 1
    low, high = logs[order[:place]], logs[order[place:]]
    gap = float(gaps[place - 1])
    if gap < GAP or max(np.ptp(np.quantile(side, (0.05, 0.95))) for side in (low, high)) > 2 * gap:
        return None
    share = min(len(low), len(high)) / len(logs)
    return TwoPopulations("lengths", share, (order[:place], order[place:]), float(np.exp(high.mean() - low.mean())))
