"""Tiny models on one thread."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True, scope="module")
def _on_one_thread(one_thread: int) -> None:
    """All tests of this folder run tiny models."""
