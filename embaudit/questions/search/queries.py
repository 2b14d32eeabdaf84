"""What a store is asked for: vectors of queries, or of rows that it holds, which leave their own row out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.vectors.sample import SomeRows

# Of a stored text that is asked for as a query: about as many words as people type.
WORDS = 12


@dataclass(frozen=True)
class Queries:
    """Queries of one search.

    Attributes:
        vectors: (Q, D) float32.
        rows: (Q,) number of the row that each one is; −1 for one that is none.
        ids: of these rows; None for a query that is none.
        what: as in "200 …".
    """

    vectors: np.ndarray
    rows: np.ndarray
    ids: tuple[object, ...]
    what: str

    def __len__(self) -> int:
        return len(self.vectors)

    def cut(self, dimension: int) -> Queries:
        """The first numbers of each, as an index of cut vectors is asked (Matryoshka)."""
        what = f"{self.what}, cut to {dimension:,} numbers"
        return Queries(np.ascontiguousarray(self.vectors[:, :dimension]), self.rows, self.ids, what)

    def first(self, most: int) -> Queries:
        return Queries(self.vectors[:most], self.rows[:most], self.ids[:most], self.what)


def of_rows(rows: SomeRows) -> Queries:
    """Rows that ask for their neighbours."""
    return Queries(np.asarray(rows.vectors, np.float32), rows.numbers, rows.ids, "stored vectors")


def of_texts(function: EmbeddingFunction, texts: Sequence[str], what: str) -> Queries:
    """Texts, encoded as queries; those without a vector are left out."""
    return of_vectors(function.encode(list(texts), "query").vectors, what)


def of_vectors(vectors: np.ndarray, what: str = "queries, given as vectors") -> Queries:
    """Those of (Q, D) that point somewhere."""
    usable = np.isfinite(vectors).all(axis=1) & vectors.any(axis=1)
    kept = np.asarray(vectors[usable], np.float32)
    return Queries(kept, np.full(len(kept), -1), (None,) * len(kept), what)


def beginnings(rows: SomeRows, most: int) -> list[str]:
    """The first words of stored texts, for want of queries."""
    texts = [" ".join((text or "").split()[:WORDS]) for text in rows.texts]
    return [text for text in dict.fromkeys(texts) if text][:most]
