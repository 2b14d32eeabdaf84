"""Fixtures of the corpus tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def shared_data(shared: Path) -> Path:
    """The real data sets."""
    return shared / "data"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes | str], str]:
    """Write a file below tmp_path and return its path as a person would type it."""

    def write_file(name: str, content: bytes | str) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return write_file
