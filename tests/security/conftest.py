"""Fixtures of the security tests: a marker that hostile code would write, and no network."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.fixture
def victim(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    """A checkpoint of one's own to plant things in."""
    return Path(shutil.copytree(tiny_checkpoint, tmp_path / "victim"))
