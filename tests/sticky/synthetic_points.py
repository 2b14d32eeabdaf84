"""Points and sums made from given similarities, without a model."""

from __future__ import annotations

import numpy as np

from embaudit.measures.sticky.insertion import SentenceDraw
from embaudit.measures.sticky.moments import DrawSums, Moments
from embaudit.measures.sticky.points import Points


def points_of(
    before: np.ndarray, u: float, *, groups: int = 1, clusters: np.ndarray | list[int] | None = None
) -> Points:
    """(K, A) similarities, or (K,) with one anchor a draw; anchors are dealt among the groups in turn."""
    before = np.asarray(before, dtype=np.float64).reshape(len(before), -1)
    draws, anchors = before.shape
    return Points(
        tuple(SentenceDraw("suffix", np.array([-1]), (draw,)) for draw in range(draws)),
        np.zeros((anchors, 1), dtype=np.float32),
        np.broadcast_to(np.arange(anchors), before.shape),
        before,
        np.arange(anchors) % groups,
        np.arange(draws) if clusters is None else np.asarray(clusters),
        u,
        float(before.mean()),
    )


def moments_of(points: Points, after: np.ndarray) -> Moments:
    """Of (T, K, A) similarities after insertion, or (T, K) with one anchor a draw."""
    after = np.asarray(after).reshape(len(after), len(points.draws), -1)
    sums = [DrawSums(points, draw)(after[:, draw].astype(np.float32)) for draw in range(len(points.draws))]
    return Moments(np.stack(sums, axis=1))


def slow_benjamini_hochberg(p_values: list[float]) -> list[float]:
    """q of p: the smallest m·p'/#{p'' ≤ p'} over all p' from p on."""
    m = len(p_values)
    return [min(min(1.0, m * q / sum(r <= q for r in p_values)) for q in p_values if q >= p) for p in p_values]


def cosines(count: int, seed: int) -> np.ndarray:
    """Of so many vectors with each other."""
    vectors = np.random.default_rng(seed).normal(size=(count, 5)) + 0.3
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors @ vectors.T
