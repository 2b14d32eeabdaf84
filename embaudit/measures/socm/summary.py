"""Averages, intervals and quantiles over a stream of pairs, which may be twelve million and do not fit into memory.

Used by ``embaudit.measures.socm.steps.texts``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np

from embaudit.measures.socm.clouds import TRACE_BOUND
from embaudit.measures.socm.pairs import PairBlock
from embaudit.measures.socm.tables import SocmSummary
from embaudit.statistics import jackknife_half_width
from embaudit.words.errors import MeasureError
from embaudit.words.estimate import Estimate

LEVELS = (1, 5, 25, 50, 75, 95, 99)
QUANTILES = tuple(f"socm_q{level:02}" for level in LEVELS)
# Relative accuracy of the quantiles. Values below SMALLEST count as zero: d_Σ has rounding errors of that size.
QUANTILE_ACCURACY = 1e-4
SMALLEST = 1e-9
LARGEST = 1e12


def summarise(
    traces: np.ndarray, blocks: Iterable[PairBlock], resample: Literal["texts", "firsts"] = "texts"
) -> SocmSummary:
    """Averages over a stream of blocks of pairs.

    Args:
        traces: (N,) tr Σ of the texts at positions 0 … N−1; NaN for a text without a cloud.
        resample: the unit of the jackknife, since pairs that share a text are not independent: for all pairs of a
            corpus, a text with all its pairs; for a list of queries with passages, the first text (the query) with all
            its pairs. With sums R_i and counts n_i over the pairs of i, the mean without i is (T − R_i) / (P − n_i).

    Raises:
        MeasureError: if there is no pair.
    """
    size = len(traces)
    sums, counts = np.zeros(size), np.zeros(size, dtype=np.int64)
    pairs, total, d_mu, d_sigma = 0, 0.0, 0.0, 0.0
    low, high = np.inf, -np.inf
    sketch = QuantileSketch()
    for block in blocks:
        for side in (block.first, block.second) if resample == "texts" else (block.first,):
            sums += np.bincount(side, weights=block.socm, minlength=size)
            counts += np.bincount(side, minlength=size)
        pairs += len(block.socm)
        total += float(block.socm.sum())
        d_mu += float(block.d_mu.sum())
        d_sigma += float(block.d_sigma.sum())
        low, high = min(low, float(block.socm.min())), max(high, float(block.socm.max()))
        sketch.add(block.socm)
    if not pairs:
        raise MeasureError("SOCM has no pair to average.", next_step="Give a corpus of at least two texts.")
    mean = total / pairs
    estimate = Estimate.around(mean, jackknife_of_pairs(sums, counts, total, pairs))
    known = traces[np.isfinite(traces)]
    quantiles = np.clip([sketch.quantile(level / 100) for level in LEVELS], low, high)
    return SocmSummary(
        texts=len(known),
        undefined=size - len(known),
        pairs=pairs,
        socm_mean=mean,
        socm_low=estimate.low,
        socm_high=estimate.high,
        socm_min=low,
        socm_max=high,
        **dict(zip(QUANTILES, map(float, quantiles), strict=True)),
        d_mu_mean=d_mu / pairs,
        d_sigma_mean=d_sigma / pairs,
        trace_mean=float(known.mean()),
        trace_max=float(known.max()),
        share_trace_above_bound=float((known > TRACE_BOUND).mean()),
    )


class QuantileSketch:
    """Quantiles of a stream with a given relative accuracy, in 2 MB: counts on a logarithmic grid.

    Buckets (γ^{k−1}, γ^k] with γ = (1+a)/(1−a) are represented by 2γ^k/(γ+1), which is within a relative error a of
    all their values (DDSketch: Masson, Rim and Lee, PVLDB 12(12), 2019).
    """

    def __init__(self, accuracy: float = QUANTILE_ACCURACY) -> None:
        self._gamma = (1 + accuracy) / (1 - accuracy)
        self._width = float(np.log(self._gamma))
        self._lowest = int(np.ceil(np.log(SMALLEST) / self._width))
        # Bucket 0 is for values that count as zero.
        self._counts = np.zeros(int(np.ceil(np.log(LARGEST) / self._width)) - self._lowest + 2, dtype=np.int64)

    def add(self, values: np.ndarray) -> None:
        """Count values; negative ones, which are rounding errors, count as zero."""
        keys = np.ceil(np.log(np.clip(values, SMALLEST, LARGEST)) / self._width).astype(np.int64) - self._lowest + 1
        keys[values <= SMALLEST] = 0
        if len(keys):
            # Update only the part of the grid that these values fall into.
            first = int(keys.min())
            counts = np.bincount(keys - first)
            self._counts[first : first + len(counts)] += counts

    def quantile(self, share: float) -> float:
        """Interpolated linearly between neighbouring values, like ``numpy.quantile``.

        Raises:
            ValueError: if nothing was counted.
        """
        cumulative = np.cumsum(self._counts)
        if not cumulative[-1]:
            raise ValueError("quantile of no values")
        rank = share * (cumulative[-1] - 1)
        places = np.searchsorted(cumulative, [np.floor(rank), np.ceil(rank)], side="right")
        below, above = (self._value(int(place)) for place in places)
        return below + (rank - int(rank)) * (above - below)

    def _value(self, bucket: int) -> float:
        return 0.0 if bucket == 0 else 2 * self._gamma ** (bucket - 1 + self._lowest) / (self._gamma + 1)


class Surface:
    """SOCM_{α,β} = mean of (1 − d_μ)^α · d_Σ^β on a grid of exponents (the paper's generalised SOCM), over a stream."""

    def __init__(self, exponents: Sequence[float]) -> None:
        self._exponents = tuple(exponents)
        self._sums = np.zeros((len(self._exponents), len(self._exponents)))
        self._pairs = 0

    def passing(self, blocks: Iterable[PairBlock]) -> Iterator[PairBlock]:
        """Yields the blocks unchanged, and counts them."""
        for block in blocks:
            # Rounding can turn a zero distance into −1e-17, which has no real root.
            alike, spread = (np.clip(values, 0, None) for values in (1 - block.d_mu, block.d_sigma))
            powers = np.stack([alike**a for a in self._exponents]), np.stack([spread**b for b in self._exponents])
            self._sums += powers[0] @ powers[1].T
            self._pairs += len(block.socm)
            yield block

    def means(self) -> list[tuple[float, float, float]]:
        """(α, β, mean) for every point of the grid."""
        return [
            (alpha, beta, float(self._sums[i, j] / self._pairs))
            for i, alpha in enumerate(self._exponents)
            for j, beta in enumerate(self._exponents)
        ]


def jackknife_of_pairs(sums: np.ndarray, counts: np.ndarray, total: float, pairs: int) -> float | None:
    """Half-width of the jackknife interval of total/pairs over texts; None below four, or if one is in every pair.

    Args:
        sums, counts: (N,) R_i and n_i over the pairs of text i.
    """
    taking_part = counts > 0
    N = int(taking_part.sum())
    if N < 4 or counts.max() == pairs:
        return None
    return jackknife_half_width((total - sums[taking_part]) / (pairs - counts[taking_part]))
