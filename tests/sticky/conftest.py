"""A fixture of the sticky-token tests: the threads that suit a real checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture
def all_threads(one_thread: int) -> Iterator[None]:
    """For a test of the real checkpoint among those of tiny ones."""
    import torch

    torch.set_num_threads(one_thread)
    yield
    torch.set_num_threads(1)
