"""An index of the tiny checkpoint's own vectors, as anybody would export one."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tiny import ENGLISH, tiny_bert

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint

ROWS = 600


def encoded(checkpoint: Checkpoint, texts: list[str]) -> np.ndarray:
    return Encoder(checkpoint).encode_texts(texts)


@dataclass(frozen=True)
class TinyIndex:
    """What an index was made of.

    Attributes:
        folder: of the checkpoint.
        other: of another revision of it, in the same dimension.
    """

    folder: Path
    other: Path
    texts: list[str]
    vectors: np.ndarray
    others: np.ndarray

    def load(self, other: bool = False) -> Checkpoint:
        return load_checkpoint(str(self.other if other else self.folder), LoadOptions(device="cpu"))


@pytest.fixture(scope="session")
def tiny_index(tmp_path_factory: pytest.TempPathFactory) -> TinyIndex:
    place = tmp_path_factory.mktemp("stored")
    folder, other = tiny_bert(place / "tiny"), tiny_bert(place / "other", seed=7)
    words = [word for word in ENGLISH.split() if len(word) > 3]
    pairs = itertools.islice(itertools.permutations(words, 2), 0, None, 11)
    texts = [f"the {one} and {other} of {words[n % 97]} {n}" for n, (one, other) in enumerate(pairs)][:ROWS]
    ours, theirs = (encoded(load_checkpoint(str(one), LoadOptions(device="cpu")), texts) for one in (folder, other))
    return TinyIndex(folder, other, texts, ours, theirs)
