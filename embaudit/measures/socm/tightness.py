"""Quality of the Gaussian approximation of a text, and the effect of other pooling weights (arXiv 2604.27398, App. J).

4(d_μ + d_Σ) is the squared 2-Wasserstein distance between two Gaussians with the clouds' means and covariances, and a
lower bound for all distributions with these moments (Gelbrich 1990). So the exact W₂² between the token clouds is never
smaller, and the ratio says how much of the difference between the clouds the first two moments capture.

SIF pooling (Arora et al. 2017) weights a token by a/(a + p(token)). The same pairs are compared under it, and under the
full method, which removes the projection on the texts' common component u from every mean. u is the first right
singular vector of the uncentred weighted means (1/n) Σ_j w_j x_j of all texts. A text's tokens, projected on the
complement of u, average to its projected mean, and form the cloud that this pooling sees.

What other poolings of the same token states keep, compared with the mean.

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

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from embaudit.corpora.downstream import unit_rows
from embaudit.measures.socm.clouds import TokenCloud, token_cloud
from embaudit.measures.socm.pairs import given_pairs
from embaudit.measures.socm.tables import PairTightness, Pooling, PoolingStat
from embaudit.statistics import (
    MIN_UNITS,
    centred_ranks,
    correlation,
    jackknife_half_width,
    mean_with_interval,
)
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import Estimate

# Arora, Liang and Ma (2017), "A simple but tough-to-beat baseline for sentence embeddings".
SIF_A = 1e-3
# The network simplex can need more pivots than POT's default of 100 000 for 512 × 512 tokens.
MAX_PIVOTS = 5_000_000


def sif_weights(token_ids: Sequence[Sequence[int]], a: float = SIF_A) -> list[np.ndarray]:
    """a/(a + p(token)) for each token of each text, (n,) float64; p is estimated on the same texts."""
    counts = Counter(token for ids in token_ids for token in ids)
    total = sum(counts.values())
    return [np.array([a / (a + counts[token] / total) for token in ids]) for ids in token_ids]


def sample_pairs(positions: Sequence[int], count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """``count`` different pairs first < second (or all pairs, if fewer), sampled by the seed."""
    ordered = np.sort(np.asarray(positions, dtype=np.int64))
    size = len(ordered)
    numbers = np.sort(
        np.random.default_rng(seed).choice(size * (size - 1) // 2, min(count, size * (size - 1) // 2), replace=False)
    )
    # Pair number k = j(j−1)/2 + i with i < j; rounding of the root is off by at most one.
    j = ((1 + np.sqrt(1 + 8.0 * numbers)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > numbers
    j += (j + 1) * j // 2 <= numbers
    return ordered[numbers - j * (j - 1) // 2], ordered[j]


def pair_tightness(
    clouds: Mapping[int, TokenCloud],
    weights: Mapping[int, np.ndarray],
    first: Sequence[int] | np.ndarray,
    second: Sequence[int] | np.ndarray,
) -> list[PairTightness]:
    """Exact transport and SIF pooling, in addition to d_μ and d_Σ, for a list of pairs.

    Args:
        clouds: by position.
        weights: (n,) SIF weights of each text, by position.

    The common component is that of all clouds, including those in no pair.
    """
    plain = given_pairs(clouds, first, second)
    named = sorted({*map(int, first), *map(int, second)})
    under_sif = _values(_weighted(clouds, weights, named), first, second)
    common = common_component(clouds, weights)
    under_full_sif = _values(_weighted(clouds, weights, named, common), first, second)
    rows = []
    for k, (i, j) in enumerate(zip(first, second, strict=True)):
        d_mu, d_sigma = float(plain.d_mu[k]), float(plain.d_sigma[k])
        rows.append(
            PairTightness(
                first=int(i),
                second=int(j),
                d_mu=d_mu,
                d_sigma=d_sigma,
                socm=float(plain.socm[k]),
                w2_squared=exact_w2_squared(clouds[int(i)], clouds[int(j)]),
                gaussian_w2_squared=4 * (d_mu + d_sigma),
                d_mu_sif=under_sif[k][0],
                d_sigma_sif=under_sif[k][1],
                socm_sif=under_sif[k][2],
                d_mu_sif_removed=under_full_sif[k][0],
                d_sigma_sif_removed=under_full_sif[k][1],
                socm_sif_removed=under_full_sif[k][2],
            )
        )
    return rows


def exact_w2_squared(a: TokenCloud, b: TokenCloud) -> float | None:
    """Squared 2-Wasserstein distance between two scaled clouds with equal weights; None if the solver gave up."""
    import ot
    from scipy.spatial.distance import cdist

    X, Y = (cloud.centred + cloud.unit_mean for cloud in (a, b))
    costs = cdist(X, Y, "sqeuclidean")
    value, log = ot.emd2(
        np.full(a.n, 1 / a.n), np.full(b.n, 1 / b.n), costs, numItermax=MAX_PIVOTS, log=True, check_marginals=False
    )
    return None if log["warning"] else float(value)


def common_component(clouds: Mapping[int, TokenCloud], weights: Mapping[int, np.ndarray]) -> np.ndarray:
    """(d,) float64, the first right singular vector of all texts' weighted means, up to sign."""
    means = [
        weights[position] @ cloud.tokens.astype(np.float64) / cloud.n for position, cloud in sorted(clouds.items())
    ]
    return np.asarray(np.linalg.svd(np.stack(means), full_matrices=False)[2][0])


def _values(
    clouds: Mapping[int, TokenCloud], first: Sequence[int] | np.ndarray, second: Sequence[int] | np.ndarray
) -> list[tuple[float | None, float | None, float | None]]:
    """(d_μ, d_Σ, SOCM) of each pair; None if either text has no cloud."""
    places = [k for k, (i, j) in enumerate(zip(first, second, strict=True)) if int(i) in clouds and int(j) in clouds]
    found: list[tuple[float | None, float | None, float | None]] = [(None, None, None)] * len(first)
    if places:
        block = given_pairs(clouds, [int(first[k]) for k in places], [int(second[k]) for k in places])
        for k, *values in zip(places, block.d_mu, block.d_sigma, block.socm, strict=True):
            found[k] = (float(values[0]), float(values[1]), float(values[2]))
    return found


def _weighted(
    clouds: Mapping[int, TokenCloud],
    weights: Mapping[int, np.ndarray],
    positions: Iterable[int],
    without: np.ndarray | None = None,
) -> dict[int, TokenCloud]:
    found = {}
    for position in positions:
        try:
            tokens = clouds[position].tokens
            if without is not None:
                X = tokens.astype(np.float64)
                tokens = X - np.outer(X @ without, without)
            found[position] = token_cloud(position, tokens, weights[position])
        except NotMeasurable:
            continue
    return found


# The mean divided by √n has the same direction as the mean.
POOLINGS: tuple[Pooling, ...] = ("mean", "cls", "lasttoken", "max", "weightedmean")
# Groups of the jackknife over texts: each needs a Spearman's ρ over tens of thousands of pairs.
GROUPS = 25


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
    parts = [np.ones(len(angles), dtype=bool), *_without_each(groups[first], groups[second])]
    wanted = [centred_ranks(angles[part]) for part in parts]
    found = []
    for place, name in enumerate(POOLINGS):
        cosines = (directions[:, place] @ directions[:, place].T)[first, second]
        ranks = (centred_ranks(1 - cosines[part]) for part in parts)
        rho, *without = map(correlation, ranks, wanted)
        half = jackknife_half_width(np.array(without)) if without and None not in without else None
        mean = mean_with_interval(kept[:, place])
        agreement = Estimate() if rho is None else Estimate.around(rho, half).within(-1.0, 1.0)
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


def _without_each(first: np.ndarray, second: np.ndarray) -> list[np.ndarray]:
    """(pairs,) which pairs are left without each group of texts, for a jackknife; none for few groups.

    Args:
        first, second: (pairs,) the group of each pair's texts.
    """
    count = 1 + int(max(first.max(), second.max()))
    return [] if count < MIN_UNITS else [(first != group) & (second != group) for group in range(count)]
