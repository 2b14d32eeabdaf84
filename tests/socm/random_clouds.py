"""What the tests of SOCM share: random clouds, a table of all their pairs, and the definition by d x d matrices."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from embaudit.measures.socm.clouds import TokenCloud, token_cloud
from embaudit.measures.socm.nuclear import NuclearNorms
from embaudit.measures.socm.pairs import all_pairs

Values = tuple[float, float, float]


def random_texts(seed: int, count: int, d: int, longest: int = 12, offset: float = 1.5) -> list[np.ndarray]:
    """Token embeddings around a common direction, so that means are long enough to divide by."""
    generator = np.random.default_rng(seed)
    direction = generator.normal(size=d)
    return [
        generator.normal(size=(int(generator.integers(1, longest + 1)), d)) + offset * direction for _ in range(count)
    ]


def clouds_from(texts: list[np.ndarray]) -> list[TokenCloud]:
    return [token_cloud(position, X) for position, X in enumerate(texts)]


def table_of(
    clouds: list[TokenCloud], shards: int = 1, norms: NuclearNorms | None = None
) -> dict[tuple[int, int], Values]:
    """All pairs as a mapping (first, second) -> (d_mu, d_sigma, socm)."""
    table: dict[tuple[int, int], Values] = {}
    for shard in range(shards):
        for block in all_pairs(clouds, shard=shard, shards=shards, norms=norms):
            for i, j, *values in zip(block.first, block.second, block.d_mu, block.d_sigma, block.socm, strict=True):
                assert (int(i), int(j)) not in table, "a pair came twice"
                table[int(i), int(j)] = (float(values[0]), float(values[1]), float(values[2]))
    return table


def by_definition(X1: np.ndarray, X2: np.ndarray) -> Values:
    """Equation by equation: d x d covariances and scipy's matrix square roots."""
    X1, X2 = X1 / np.linalg.norm(X1.mean(0)), X2 / np.linalg.norm(X2.mean(0))
    mu1, mu2 = X1.mean(0), X2.mean(0)
    S1, S2 = (np.cov(X.T, bias=True).reshape(X.shape[1], -1) for X in (X1, X2))
    root = np.real(scipy.linalg.sqrtm(S1))
    cross = np.real(scipy.linalg.sqrtm(root @ S2 @ root))
    d_mu = float(np.square(mu1 - mu2).sum() / 4)
    d_sigma = float(np.trace(S1 + S2 - 2 * cross) / 4)
    return d_mu, d_sigma, (1 - d_mu) * d_sigma
