"""What other poolings of the same token states keep, compared with the mean.

For a text's tokens x_1 … x_n at pooling, and its pooled vector p with direction p̂ = p/‖p‖:

    kept = (μ·p̂)² / ((1/n) Σ_i ‖x_i‖²)

is the share of the tokens' mean squared length explained by one vector along p:
min_c (1/n) Σ_i ‖x_i − c·p̂‖² = (1 − kept) · (1/n) Σ_i ‖x_i‖². No direction keeps more than the mean's own, which keeps
1/(1 + tr Σ) of the cloud scaled to ‖μ‖ = 1; another pooling keeps cos²(p, μ) of that. So ``kept`` says how far a
pooling is from the mean, and what even the mean discards.

But the purpose of a pooling is to rank texts. ``correlation`` is Spearman's ρ, over all pairs of texts, between
1 − cos(p, p′) and the angle between all their tokens,

    1 − ⟨X, Y⟩/(‖X‖·‖Y‖),   ⟨X, Y⟩ = μ₁·μ₂ + tr (Σ₁^½ Σ₂ Σ₁^½)^½,   ‖X‖² = ‖μ₁‖² + tr Σ₁

⟨X, Y⟩ is the largest mean product x·y of two Gaussians with these moments under any coupling (Gelbrich 1990), the inner
product that belongs to the squared distance 4(d_μ + d_Σ). Its cosine does not depend on the scale of a text's vectors;
for texts of one token it is their cosine. By this criterion the mean need not be the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.corpora.downstream.task import unit_rows
from embaudit.statistics.intervals import MIN_UNITS, jackknife_half_width, mean_with_interval, spearman
from embaudit.words.estimate import Estimate

# Names as in sentence-transformers. The mean divided by √n has the same direction as the mean.
POOLINGS = ("mean", "cls", "lasttoken", "max", "weightedmean")
# Groups of the jackknife over texts: each needs a Spearman's ρ over tens of thousands of pairs.
GROUPS = 25


@dataclass(frozen=True)
class PoolingStat:
    """One pooling of a corpus's texts.

    Attributes:
        kept: mean over texts, with a Student's t interval.
        cosine_to_mean: mean over texts of cos(p, μ).
        correlation: None if either side is constant; its interval is a jackknife over groups of texts.
    """

    pooling: str
    texts: int
    pairs: int
    kept: float
    kept_low: float | None
    kept_high: float | None
    cosine_to_mean: float
    correlation: float | None
    correlation_low: float | None
    correlation_high: float | None


def pooled(tokens: np.ndarray, behind: int = 0) -> np.ndarray:
    """(poolings, d) float64: the vectors of one text, in the order of ``POOLINGS``.

    Args:
        tokens: (n, d) final states of the pooled tokens.
        behind: number of preceding positions (a prompt that is not pooled), which positional weights count.
    """
    X = tokens.astype(np.float64)
    weights = np.arange(behind + 1, behind + len(X) + 1)
    return np.stack([X.mean(axis=0), X[0], X[-1], X.max(axis=0), weights @ X / weights.sum()])


def shares_kept(tokens: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """(poolings,) the shares of the tokens' mean squared length kept by a text's (poolings, d) vectors."""
    X = tokens.astype(np.float64)
    along = unit_rows(vectors) @ X.mean(axis=0)
    shares: np.ndarray = np.square(along) / np.square(X).sum(axis=1).mean()
    return shares


def cloud_angles(d_mu: np.ndarray, d_sigma: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(pairs,) 1 − ⟨X, Y⟩/(‖X‖·‖Y‖) of clouds scaled to ‖μ‖ = 1.

    Args:
        first, second: (pairs,) tr Σ of each pair's texts.
    """
    squares = 1 + first, 1 + second
    angles: np.ndarray = 1 - (squares[0] + squares[1] - 4 * (d_mu + d_sigma)) / 2 / np.sqrt(squares[0] * squares[1])
    return angles


def compare_poolings(
    texts: Sequence[np.ndarray], first: np.ndarray, second: np.ndarray, angles: np.ndarray, behind: int = 0
) -> list[PoolingStat]:
    """Every pooling of ``POOLINGS`` on the same texts and pairs.

    Args:
        texts: (n_i, d) pooled tokens of each text, with a nonzero mean.
        first, second: (pairs,) indices of each pair's texts.
        angles: (pairs,) angles between their clouds, from ``cloud_angles``.
        behind: as in ``pooled``.
    """
    vectors = np.stack([pooled(tokens, behind) for tokens in texts])
    kept = np.stack([shares_kept(tokens, own) for tokens, own in zip(texts, vectors, strict=True)])
    directions = vectors / np.linalg.norm(vectors, axis=2, keepdims=True).clip(min=1e-30)
    to_mean = np.einsum("tpd,td->tp", directions, directions[:, 0])
    groups = np.arange(len(texts)) % min(GROUPS, len(texts))
    found = []
    for place, name in enumerate(POOLINGS):
        cosines = np.einsum("kd,kd->k", directions[first, place], directions[second, place])
        correlation = spearman(1 - cosines, angles)
        half = None if correlation is None else _half_width(1 - cosines, angles, groups[first], groups[second])
        mean = mean_with_interval(kept[:, place])
        agreement = Estimate() if correlation is None else Estimate.around(correlation, half).within(-1.0, 1.0)
        found.append(
            PoolingStat(
                pooling=name,
                texts=len(texts),
                pairs=len(angles),
                kept=mean.known,
                kept_low=mean.low,
                kept_high=mean.high,
                cosine_to_mean=float(to_mean[:, place].mean()),
                **agreement.columns("correlation"),
            )
        )
    return found


def _half_width(values: np.ndarray, wanted: np.ndarray, first: np.ndarray, second: np.ndarray) -> float | None:
    """Half-width of the jackknife that leaves out a group of texts with all their pairs; None for few texts.

    Args:
        first, second: (pairs,) the group of each pair's texts.
    """
    count = 1 + int(max(first.max(), second.max()))
    if count < MIN_UNITS:
        return None
    without = []
    for group in range(count):
        others = (first != group) & (second != group)
        without.append(spearman(values[others], wanted[others]))
    defined = [value for value in without if value is not None]
    return jackknife_half_width(np.array(defined)) if len(defined) == count else None
