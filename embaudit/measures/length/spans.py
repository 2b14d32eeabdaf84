"""Length bins for natural texts, and one growing span per text for the controls.

Lengths exclude special tokens. All controls cut the same span, so that at any length truncation, windows and input
embeddings see the same tokens.

Mean pairwise cosine of a set of vectors, with an interval over the texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from embaudit.statistics import jackknife_half_width
from embaudit.system.installed import content_key
from embaudit.words.errors import MeasureError
from embaudit.words.estimate import Estimate

BIN_WIDTH = 100
# Each length is compared on at least this many texts, if available.
MIN_SPANS = 10


@dataclass(frozen=True)
class LengthBin:
    """[low, high) tokens before truncation; controls are cut to ``length``."""

    low: int
    high: int

    @property
    def length(self) -> int:
        """The midpoint, about the length of the bin's texts."""
        return (self.low + self.high) // 2


def length_bins(limit: int, width: int = BIN_WIDTH) -> list[LengthBin]:
    """[0, width), [width, 2·width), … up to and including ``limit`` tokens.

    Args:
        limit: the most tokens that the model can read: positions without special tokens.
    """
    edges = [*range(0, limit, width), limit]
    # A narrow last bin would contain no text, so merge it with the previous one.
    if len(edges) > 2 and edges[-1] - edges[-2] < width // 4:
        del edges[-2]
    return [LengthBin(low, high) for low, high in pairwise(edges)]


def longest_common(lengths: Sequence[int], asked: Sequence[int]) -> int | None:
    """The longest of the requested lengths that ten texts reach (or all that reach the shortest, if fewer).

    To compare lengths on the same texts, all texts must reach the longest one; a single long text should not
    determine it.

    Args:
        lengths: lengths of the texts, without special tokens.
        asked: lengths to compare.

    Returns:
        None if fewer than two texts reach even the shortest.
    """
    sizes = np.asarray(lengths)
    shortest = int((sizes >= min(asked)).sum()) if len(asked) else 0
    if shortest < 2:
        return None
    fewest = min(MIN_SPANS, shortest)
    return max(length for length in asked if int((sizes >= length).sum()) >= fewest)


def spans_of(contents: Sequence[Sequence[int]], longest: int, most: int, seed: int) -> list[list[int]]:
    """One span of ``longest`` tokens from each of the first ``most`` texts that are long enough."""
    spans = []
    for ids in [ids for ids in contents if len(ids) >= longest][:most]:
        start = span_start(ids, longest, seed)
        spans.append(list(ids[start : start + longest]))
    return spans


def span_start(ids: Sequence[int], longest: int, seed: int) -> int:
    """Random start of a text's span, which depends only on the seed and the text."""
    room = len(ids) - longest
    if room < 1:
        return 0
    draw = int(content_key(seed=seed, ids=list(map(int, ids))), 16)
    return int(np.random.default_rng(draw).integers(0, room + 1))


def windows_of(ids: Sequence[int], size: int) -> list[list[int]]:
    """Consecutive windows of ``size`` tokens; the last may be shorter."""
    return [list(ids[start : start + size]) for start in range(0, len(ids), size)]


def evenly(bins: Sequence[LengthBin], most: int) -> list[LengthBin]:
    """At most ``most`` of the bins, evenly spaced, including the first and the last."""
    if len(bins) <= most:
        return list(bins)
    return [bins[round(place * (len(bins) - 1) / (most - 1))] for place in range(most)]


# With fewer than four texts, leaving one out leaves fewer than three pairs.
MIN_FOR_INTERVAL = 4


@dataclass(frozen=True)
class MeanCosine:
    """Mean cosine over the pairs of N texts; ``low`` and ``high`` are a 95 % jackknife over texts.

    Attributes:
        without: (N,) the mean without each text; empty if there is no interval.
    """

    texts: int
    mean: float | None
    low: float | None
    high: float | None
    without: np.ndarray = field(default_factory=lambda: np.empty(0), compare=False, repr=False)


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """(N, D) float64 vectors of unit length.

    Raises:
        MeasureError: if a vector is zero or not finite; the message has its index.
    """
    X = vectors.astype(np.float64)
    lengths = np.linalg.norm(X, axis=1)
    bad = ~(np.isfinite(lengths) & (lengths > 0))
    if bad.any():
        place = int(np.argmax(bad))
        raise MeasureError(
            f"Vector {place} of {len(X)} has no direction (length {lengths[place]}).",
            next_step="Remove that text, or check the checkpoint for NaN.",
        )
    return np.asarray(X / lengths[:, None])


def mean_cosine(vectors: np.ndarray) -> MeanCosine:
    """(‖Σû‖² − N) / (N(N−1)): the mean over all pairs of different texts, without an N × N matrix.

    With s_i = û_i·Σû − 1 the sum over the pairs of text i, and T = Σ_i s_i / 2, the mean without text i is
    (T − s_i) / C(N−1, 2): a jackknife over texts costs no more than the mean.

    Args:
        vectors: (N, D), nonzero.

    Returns:
        The mean is None with fewer than two texts.

    Raises:
        MeasureError: if a vector is zero or not finite; the message has its index.
    """
    N = len(vectors)
    if N < 2:
        return MeanCosine(N, None, None, None)
    units = unit_vectors(vectors)
    sums = units @ units.sum(axis=0) - 1
    total = sums.sum() / 2
    mean = float(total / (N * (N - 1) / 2))
    if N < MIN_FOR_INTERVAL:
        return MeanCosine(N, mean, None, None)
    without = (total - sums) / ((N - 1) * (N - 2) / 2)
    _, low, high = Estimate.around(mean, jackknife_half_width(without))
    return MeanCosine(N, mean, low, high, without)
