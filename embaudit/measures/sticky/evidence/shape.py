"""Distribution of a vocabulary's similarities, and its distance from a Gaussian (arXiv 2507.18171, appendix).

The paper assumes that cosines of token embeddings are Gaussian around u. This computes moments and quantiles over all
pairs of different tokens of a random sample, and the Kolmogorov distance from a Gaussian with the same mean and
standard deviation,

    D = max_x |F(x) − Φ((x − m)/s)|

as a distance, not as a test: with millions of pairs every test rejects. Pairs share tokens, so intervals are a
jackknife that leaves out one of 25 groups of tokens with all its pairs.

Dose curve: pull and retention by number of copies, n = 1, 2, 4, 8, 16.

For each n, content is cut so that all copies survive, and ρ_0 uses the same cut; loss is relative to ordinary tokens
at the same n. Definitions: ``embaudit.measures.sticky.moments``.

The paper's first experiment (arXiv 2507.18171, §3): the effect of appending n copies on a fixed set of pairs.

Distributions of ΔSim = Sim(s1, I(s2, t, n)) − Sim(s1, s2), suffix, for sticky and ordinary tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import scipy

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.measures.sticky import SAMPLED_TOKENS
from embaudit.measures.sticky.insertion import SentencePair, make_draw
from embaudit.measures.sticky.moments import insert_tokens, score
from embaudit.measures.sticky.points import Points, unit_rows
from embaudit.statistics import MIN_UNITS, jackknife_half_width
from embaudit.words.errors import MeasureError, NotMeasurable
from embaudit.words.estimate import Estimate

DOSE_VERSION = 2


def doses_that_fit(checkpoint: Checkpoint, doses: Sequence[int]) -> list[int]:
    """The doses that leave room for at least one token of the sentence."""
    return [copies for copies in doses if copies < checkpoint.content_limit]


def dose_rows(
    encoder: Encoder,
    points_at: Callable[[int], Points],
    tokens: np.ndarray,
    controls: np.ndarray,
    doses: Sequence[int],
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """One row per token and dose.

    Args:
        points_at: the same draws and anchors, with room for the given number of copies.
        tokens, controls: ids; the loss of both is relative to the controls' median slope.

    Raises:
        NotMeasurable: if no dose fits into the checkpoint's length limit, or no pair is below u at some dose.
    """
    fitting = doses_that_fit(encoder.checkpoint, doses)
    if not fitting:
        raise NotMeasurable(
            f"Not even {min(doses)} copies fit into {encoder.checkpoint.max_length} tokens.",
            next_step="Give a larger --max-length.",
        )
    every = np.concatenate([tokens, controls])
    rows = []
    for copies in fitting:
        try:
            points = points_at(copies)
        except MeasureError as error:
            # Cutting content to make room for many copies may leave all pairs above u.
            raise NotMeasurable(error.happened, next_step=error.next_step) from error
        scores = score(points, insert_tokens(encoder, points, every, range(len(points.draws)), progress))
        ordinary = np.median(scores.slope[len(tokens) :])
        rows += [
            {
                "token_id": int(token),
                "role": "candidate" if place < len(tokens) else "control",
                "copies": copies,
                "points": points.count,
                "pull": None if np.isnan(scores.pull[place]) else float(scores.pull[place]),
                "slope": float(scores.slope[place]),
                "loss": float(1 - scores.slope[place] / ordinary),
            }
            for place, token in enumerate(every)
        ]
    return rows


SHIFT_VERSION = 1


def similarity_shifts(
    encoder: Encoder,
    pairs: Sequence[SentencePair],
    token_ids: np.ndarray,
    copies: int,
    seed: int,
    progress: Progress = no_progress,
) -> tuple[np.ndarray, np.ndarray]:
    """Similarities before, (P,) float64, and after, (T, P) float64.

    A sentence that is second in several pairs is encoded once per token. ``before`` uses the same cut.
    """
    import torch

    seconds = list(dict.fromkeys(pair.second for pair in pairs))
    place = np.array([seconds.index(pair.second) for pair in pairs])
    draws = [make_draw(encoder.checkpoint, second, "suffix", copies, seed) for second in seconds]
    first_texts = list(dict.fromkeys(pair.first for pair in pairs))
    first_place = np.array([first_texts.index(pair.first) for pair in pairs])
    firsts = unit_rows(encoder.encode_texts(first_texts)).astype(np.float64)[first_place]
    plain = unit_rows(encoder.encode_ids([draw.baseline for draw in draws])).astype(np.float64)[place]
    after = np.empty((len(token_ids), len(pairs)))
    for index, draw in enumerate(draws):
        vectors = encoder.encode_dense(torch.from_numpy(draw.insert(token_ids)))
        unit = torch.nn.functional.normalize(vectors, dim=1).cpu().numpy().astype(np.float64)
        held = place == index
        after[:, held] = unit @ firsts[held].T
        progress(len(token_ids))
    return np.einsum("pd,pd->p", firsts, plain), after


MEASURE_VERSION = 1
SAMPLE_SEED = 0
GROUPS = 25
# Cosines are counted in bins of 1e-4, the accuracy of the quantiles; values beyond ±1 are rounding errors.
EDGES = np.linspace(-1, 1, 20_001)
LEVELS = {"q001": 0.001, "q01": 0.01, "q05": 0.05, "q10": 0.1, "q25": 0.25, "q50": 0.5}
LEVELS |= {"q75": 0.75, "q90": 0.9, "q95": 0.95, "q99": 0.99, "q999": 0.999}
SHAPES = ("skewness", "excess_kurtosis", "gaussian_distance")
# Cosines of equal float32 vectors differ only by rounding.
ROUNDING = 1e-6
# Of a Gaussian narrower than ten bins, the distance is that of the bins.
SMALLEST_SD = 1e-3


def sample_tokens(count: int) -> np.ndarray:
    """Indices of up to ``SAMPLED_TOKENS`` of ``count`` vocabulary entries, in random order, the same in every audit."""
    return np.random.default_rng(SAMPLE_SEED).permutation(count)[:SAMPLED_TOKENS]


def similarity_shape(vectors: np.ndarray) -> dict[str, Any] | None:
    """Distribution of the cosines over all pairs of different rows of (N, D) vectors, rows in random order.

    Returns:
        tokens (nonzero rows), pairs, mean, sd, lowest, highest, quantiles, and each of ``SHAPES`` with ``_low`` and
        ``_high``; shapes are None if all cosines are equal, intervals below ten rows. None without a pair.
    """
    rows = vectors.astype(np.float64)
    norms = np.linalg.norm(rows, axis=1)
    units = rows[norms > 0] / norms[norms > 0, None]
    N = len(units)
    if N < 2:
        return None
    sums = _ShapeSums(units)
    counts, powers = sums.of_all()
    mean, sd, *_ = _moments(powers)
    found: dict[str, Any] = {
        "tokens": N,
        "pairs": N * (N - 1) // 2,
        "mean": mean,
        "sd": sd,
        "lowest": sums.lowest,
        "highest": sums.highest,
        **{name: float(np.clip(_quantile(counts, level), sums.lowest, sums.highest)) for name, level in LEVELS.items()},
    }
    without = [sums.without(group) for group in range(len(sums.groups))] if N >= MIN_UNITS else []
    for name, shape in zip(SHAPES, (_skewness, _excess_kurtosis, _gaussian_distance), strict=True):
        found |= _estimate(shape, (counts, powers), without).columns(name)
    return found


class _ShapeSums:
    """Counts and power sums of the cosines, in total and by group of tokens: leaving a group out is a subtraction.

    Powers are of the distance from a centre near the mean, to avoid cancellation.
    """

    def __init__(self, units: np.ndarray) -> None:
        N = len(units)
        self.groups = np.array_split(units, min(GROUPS, N))
        total = units.sum(axis=0)
        # The mean over pairs of different rows.
        self._centre = float((total @ total - N) / (N * (N - 1)))
        self._counts = np.zeros((len(self.groups), len(EDGES) - 1), dtype=np.int64)
        self._powers = np.zeros((len(self.groups), 5))
        self._all_counts, self._all_powers = np.zeros(len(EDGES) - 1, dtype=np.int64), np.zeros(5)
        self.lowest, self.highest = 1.0, -1.0
        for one, other in combinations_with_replacement(range(len(self.groups)), 2):
            cosines = np.clip(self.groups[one] @ self.groups[other].T, -1, 1)
            values = cosines[np.triu_indices(len(cosines), 1)] if one == other else cosines.ravel()
            if len(values):
                self._count(values, {one, other})

    def of_all(self) -> tuple[np.ndarray, np.ndarray]:
        return self._all_counts, self._centred(self._all_powers)

    def without(self, group: int) -> tuple[np.ndarray, np.ndarray]:
        return self._all_counts - self._counts[group], self._centred(self._all_powers - self._powers[group])

    def _count(self, values: np.ndarray, groups: set[int]) -> None:
        bins = np.minimum(((values + 1) / 2 * (len(EDGES) - 1)).astype(np.int64), len(EDGES) - 2)
        counts = np.bincount(bins, minlength=len(EDGES) - 1)
        off = values - self._centre
        squares = off * off
        powers = np.array([len(off), off.sum(), squares.sum(), (squares * off).sum(), (squares * squares).sum()])
        self._all_counts += counts
        self._all_powers += powers
        for group in groups:
            self._counts[group] += counts
            self._powers[group] += powers
        self.lowest, self.highest = min(self.lowest, float(values.min())), max(self.highest, float(values.max()))

    def _centred(self, powers: np.ndarray) -> np.ndarray:
        """(5,) the number of pairs, the mean, and the second to fourth central moments."""
        n, a, b, c, d = powers / np.array([1, *[powers[0]] * 4])
        return np.array(
            [n, self._centre + a, b - a**2, c - 3 * a * b + 2 * a**3, d - 4 * a * c + 6 * a**2 * b - 3 * a**4]
        )


def _moments(powers: np.ndarray) -> tuple[float, float, float, float]:
    """Mean, standard deviation, third and fourth central moment."""
    _, mean, second, third, fourth = (float(value) for value in powers)
    return mean, max(second, 0.0) ** 0.5, third, fourth


def _skewness(counts: np.ndarray, powers: np.ndarray) -> float | None:
    _, sd, third, _ = _moments(powers)
    return third / sd**3 if sd > ROUNDING else None


def _excess_kurtosis(counts: np.ndarray, powers: np.ndarray) -> float | None:
    _, sd, _, fourth = _moments(powers)
    return fourth / sd**4 - 3 if sd > ROUNDING else None


def _gaussian_distance(counts: np.ndarray, powers: np.ndarray) -> float | None:
    """D at the bin edges; within a bin it may be 4e-5/s more, a bin's share of the Gaussian. None beyond .04."""
    mean, sd, *_ = _moments(powers)
    if not sd > SMALLEST_SD:
        return None
    below = np.concatenate([[0], counts.cumsum()]) / counts.sum()
    return float(np.abs(below - scipy.stats.norm.cdf(EDGES, mean, sd)).max())


def _quantile(counts: np.ndarray, level: float) -> float:
    """Linear interpolation within the bin."""
    below = counts.cumsum()
    wanted = level * below[-1]
    place = int(np.searchsorted(below, wanted))
    before = below[place] - counts[place]
    return float(EDGES[place] + (EDGES[1] - EDGES[0]) * (wanted - before) / max(int(counts[place]), 1))


def _estimate(
    shape: Callable[[np.ndarray, np.ndarray], float | None],
    whole: tuple[np.ndarray, np.ndarray],
    without: list[tuple[np.ndarray, np.ndarray]],
) -> Estimate:
    value = shape(*whole)
    left = [one for one in (shape(*part) for part in without) if one is not None]
    if value is None or not left or len(left) < len(without):
        return Estimate(value)
    return Estimate.around(value, jackknife_half_width(np.array(left)))
