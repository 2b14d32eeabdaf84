"""SOCM over all pairs of 1 000 texts, rows written; beside it, per pair, the d x d route with cached square roots.

Work of one pair, n₁ = n₂ = 24, d = 384, float64: product 2·24²·384 = 0.44 MFLOP, Gram and its eigenvalues about 0.05;
499 500 pairs: 245 GFLOP. The d × d route: two d³ products and an eigendecomposition, about 10·d³ = 570 MFLOP a pair.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import numpy as np

from benchmarks.measured import Measured, sentences
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora.load import load_corpus
from embaudit.measures.socm.clouds import TokenCloud, clouds_of
from embaudit.measures.socm.nuclear import Polar
from embaudit.measures.socm.pairs import Accuracy, all_pairs, checked
from embaudit.measures.socm.summary import summarise
from embaudit.steps.staging.stage import write_columns

TEXTS = 1_000
SAMPLED = 12
SCHEMA = {"first": "int32", "second": "int32", "d_mu": "float64", "d_sigma": "float64", "socm": "float64"}
PASSAGES = Path(__file__).resolve().parents[2] / "shared/data/msmarco/passages-5k"


def run() -> Iterator[Measured]:
    encoder = Encoder(load_checkpoint("packaged:all-MiniLM-L6-v2"))
    texts, origin = sentences(TEXTS)
    line, clouds, seconds, rows = _all_pairs(encoder, texts, origin, "≤ 25 s")
    yield line
    yield from _against_square_roots(clouds, seconds / rows)
    yield from growth()
    if PASSAGES.is_dir():
        passages = [text.text for text in load_corpus("msmarco", str(PASSAGES), limit=TEXTS).texts]
        yield _all_pairs(encoder, passages, "MS MARCO", "≤ 180 s")[0]


def growth() -> Iterator[Measured]:
    """Cost of a pair as N, n and d grow, on clouds of random tokens, all of one length."""
    for axis, (name, changes) in enumerate(
        (
            ("N", [(100, 24, 384), (200, 24, 384), (400, 24, 384), (800, 24, 384)]),
            ("n", [(400, 12, 384), (400, 24, 384), (200, 48, 384), (120, 96, 384), (60, 192, 384)]),
            ("d", [(200, 24, 192), (200, 24, 384), (200, 24, 768), (200, 24, 1536)]),
        )
    ):
        found = []
        for N, n, d in changes:
            generator = np.random.default_rng(0)
            clouds, _ = clouds_of((i, generator.normal(size=(n, d)).astype(np.float32) + 1) for i in range(N))
            started = time.perf_counter()
            pairs = sum(len(block.socm) for block in all_pairs(clouds))
            each = 1e6 * (time.perf_counter() - started) / pairs
            found.append(f"{(N, n, d)[axis]}: {each:.0f} µs")
        fixed = ", ".join(text for key, text in (("n", "n = 24"), ("d", "d = 384")) if key != name)
        yield Measured(f"SOCM, one pair as {name} grows ({fixed})", "; ".join(found))


def _all_pairs(
    encoder: Encoder, texts: Sequence[str], origin: str, target: str
) -> tuple[Measured, list[TokenCloud], float, int]:
    started = time.perf_counter()
    clouds, _ = clouds_of((index, X.copy()) for index, X in encoder.token_embeddings(texts))
    embedded = time.perf_counter() - started
    accuracy = Accuracy()
    blocks = checked(all_pairs(clouds), {c.position: c for c in clouds}, len(clouds) * (len(clouds) - 1) // 2, accuracy)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        rows = write_columns(Path(folder) / "pairs.parquet", (asdict(block) for block in blocks), SCHEMA)
        seconds = time.perf_counter() - started
    traces = np.array([cloud.trace for cloud in clouds])
    first = [cloud for cloud in clouds if cloud.position < 200]
    mean = summarise(traces[:200], all_pairs(first)).socm_mean
    line = Measured(
        f"SOCM, {len(texts)} texts of {origin} ({np.mean([c.n for c in clouds]):.1f} tokens), {rows:,} pairs, written",
        f"{seconds:.1f} s for the pairs + {embedded:.1f} s for the embeddings; d_Σ within {accuracy.largest:.0e} of "
        f"singular values on {accuracy.pairs} random pairs; mean SOCM of the first 200 texts {mean:.4f}",
        target,
    )
    return line, clouds, seconds, rows


def _against_square_roots(clouds: list[TokenCloud], each: float) -> Iterator[Measured]:
    chosen = [clouds[index] for index in np.random.default_rng(0).choice(len(clouds), SAMPLED, replace=False)]
    slow, values = _by_square_roots(chosen)
    quick, polar = (_by_blocks(chosen, norms) for norms in (None, Polar("cpu")))
    worst = max(abs(quick[pair] - value) for pair, value in values.items())
    by_singular_values = _by_singular_values(chosen)
    exact, other = (max(abs(way[pair] - value) for pair, value in by_singular_values.items()) for way in (quick, polar))
    yield Measured(
        "SOCM, one pair: nuclear norm against d × d with cached square roots",
        f"{1e6 * each:.0f} µs against {1e3 * slow:.1f} ms: {slow / each:,.0f}×; largest difference "
        f"{worst:.0e} to it (it takes roots of d − n eigenvalues that are zero), {exact:.0e} to singular values; "
        f"by the polar iteration that a GPU runs {other:.0e}",
        "≤ 1e-7",
    )


def _by_blocks(clouds: list[TokenCloud], norms: Polar | None) -> dict[tuple[int, int], float]:
    return {
        (int(i), int(j)): float(value)
        for block in all_pairs(clouds, norms=norms)
        for i, j, value in zip(block.first, block.second, block.d_sigma, strict=True)
    }


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
