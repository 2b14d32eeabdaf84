"""A tiny checkpoint of 128 positions that is configured to read 64 tokens, on one thread, and texts of many lengths."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tiny import tiny_bert, wordpiece_vocabulary

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Models this small run slower on several threads than on one."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="package")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    import torch

    checkpoint = load_checkpoint(str(tiny_bert(tmp_path_factory.mktemp("length") / "bert")), LoadOptions(device="cpu"))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in checkpoint.model.encoder.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return checkpoint


@pytest.fixture
def tiny_encoder(tiny: Checkpoint) -> Encoder:
    return Encoder(tiny)


@pytest.fixture(scope="package")
def contents() -> list[list[int]]:
    """Token ids of twenty texts of 5 to 195 tokens."""
    generator = np.random.default_rng(0)
    rows = len(wordpiece_vocabulary())
    return [generator.integers(9, rows, size=length).tolist() for length in range(5, 205, 10)]
