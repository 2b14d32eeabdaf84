"""A second pass: each row held against some of them, for hubs and near copies; and chosen rows are fetched."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from embaudit.questions.vectors.profile import Profile, Progress
from embaudit.questions.vectors.sample import SomeRows, joined, rows_of
from embaudit.questions.vectors.unit import unit_float32
from embaudit.statistics.intervals import exact_share
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
