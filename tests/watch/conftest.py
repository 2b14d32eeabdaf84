"""Watch lists, tiny checkpoints that change, and a hub on localhost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from index_library import Library
from tiny import tiny_bert

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.questions.audit import AuditSettings
from embaudit.watch.watch_list import WatchList, read_watch_list


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.fixture(autouse=True)
def _red(monkeypatch: pytest.MonkeyPatch) -> None:
    """As nights are by default."""
    monkeypatch.setenv("EMBAUDIT_PROBLEMS", "fail")


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """A tiny checkpoint of so many a seed; not to be changed."""
    made: dict[int, Path] = {}

    def folder(seed: int) -> Path:
        if seed not in made:
            made[seed] = tiny_bert(tmp_path_factory.mktemp("weights") / str(seed), seed=seed)
        return made[seed]

    return folder


@pytest.fixture
def put(weights: Callable[[int], Path]) -> Callable[[Path, int], Path]:
    """Copy the checkpoint of a seed to a place, over what is there."""

    def copy(place: Path, seed: int = 0) -> Path:
        shutil.copytree(weights(seed), place, dirs_exist_ok=True)
        return place

    return copy


@pytest.fixture
def listed(tmp_path: Path) -> Callable[[str], WatchList]:
    """A watch list of this text, read from a file."""

    def read(text: str) -> WatchList:
        path = tmp_path / "watch.toml"
        path.write_text(text)
        return read_watch_list(path)

    return read


@pytest.fixture
def settings() -> AuditSettings:
    return AuditSettings()


@pytest.fixture
def library(
    tmp_path: Path,
    put: Callable[[Path, int], Path],
    weights: Callable[[int], Path],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Library:
    """Without rows yet; in a home of its own, if the test has none."""
    if "home" not in request.fixturenames:
        monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))
    put(tmp_path / "model", 0)

    def of(seed: int) -> Callable[[Sequence[str]], np.ndarray]:
        encoder = Encoder(load_checkpoint(str(weights(seed)), LoadOptions(device="cpu")))
        return lambda texts: encoder.encode_texts(list(texts))

    return Library(tmp_path, tmp_path / "library.sqlite", (of(0), of(1)))
