"""SOCM over all pairs of 1 000 texts, rows written; beside it, per pair, the d x d route with cached square roots.

Work of one pair, n₁ = n₂ = 24, d = 384, float64: product 2·24²·384 = 0.44 MFLOP, Gram and its eigenvalues about 0.05;
499 500 pairs: 245 GFLOP. The d x d route: two d³ products and an eigendecomposition, about 10·d³ = 570 MFLOP a pair.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.measured import Measured, sentences
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.socm import TokenCloud, all_pairs, summarise, token_cloud
from embaudit.warehouse.stage import write_columns

TEXTS = 1_000
SAMPLED = 12
SCHEMA = {"first": "int32", "second": "int32", "d_mu": "float64", "d_sigma": "float64", "socm": "float64"}


def run() -> Iterator[Measured]:
    encoder = Encoder(load_checkpoint("packaged:all-MiniLM-L6-v2"))
    texts, origin = sentences(TEXTS)
    started = time.perf_counter()
    clouds = [token_cloud(index, X) for index, X in encoder.token_embeddings(texts)]
    embedded = time.perf_counter() - started
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        rows = write_columns(Path(folder) / "pairs.parquet", (asdict(block) for block in all_pairs(clouds)), SCHEMA)
        seconds = time.perf_counter() - started
    clouds.sort(key=lambda cloud: cloud.position)
    mean = summarise(np.array([cloud.trace for cloud in clouds]), all_pairs(clouds)).socm_mean
    yield Measured(
        f"SOCM, {len(texts)} texts of {origin} ({np.mean([c.n for c in clouds]):.1f} tokens), {rows:,} pairs, written",
        f"{seconds:.1f} s for the pairs + {embedded:.1f} s for the embeddings; mean SOCM {mean:.4f}",
        "< 60 s",
    )
    chosen = [clouds[index] for index in np.random.default_rng(0).choice(len(clouds), SAMPLED, replace=False)]
    slow, values = _by_square_roots(chosen)
    quick = {
        (int(i), int(j)): float(value)
        for block in all_pairs(chosen)
        for i, j, value in zip(block.first, block.second, block.d_sigma, strict=True)
    }
    worst = max(abs(quick[pair] - value) for pair, value in values.items())
    exact = max(abs(quick[pair] - value) for pair, value in _by_singular_values(chosen).items())
    yield Measured(
        "SOCM, one pair: nuclear norm against d × d with cached square roots",
        f"{1e6 * seconds / rows:.0f} µs against {1e3 * slow:.1f} ms: {slow * rows / seconds:,.0f}×; largest difference "
        f"{worst:.0e} to it (it takes roots of d − n eigenvalues that are zero), {exact:.0e} to singular values",
        "≤ 1e-7",
    )


def _by_square_roots(clouds: list[TokenCloud]) -> tuple[float, dict[tuple[int, int], float]]:
    """Median seconds a pair, and d_Σ of each pair, from d x d matrices with Σ^½ computed once a text."""
    covariances = [cloud.centred.T @ cloud.centred / cloud.n for cloud in clouds]
    roots = []
    for covariance in covariances:
        values, vectors = np.linalg.eigh(covariance)
        roots.append(vectors * np.sqrt(values.clip(min=0)) @ vectors.T)
    seconds, found = [], {}
    for i, j in combinations(range(len(clouds)), 2):
        started = time.perf_counter()
        overlap = np.sqrt(np.linalg.eigvalsh(roots[i] @ covariances[j] @ roots[i]).clip(min=0)).sum()
        seconds.append(time.perf_counter() - started)
        pair = tuple(sorted((clouds[i].position, clouds[j].position)))
        found[pair[0], pair[1]] = (clouds[i].trace + clouds[j].trace - 2 * overlap) / 4
    return statistics.median(seconds), found


def _by_singular_values(clouds: list[TokenCloud]) -> dict[tuple[int, int], float]:
    """d_Σ of each pair from the singular values themselves, which lose no digits to a Gram matrix."""
    found = {}
    for one, two in combinations(sorted(clouds, key=lambda cloud: cloud.position), 2):
        nuclear = np.linalg.svd(one.centred @ two.centred.T, compute_uv=False).sum()
        overlap = nuclear / np.sqrt(one.n * two.n)
        found[one.position, two.position] = (one.trace + two.trace - 2 * overlap) / 4
    return found
