"""A store that jobs write to, the revision that built it, and the test server."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from exported_index import ROWS, Index
from tiny import ENGLISH, tiny_bert

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("models")
    return tiny_bert(folder / "model"), tiny_bert(folder / "other", seed=7)


@pytest.fixture
def index(tmp_path: Path, models: tuple[Path, Path]) -> Index:
    words = [word for word in ENGLISH.split() if len(word) > 3]
    pairs = itertools.islice(itertools.permutations(words, 2), 0, None, 11)
    texts = [f"the {first} and {second} of {words[n % 97]} {n}" for n, (first, second) in enumerate(pairs)][:ROWS]

    def encode(model: Path, some: Sequence[str]) -> np.ndarray:
        encoder = Encoder(load_checkpoint(str(model), LoadOptions(device="cpu")))
        return np.asarray(encoder.encode_texts(list(some)), np.float32)

    made = Index(tmp_path / "index.parquet", *models, texts, encode)
    made.write()
    return made


@pytest.fixture(autouse=True)
def _red(monkeypatch: pytest.MonkeyPatch) -> None:
    """As runs are by default."""
    monkeypatch.setenv("EMBAUDIT_PROBLEMS", "fail")
