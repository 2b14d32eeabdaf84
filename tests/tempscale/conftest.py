"""The tiny models of every family, which stand beside the anatomy's tests, on one thread."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1] / "anatomy"))


@pytest.fixture(autouse=True, scope="module")
def _on_one_thread(one_thread: int) -> None:
    """All tests of this folder run tiny models."""
