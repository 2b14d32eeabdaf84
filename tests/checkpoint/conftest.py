"""Fixtures of the checkpoint tests: tiny checkpoints, the reference implementation, and no network."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tiny import tiny_bert
from tiny_models import TEXTS, build, load

from embaudit.checkpoint import Checkpoint


@pytest.fixture(autouse=True, scope="module")
def _on_one_thread(one_thread: int) -> None:
    """All tests of this folder run tiny models."""


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.fixture(scope="session")
def family_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a family's tiny model, built once; tests that change it copy it first."""

    @cache
    def folder(family: str) -> Path:
        return build(family, tmp_path_factory.mktemp("families") / family)

    return folder


@pytest.fixture(scope="session")
def _tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bert(tmp_path_factory.mktemp("tiny") / "bert")


@pytest.fixture
def bert(_tiny_bert: Path, tmp_path: Path) -> Path:
    """A sentence-transformers checkpoint of one's own: BERT, mean pooling, Normalize."""
    return Path(shutil.copytree(_tiny_bert, tmp_path / "bert"))


@pytest.fixture
def plain(family_folder: Callable[[str], Path], tmp_path: Path) -> Callable[..., Path]:
    """A copy of a family's plain transformers folder, to change and to declare modules in."""

    def copy(family: str = "bert", name: str = "model") -> Path:
        return Path(shutil.copytree(family_folder(family), tmp_path / name))

    return copy


@pytest.fixture(scope="session")
def loaded_bert(_tiny_bert: Path) -> Checkpoint:
    """The tiny BERT, loaded once for the tests that only run it."""
    return load(_tiny_bert)


@pytest.fixture(scope="session")
def reference() -> Callable[[Path], np.ndarray]:
    """What sentence-transformers makes of a folder: the vectors of ``TEXTS`` (or of the texts given)."""
    sentence_transformers = pytest.importorskip("sentence_transformers", reason="compares with sentence-transformers")

    def encode(folder: Path, texts: list[str] = TEXTS) -> np.ndarray:
        model = sentence_transformers.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        return np.asarray(model.encode(texts, batch_size=3, show_progress_bar=False))

    return encode
