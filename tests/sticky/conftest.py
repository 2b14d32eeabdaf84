"""Fixtures of the sticky-token tests: a tiny checkpoint, and threads that suit its size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tiny import tiny_bert

from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint


@pytest.fixture(scope="module")
def one_thread() -> Iterator[int]:
    """Models this small run slower on several threads than on one; gives the number that there were."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield threads
    torch.set_num_threads(threads)


@pytest.fixture
def all_threads(one_thread: int) -> Iterator[None]:
    """For a test of the real checkpoint among those of tiny ones."""
    import torch

    torch.set_num_threads(one_thread)
    yield
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    return load_checkpoint(str(tiny_bert(tmp_path_factory.mktemp("sticky") / "bert")), LoadOptions(device="cpu"))
