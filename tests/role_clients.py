"""LangChain's shape over a checkpoint, with what it does to queries alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions
from embaudit.embedders.function import EmbeddingFunction
from embaudit.embedders.opened import CallOptions, open_function


@dataclass
class Client:
    """What a program has in its hands.

    Attributes:
        texts, rows: what it does to a query before it is encoded, and to its vector.
        documents: what it does to documents.
        known: vectors of queries, as they were read: reports ask for the same ones, each alone.
    """

    checkpoint: Checkpoint
    texts: Callable[[str], str] = str
    rows: Callable[[np.ndarray], np.ndarray] = np.asarray
    documents: Callable[[str], str] = str
    known: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = (
            Encoder(self.checkpoint).encode_texts([self.documents(one) for one in texts]).tolist()
        )
        return found

    def embed_query(self, text: str) -> list[float]:
        read = self.texts(text)
        if read not in self.known:
            self.known[read] = Encoder(self.checkpoint).encode_texts([read])[0]
        found: list[float] = self.rows(self.known[read]).tolist()
        return found


def opened(client: object, asked: CallOptions | None = None) -> EmbeddingFunction:
    return open_function(client, LoadOptions(device="cpu"), asked or CallOptions())


def fail(_: str) -> str:
    raise ValueError("no queries here")
