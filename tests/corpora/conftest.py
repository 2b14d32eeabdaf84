"""Fixtures of the corpus tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_hub import FakeHub, serving
from model_hub import point_to


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


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub on localhost and an empty cache, in place of the real ones."""
    from huggingface_hub import constants

    with serving(FakeHub()) as fake:
        point_to(fake.endpoint, monkeypatch)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub-cache"))
        yield fake
