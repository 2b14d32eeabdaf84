"""A toy encoder with softmax attention: documents of tokens, one query for all, and a temperature."""

from __future__ import annotations

import numpy as np

TOKENS, DIMENSIONS = 20, 16


def documents(labels: list[str], noise: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Token vectors (n, TOKENS, DIMENSIONS) and their attention logits (n, TOKENS).

    The first token tells the class and has the largest logit; the others say anything.
    """
    generator = np.random.default_rng(seed)
    tokens = generator.normal(0, noise, size=(len(labels), TOKENS, DIMENSIONS))
    for row, label in enumerate(labels):
        tokens[row, 0] = 0
        tokens[row, 0, "abc".index(label)] = 1
    logits = generator.normal(0, 0.2, size=(len(labels), TOKENS))
    logits[:, 0] = 1.5
    return tokens, logits


def encode(tokens: np.ndarray, logits: np.ndarray, tau: float) -> np.ndarray:
    """softmax(logits/τ)-weighted means, (n, DIMENSIONS): a lower τ reads the first token more."""
    weights = np.exp(logits / tau - (logits / tau).max(axis=1, keepdims=True))
    return np.einsum("nt,ntd->nd", weights / weights.sum(axis=1, keepdims=True), tokens)
