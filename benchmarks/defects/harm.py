"""What a copy costs: Spearman's ρ on scored pairs, and how far it moves each kind of text from the good checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.agreement import KINDS, long_text
from embaudit.corpora.downstream import unit_rows
from embaudit.corpora.load import load_corpus
from embaudit.statistics import spearman
from embaudit.words.errors import EmbauditError, one_line

# A defect counts from this on: a hundredth of Spearman's ρ, or of a cosine.
COUNTS = 0.01
# Words of the long texts: below and beyond the good checkpoint's limit of 256 tokens.
LONG = (20, 150, 400)
DOCUMENTS = 4


@dataclass(frozen=True)
class Pairs:
    firsts: tuple[str, ...]
    seconds: tuple[str, ...]
    scores: np.ndarray


def scored_pairs(source: str, most: int) -> Pairs:
    """At most so many scored pairs, evenly spread over a corpus: its parts differ in difficulty."""
    found = [pair for pair in load_corpus("sts", source).pairs if pair.score is not None]
    chosen = [found[place] for place in np.linspace(0, len(found) - 1, min(most, len(found))).astype(int)]
    return Pairs(
        tuple(pair.first for pair in chosen),
        tuple(pair.second for pair in chosen),
        np.array([pair.score for pair in chosen]),
    )


@dataclass(frozen=True)
class Harm:
    """How much worse than the good checkpoint a copy is.

    Attributes:
        lost: Spearman's ρ lost, by data set; all of it if its texts cannot be encoded.
        moved: mean 1 − cos over the texts of a kind; infinite if they cannot be encoded or have another dimension.
        refused: why the copy cannot be loaded; nothing else is measured then.
    """

    lost: Mapping[str, float] = field(default_factory=dict)
    moved: Mapping[str, float] = field(default_factory=dict)
    refused: str = ""

    @property
    def farthest(self) -> tuple[str, float]:
        """The kind of text that is moved most, and by how much."""
        return max(self.moved.items(), key=lambda item: item[1])

    @property
    def counts(self) -> bool:
        return bool(self.refused) or max(self.lost.values()) >= COUNTS or self.farthest[1] > COUNTS


class Yardstick:
    """The good checkpoint's scores and vectors, encoded once.

    Args:
        data: scored pairs by the name of their data set.
    """

    def __init__(self, good: Path, data: Mapping[str, Pairs]) -> None:
        self.data = data
        documents = [text.text for text in load_corpus("longdocs").texts]
        self.kinds = {
            **KINDS,
            "long": tuple(long_text(words) for words in LONG),
            # Their ends are about something else than their beginnings.
            "documents": tuple(sorted(documents, key=len)[-DOCUMENTS:]),
        }
        encoder = _encoder(good, "float32")
        self.scores = {name: _score(encoder, pairs) for name, pairs in data.items()}
        self.vectors = {kind: unit_rows(encoder.encode_texts(texts)) for kind, texts in self.kinds.items()}

    def harm(self, copy: Path, dtype: str) -> Harm:
        """What is lost with the copy in a folder, loaded in this precision."""
        try:
            encoder = _encoder(copy, dtype)
        except EmbauditError as error:
            return Harm(refused=one_line(error).replace(str(copy), "the folder"))
        lost = {name: self.scores[name] - _score(encoder, pairs) for name, pairs in self.data.items()}
        return Harm(lost, {kind: self._moved(encoder, kind, texts) for kind, texts in self.kinds.items()})

    def _moved(self, encoder: Encoder, kind: str, texts: Sequence[str]) -> float:
        good = self.vectors[kind]
        try:
            vectors = encoder.encode_texts(texts)
        except EmbauditError:
            return float("inf")
        if vectors.shape != good.shape:
            return float("inf")
        return float(np.mean(1 - np.einsum("nd,nd->n", unit_rows(vectors), good)))


def _encoder(folder: Path, dtype: str) -> Encoder:
    return Encoder(load_checkpoint(str(folder), LoadOptions(device="cpu", dtype=dtype)))


def _score(encoder: Encoder, pairs: Pairs) -> float:
    """Spearman's ρ of cosines and scores; 0 if a text cannot be encoded, or all cosines are one."""
    try:
        sides = [unit_rows(encoder.encode_texts(texts)) for texts in (pairs.firsts, pairs.seconds)]
    except EmbauditError:
        return 0.0
    return spearman(np.einsum("nd,nd->n", *sides), pairs.scores) or 0.0
