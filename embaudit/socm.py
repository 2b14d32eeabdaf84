"""SOCM: how much of two texts' difference mean pooling throws away (arXiv 2604.27398).

A text is a cloud of n token embeddings x_1 … x_n, scaled by 1/‖μ‖ so that its mean has unit length. For two texts

    d_μ    = ‖μ₁ − μ₂‖² / 4
    d_Σ    = tr(Σ₁ + Σ₂ − 2(Σ₁^½ Σ₂ Σ₁^½)^½) / 4        (Bures–Wasserstein, Σ = (1/n) Σ_j (x_j−μ)(x_j−μ)ᵀ)
    SOCM   = (1 − d_μ) · d_Σ

With X̃ the (n, d) matrix of centred rows, tr((Σ₁^½ Σ₂ Σ₁^½)^½) = ‖X̃₁ X̃₂ᵀ‖_* / √(n₁ n₂): the nuclear norm of an
n₁ × n₂ matrix takes the place of d × d square roots, and the products of many pairs are one matrix product.

Cost of one pair, float64: 2·n₁·n₂·d operations for the product, 2·n₁²·n₂ for the Gram of the smaller side and
about 4n₁³/3 for its eigenvalues. Read by ``embaudit_tasks.socm``; needs numpy, scipy and torch only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from embaudit.errors import MeasureError

# Changing how a value is computed changes this number, and with it every cache key of the measure.
MEASURE_VERSION = 1
# SOCM stays in [0, 1] only while tr Σ ≤ 2 (paper, §3); above it the text is flagged, never clipped.
TRACE_BOUND = 2.0
# Token rows of one block: two blocks' product is 1 024² float64 = 8 MB, which stays near the caches.
TOKENS_PER_BLOCK = 1_024
# A mean this short against the tokens' own length is rounding: X/‖μ‖ would be noise.
SHORTEST_MEAN = 1e-6


@dataclass(frozen=True)
class TokenCloud:
    """One text's tokens, scaled so that the mean has unit length.

    Attributes:
        position: the text's place in its corpus.
        mean_norm: ‖μ‖ before scaling.
        unit_mean: (d,) float64, μ/‖μ‖.
        centred: (n, d) float64, (X − μ)/‖μ‖.
    """

    position: int
    mean_norm: float
    unit_mean: np.ndarray
    centred: np.ndarray

    @property
    def n(self) -> int:
        """Number of attended tokens, special tokens included."""
        return int(self.centred.shape[0])

    @property
    def trace(self) -> float:
        """tr Σ = mean squared distance of the scaled tokens from their mean; 0 for a one-token text."""
        return float(np.square(self.centred).sum() / self.n)


@dataclass(frozen=True)
class PairBlock:
    """Values of some pairs of texts; ``first < second`` are positions in the corpus, all arrays (k,)."""

    first: np.ndarray
    second: np.ndarray
    d_mu: np.ndarray
    d_sigma: np.ndarray
    socm: np.ndarray


@dataclass(frozen=True)
class SocmSummary:
    """Averages over all pairs of a corpus, with a 95 % jackknife interval over texts for the mean SOCM."""

    texts: int
    pairs: int
    socm_mean: float
    socm_low: float | None
    socm_high: float | None
    socm_min: float
    socm_max: float
    d_mu_mean: float
    d_sigma_mean: float
    trace_mean: float
    trace_max: float
    share_trace_above_bound: float


def token_cloud(position: int, token_embeddings: np.ndarray) -> TokenCloud:
    """Scale and centre one text's final token embeddings X, (n, d).

    Raises:
        MeasureError: if ‖μ‖ is so small that X/‖μ‖ is undefined.
    """
    X = token_embeddings.astype(np.float64)
    mean = X.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    largest = float(np.linalg.norm(X, axis=1).max())
    if not norm > SHORTEST_MEAN * largest:
        raise MeasureError(
            f"SOCM is undefined for text {position}: its {len(X)} tokens average to nothing (‖μ‖ = {norm:.1e}).",
            kept="The other texts' embeddings are unaffected.",
            next_step="Remove that text from the corpus.",
        )
    return TokenCloud(position, norm, mean / norm, (X - mean) / norm)


def all_pairs(
    clouds: Sequence[TokenCloud], *, shard: int = 0, shards: int = 1, workers: int | None = None
) -> Iterator[PairBlock]:
    """SOCM of all pairs of texts, block by block.

    Texts are sorted by length, so that a block's texts have nearly one length and little is padded. A pair
    belongs to the shard of its shorter text's block; the shards together give every pair once.

    Args:
        clouds: N texts.
        shard, shards: which part of the pairs to compute.
        workers: threads for the eigenvalues; default one a core.

    Raises:
        MeasureError: with fewer than two texts there is no pair.
    """
    if len(clouds) < 2:
        raise MeasureError(
            f"SOCM compares texts in pairs, and there is {len(clouds)} text.",
            next_step="Give a corpus of at least two texts.",
        )
    blocks = [[clouds[index] for index in block] for block in plan_blocks([cloud.n for cloud in clouds])]
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        for row in range(shard, len(blocks), shards):
            for column in range(row, len(blocks)):
                if row != column or len(blocks[row]) > 1:
                    yield _block_pair(blocks[row], blocks[column], row == column, pool)


def count_pairs_of_shard(clouds: Sequence[TokenCloud], shard: int, shards: int) -> int:
    """How many pairs ``all_pairs`` gives for a shard, without computing them (for plans and progress)."""
    sizes = [len(block) for block in plan_blocks([cloud.n for cloud in clouds])]
    total = 0
    for row in range(shard, len(sizes), shards):
        total += sizes[row] * (sizes[row] - 1) // 2 + sizes[row] * sum(sizes[row + 1 :])
    return total


def summarise(traces: np.ndarray, blocks: Iterable[PairBlock]) -> SocmSummary:
    """Averages over pairs that arrive in any number of blocks, without holding them.

    Args:
        traces: (N,) tr Σ of the texts at positions 0 … N−1.

    The interval is a jackknife over texts, because pairs that share a text are not independent: with row sums
    R_i and total T, the mean without text i is (T − R_i) / C(N−1, 2).
    """
    size = len(traces)
    row_sums = np.zeros(size)
    pairs, total, d_mu, d_sigma = 0, 0.0, 0.0, 0.0
    low, high = np.inf, -np.inf
    for block in blocks:
        row_sums += np.bincount(block.first, weights=block.socm, minlength=size)
        row_sums += np.bincount(block.second, weights=block.socm, minlength=size)
        pairs += len(block.socm)
        total += float(block.socm.sum())
        d_mu += float(block.d_mu.sum())
        d_sigma += float(block.d_sigma.sum())
        low, high = min(low, float(block.socm.min())), max(high, float(block.socm.max()))
    mean = total / pairs
    half_width = _jackknife_half_width(row_sums, total)
    return SocmSummary(
        texts=size,
        pairs=pairs,
        socm_mean=mean,
        socm_low=None if half_width is None else mean - half_width,
        socm_high=None if half_width is None else mean + half_width,
        socm_min=low,
        socm_max=high,
        d_mu_mean=d_mu / pairs,
        d_sigma_mean=d_sigma / pairs,
        trace_mean=float(traces.mean()),
        trace_max=float(traces.max()),
        share_trace_above_bound=float((traces > TRACE_BOUND).mean()),
    )


def _jackknife_half_width(row_sums: np.ndarray, total: float) -> float | None:
    """1.96 standard errors; None below four texts, where leaving one out leaves fewer than three pairs."""
    N = len(row_sums)
    if N < 4:
        return None
    without = (total - row_sums) / ((N - 1) * (N - 2) / 2)
    variance = (N - 1) / N * np.square(without - without.mean()).sum()
    return float(1.96 * np.sqrt(variance))


def plan_blocks(lengths: Sequence[int]) -> list[list[int]]:
    """Texts in blocks of similar length, at most ``TOKENS_PER_BLOCK`` padded rows each (a longer text alone).

    Args:
        lengths: tokens of each text.

    Returns:
        Indices into ``lengths``; shortest texts first.
    """
    blocks: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: (lengths[index], index)):
        if blocks and (len(blocks[-1]) + 1) * lengths[index] <= TOKENS_PER_BLOCK:
            blocks[-1].append(index)
        else:
            blocks.append([index])
    return blocks


def _block_pair(
    rows: list[TokenCloud], columns: list[TokenCloud], is_diagonal: bool, pool: ThreadPoolExecutor
) -> PairBlock:
    nuclear = _nuclear_norms(_padded(rows), _padded(columns), pool)
    n_rows, n_columns = (np.array([cloud.n for cloud in block]) for block in (rows, columns))
    traces_rows, traces_columns = (np.array([cloud.trace for cloud in block]) for block in (rows, columns))
    overlap = nuclear / np.sqrt(np.outer(n_rows, n_columns))
    d_sigma = (traces_rows[:, None] + traces_columns[None, :] - 2 * overlap) / 4
    cosine = np.stack([c.unit_mean for c in rows]) @ np.stack([c.unit_mean for c in columns]).T
    d_mu = (1 - cosine) / 2  # ‖μ₁−μ₂‖²/4 for unit means
    i, j = np.triu_indices(len(rows), 1) if is_diagonal else map(np.ravel, np.indices(nuclear.shape))
    position_i = np.array([cloud.position for cloud in rows])[i]
    position_j = np.array([cloud.position for cloud in columns])[j]
    d_mu, d_sigma = d_mu[i, j], d_sigma[i, j]
    return PairBlock(
        first=np.minimum(position_i, position_j),
        second=np.maximum(position_i, position_j),
        d_mu=d_mu,
        d_sigma=d_sigma,
        socm=(1 - d_mu) * d_sigma,
    )


def _padded(block: list[TokenCloud]) -> np.ndarray:
    """(b, w, d): centred rows, filled up with zero rows, which leave every nuclear norm as it is."""
    width, d = max(cloud.n for cloud in block), block[0].centred.shape[1]
    rows = np.zeros((len(block), width, d))
    for place, cloud in enumerate(block):
        rows[place, : cloud.n] = cloud.centred
    return rows


def _nuclear_norms(A: np.ndarray, B: np.ndarray, pool: ThreadPoolExecutor) -> np.ndarray:
    """‖A_i B_jᵀ‖_* for all i, j; A (a, v, d) with the shorter texts, B (b, w, d). Returns (a, b) float64."""
    a, v, d = A.shape
    b, w, _ = B.shape
    products = (A.reshape(a * v, d) @ B.reshape(b * w, d).T).reshape(a, v, b, w).transpose(0, 2, 1, 3)

    def of_rows(part: np.ndarray) -> np.ndarray:
        M = np.ascontiguousarray(part).reshape(-1, v, w)
        gram = M @ M.transpose(0, 2, 1)
        # A singular value is the root of a Gram eigenvalue; rounding can leave a zero one at −1e-17.
        return np.sqrt(np.linalg.eigvalsh(gram).clip(min=0)).sum(axis=1)

    # LAPACK releases the interpreter lock: threads share the matrices and split the pairs.
    parts = np.array_split(products, min(a, 2 * (os.cpu_count() or 1)))
    return np.concatenate(list(pool.map(of_rows, parts))).reshape(a, b)
