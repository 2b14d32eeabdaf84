"""SOCM by length: how it correlates with the number of tokens, and averages over pairs by length.

tr Σ grows with the number of tokens, and d_Σ with tr Σ₁ + tr Σ₂, so a corpus's average SOCM mostly reflects how long
its texts are. Used by ``embaudit.measures.socm.steps.summary``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from embaudit.measures.socm.pairs import PairBlock
from embaudit.measures.socm.summary import jackknife_of_pairs
from embaudit.words.estimate import Estimate

# Lower edges of the length bins, in pooled tokens; the last bin is open.
EDGES = (1, 17, 33, 65, 129, 257)


@dataclass(frozen=True)
class LengthCell:
    """Averages over the pairs between two length bins, or within one.

    Attributes:
        shorter, longer: lower edges of the two texts' bins.
        texts: number of texts in such pairs.
        trace_mean: mean of (tr Σ₁ + tr Σ₂)/2 over the pairs.
        socm_low, socm_high: 95 % jackknife over texts; None if there are too few.
    """

    shorter: int
    longer: int
    texts: int
    pairs: int
    d_mu_mean: float
    d_sigma_mean: float
    socm_mean: float
    socm_low: float | None
    socm_high: float | None
    trace_mean: float


@dataclass
class _LengthSums:
    size: int
    pairs: int = 0
    # Sums of SOCM, d_μ, d_Σ and (tr Σ₁ + tr Σ₂)/2.
    totals: np.ndarray = field(default_factory=lambda: np.zeros(4))
    by_text: np.ndarray = field(init=False)
    counts: np.ndarray = field(init=False)
    taking_part: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.by_text, self.counts = np.zeros(self.size), np.zeros(self.size, dtype=np.int64)
        self.taking_part = np.zeros(self.size, dtype=bool)


class LengthCells:
    """Averages by the lengths of both texts, over a stream of pairs.

    Args:
        tokens, traces: (N,) of the texts at positions 0 … N−1.
        leave_out_firsts: whether the jackknife is over first texts only (the queries of a list).
    """

    def __init__(self, tokens: np.ndarray, traces: np.ndarray, *, leave_out_firsts: bool = False) -> None:
        self._bins = np.searchsorted(EDGES, tokens, side="right") - 1
        self._traces = traces
        self._leave_out_firsts = leave_out_firsts
        self._cells: dict[tuple[int, int], _LengthSums] = {}

    def passing(self, blocks: Iterable[PairBlock]) -> Iterator[PairBlock]:
        """Yields the blocks unchanged, and counts them."""
        for block in blocks:
            bins = np.sort(np.stack([self._bins[block.first], self._bins[block.second]]), axis=0)
            numbers = bins[0] * len(EDGES) + bins[1]
            for number in np.unique(numbers):
                self._add(divmod(int(number), len(EDGES)), block, np.flatnonzero(numbers == number))
            yield block

    def cells(self) -> list[LengthCell]:
        """All combinations of bins with pairs, shortest first."""
        return [self._cell(*key) for key in sorted(self._cells)]

    def _add(self, key: tuple[int, int], block: PairBlock, here: np.ndarray) -> None:
        size = len(self._bins)
        sums = self._cells.setdefault(key, _LengthSums(size))
        first, second, socm = block.first[here], block.second[here], block.socm[here]
        spread = (self._traces[first] + self._traces[second]) / 2
        sums.pairs += len(here)
        sums.totals += [values.sum() for values in (socm, block.d_mu[here], block.d_sigma[here], spread)]
        for side in (first,) if self._leave_out_firsts else (first, second):
            sums.by_text += np.bincount(side, weights=socm, minlength=size)
            sums.counts += np.bincount(side, minlength=size)
        sums.taking_part[first] = sums.taking_part[second] = True

    def _cell(self, shorter: int, longer: int) -> LengthCell:
        sums = self._cells[shorter, longer]
        socm, d_mu, d_sigma, trace = (float(total) / sums.pairs for total in sums.totals)
        _, low, high = Estimate.around(
            socm, jackknife_of_pairs(sums.by_text, sums.counts, float(sums.totals[0]), sums.pairs)
        )
        return LengthCell(
            shorter=EDGES[shorter],
            longer=EDGES[longer],
            texts=int(sums.taking_part.sum()),
            pairs=sums.pairs,
            d_mu_mean=d_mu,
            d_sigma_mean=d_sigma,
            socm_mean=socm,
            socm_low=low,
            socm_high=high,
            trace_mean=trace,
        )


class TraceCorrelation:
    """Pearson's r between SOCM and tr Σ₁ + tr Σ₂ over a stream of pairs (merged moments: Chan et al. 1983).

    Args:
        traces: (N,) tr Σ of the texts at positions 0 … N−1.
    """

    def __init__(self, traces: np.ndarray) -> None:
        self._traces = traces
        self._pairs, self._means, self._moments = 0, np.zeros(2), np.zeros((2, 2))

    def passing(self, blocks: Iterable[PairBlock]) -> Iterator[PairBlock]:
        """Yields the blocks unchanged, and counts them."""
        for block in blocks:
            if len(block.socm):
                self._add(np.stack([block.socm, self._traces[block.first] + self._traces[block.second]]))
            yield block

    def value(self) -> float | None:
        """r; None if either is constant."""
        return _correlation(self._moments, self._means, self._pairs)

    def _add(self, values: np.ndarray) -> None:
        count, means = values.shape[1], values.mean(axis=1)
        pairs, centred, shift = self._pairs + count, values - means[:, None], means - self._means
        self._moments = self._moments + centred @ centred.T + np.outer(shift, shift) * (self._pairs * count / pairs)
        self._means = self._means + shift * (count / pairs)
        self._pairs = pairs


def length_correlation(tokens: np.ndarray, traces: np.ndarray) -> float | None:
    """Pearson's r between tr Σ and the number of tokens, (N,) each, over texts with a trace; None if constant."""
    known = np.isfinite(traces)
    if not known.any():
        return None
    values = np.stack([tokens[known].astype(np.float64), traces[known]])
    means = values.mean(axis=1)
    centred = values - means[:, None]
    return _correlation(centred @ centred.T, means, values.shape[1])


def _correlation(moments: np.ndarray, means: np.ndarray, count: int) -> float | None:
    deviations = np.sqrt(moments.diagonal() / max(count, 1))
    # Variation below rounding error counts as constant.
    if (deviations <= 1e-12 * np.maximum(np.abs(means), 1e-12)).any():
        return None
    return float(np.clip(moments[0, 1] / (count * deviations.prod()), -1, 1))
