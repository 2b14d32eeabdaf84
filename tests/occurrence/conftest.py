"""The tiny checkpoint, and threads that suit it, are those of the sticky-token tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint


@pytest.fixture(scope="session")
def tiny(tiny_checkpoint: Path) -> Checkpoint:
    return load_checkpoint(str(tiny_checkpoint), LoadOptions(device="cpu"))


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
