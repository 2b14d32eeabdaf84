"""What rows are to each other: hubs and near copies, by a second pass; and do two populations share an index?

Topics make clusters in one space; two models make two spaces, as do vectors of two lengths. The rows are split in two
by 2-means. In the halves of one space the directions that vary most are largely the same, in two spaces unrelated:

    alignment A = tr(C₁C₂) / (‖C₁‖‖C₂‖),    of unrelated spaces: tr C₁ · tr C₂ / (D ‖C₁‖‖C₂‖)

with the covariances C within each half; A is put on a scale from 0, unrelated, to 1, as alike as two random halves of
the same side are (so that few rows do not look unrelated).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from embaudit.questions.vectors.forms import unit_float32
from embaudit.questions.vectors.profile import Profile, Progress, SomeRows, joined, rows_of
from embaudit.statistics import exact_share
from embaudit.stores.store import Store

QUERIES, NEAREST = 500, 10
# Multiplications that the pass may cost; beyond, fewer queries are asked.
PRODUCTS = 4e11
FEWEST_QUERIES = 50
# Two rows this close are copies, but for rounding or a word.
COPY = 0.999
# With fewer rows, most are neighbours of most: copies are counted, hubs are none.
FEWEST_ROWS = 20 * NEAREST
# Rows that occur this often are needed for a third moment.
OFTEN, FEWEST_OFTEN = 3, 10


@dataclass(frozen=True)
class FoundNearest:
    """What a sample of rows finds in the whole index by cosine.

    Attributes:
        queries: how many rows were asked.
        counts: (n,) how many of them have each row among their ten nearest, in the order of the profile's rows.
        copies: how many of them have another row at a cosine of at least ``COPY``.
    """

    queries: int
    counts: np.ndarray
    copies: int

    @property
    def is_few(self) -> bool:
        """Whether there are too few rows to tell hubs."""
        return len(self.counts) < FEWEST_ROWS

    @property
    def largest(self) -> int:
        """Place of the row that most have among their nearest."""
        return int(self.counts.argmax())

    @property
    def largest_share(self) -> tuple[float, float, float]:
        """The share of queries that have it, with Clopper and Pearson's interval; none if every row was asked."""
        return self._share(int(self.counts.max()))

    @property
    def copy_share(self) -> tuple[float, float, float]:
        return self._share(self.copies)

    @property
    def is_exact(self) -> bool:
        return self.queries >= len(self.counts)

    def _share(self, hits: int) -> tuple[float, float, float]:
        share = hits / self.queries
        return (share, share, share) if self.is_exact else (share, *exact_share(hits, self.queries))

    @property
    def skewness(self) -> float | None:
        """Skewness of N_10 over the index, the number of rows that have a row among their ten nearest.

        Its first three moments are estimated without bias from the factorial moments of the counts c among Q queries of
        n rows: E[c(c−1)…(c−r+1)] = Q…(Q−r+1)/(n…(n−r+1)) · N(N−1)…(N−r+1), for a sample without replacement. None if
        fewer than ten rows are found by three queries: the third moment would be that of a few of them.
        """
        n, Q = len(self.counts), self.queries
        if self.is_few or (self.counts >= OFTEN).sum() < FEWEST_OFTEN:
            return None
        factorials, c = [], self.counts.astype(np.float64)
        product, scale = np.ones(n), 1.0
        for r in range(3):
            product = product * (c - r)
            scale *= (n - r) / (Q - r)
            factorials.append(float(product.mean()) * scale)
        first, second, third = factorials[0], factorials[1] + factorials[0], 0.0
        third = factorials[2] + 3 * factorials[1] + factorials[0]
        variance = second - first**2
        return None if variance <= 0 else float((third - 3 * first * second + 2 * first**3) / variance**1.5)


class NearestRows:
    """The rows that queries find first by cosine, kept while the rows of an index come by.

    Args:
        queries: (Q, D) float32 at unit length.
        own: (Q,) number of the row that each query is of and does not find; −1 if it is of none.
        most: how many rows each finds.

    Attributes:
        cosines, numbers: (Q, most) of those found until now, the nearest first; −∞ and −1 where there are fewer rows.
    """

    def __init__(self, queries: np.ndarray, own: np.ndarray, most: int = NEAREST) -> None:
        self._queries, self._own = queries, own
        self.cosines = np.full((len(queries), most), -np.inf, dtype=np.float32)
        self.numbers = np.full((len(queries), most), -1, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._queries)

    def add(self, numbers: np.ndarray, units: np.ndarray) -> np.ndarray:
        """Look among more rows: (n,) ascending numbers, (n, D) at unit length; returns the (Q, n) cosines."""
        with np.errstate(all="ignore"):
            cosines = self._queries @ units.T
        # A row is not its own neighbour; nothing is near to NaN or zeros.
        at = np.searchsorted(numbers, self._own)
        is_here = (at < len(numbers)) & (numbers[np.minimum(at, len(numbers) - 1)] == self._own)
        cosines[is_here, at[is_here]] = -np.inf
        cosines[~np.isfinite(cosines)] = -np.inf
        for row in np.flatnonzero(cosines.max(axis=1) > self.cosines[:, -1]):
            new = np.flatnonzero(cosines[row] > self.cosines[row, -1])
            values = np.concatenate([self.cosines[row], cosines[row, new]])
            places = np.concatenate([self.numbers[row], numbers[new]])
            order = np.argsort(-values, kind="stable")[: self.cosines.shape[1]]
            self.cosines[row], self.numbers[row] = values[order], places[order]
        return cosines

    def counts(self, numbers: np.ndarray, first: int) -> np.ndarray:
        """(n,) how many queries have each row, by ascending number, among their ``first``."""
        found = self.numbers[:, :first]
        return np.bincount(np.searchsorted(numbers, found[found >= 0]), minlength=len(numbers))


def look_again(
    index: Store,
    profile: Profile,
    wanted: np.ndarray,
    progress: Progress = lambda rows: None,
    sentinels: NearestRows | None = None,
) -> tuple[FoundNearest | None, SomeRows]:
    """Read an index a second time.

    Args:
        wanted: numbers of rows to fetch.
        sentinels: other queries that look among the same rows.

    Returns:
        What a sample finds (None for one row, or bytes, whose cosines mean nothing), and the wanted rows.
    """
    usable, D = int(profile.usable.sum()), profile.dimension
    sampled = _queries(profile, usable)
    asked = None if sampled is None else NearestRows(unit_float32(sampled.vectors), sampled.numbers)
    asking = [one for one in (asked, sentinels) if one is not None]
    if not asking and not len(wanted):
        return None, joined([], D)
    copies = np.zeros(0 if asked is None else len(asked), dtype=bool)
    fetched: list[SomeRows] = []
    for batch in index.batches():
        progress(batch.rows)
        places, vectors = batch.vectors.get(D, (np.empty(0, np.int64), np.empty((0, D))))
        if len(wanted):
            fetched.append(rows_of(batch, wanted, D))
        if not asking or not len(places):
            continue
        numbers = batch.start + places
        with np.errstate(all="ignore"):
            units = unit_float32(vectors)
        for one in asking:
            cosines = one.add(numbers, units)
            if one is asked:
                copies |= (cosines >= COPY).any(axis=1)
    if asked is None:
        return None, joined(fetched, D)
    counted = asked.counts(profile.numbers, NEAREST)
    return FoundNearest(len(asked), counted[profile.usable], int(copies.sum())), joined(fetched, D)


def _queries(profile: Profile, usable: int) -> SomeRows | None:
    if usable < 2 or profile.sample.vectors.dtype == np.uint8:
        return None
    affordable = int(PRODUCTS / (2 * profile.dimension * usable))
    count = min(QUERIES, len(profile.sample), max(FEWEST_QUERIES, affordable))
    return profile.sample.at(np.arange(count))


FEWEST, ROWS = 300, 6_000
ROUNDS = 20
# A side with a smaller share has too few rows in a sample for a covariance.
SMALLEST = 100
# Measured with all-MiniLM-L6-v2: two spaces 0.0002 to 0.03, the halves of one 0.11 (encyclopedia and bank questions)
# to 0.55. Topics may lie nearer still, so that this is only ever something to look at.
UNRELATED = 0.05
# Distance of the two means in standard deviations along the line between them (Ashman et al. 1994).
APART = 2.0
# Rows that are looked at together.
BLOCK = 1_000
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
