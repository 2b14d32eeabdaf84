"""A tiny checkpoint of 128 positions that is configured to read 64 tokens, on one thread, and texts of many lengths."""

from __future__ import annotations

import numpy as np
import pytest
from tiny import wordpiece_vocabulary

from embaudit.checkpoint import Checkpoint, Encoder


@pytest.fixture(autouse=True, scope="module")
def _on_one_thread(one_thread: int) -> None:
    """All tests of this folder run tiny models."""


@pytest.fixture(scope="package")
def tiny(tiny_with_biases: Checkpoint) -> Checkpoint:
    return tiny_with_biases


@pytest.fixture
def tiny_encoder(tiny: Checkpoint) -> Encoder:
    return Encoder(tiny)


@pytest.fixture(scope="package")
def contents() -> list[list[int]]:
    """Token ids of twenty texts of 5 to 195 tokens."""
    generator = np.random.default_rng(0)
    rows = len(wordpiece_vocabulary())
    return [generator.integers(9, rows, size=length).tolist() for length in range(5, 205, 10)]
