"""The packaged checkpoint's texts with their vectors, a store of them on disk, and a walk in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import embaudit
from benchmarks.crowding import Remembering
from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.corpora.load import SAMPLE_FOLDER
from embaudit.measures.quality.material import sample_material
from embaudit.questions.why.report import WhyReport

PACKAGED = "packaged:all-MiniLM-L6-v2"


@dataclass(frozen=True)
class Kept:
    """Texts with their vectors and ids, and queries that are known to find one of them first."""

    ids: list[str]
    texts: list[str]
    vectors: np.ndarray
    queries: list[tuple[str, str]]
    encoder: Encoder

    def of(self, *texts: str) -> np.ndarray:
        return self.encoder.encode_texts(list(texts))

    def with_rows(
        self, rows: Sequence[tuple[str, str, np.ndarray | None]]
    ) -> tuple[list[str], list[str], list[object]]:
        """Columns with more rows, or others of the same id."""
        table: dict[str, tuple[str, object]] = {
            one: (text, vector.tolist()) for one, text, vector in zip(self.ids, self.texts, self.vectors, strict=True)
        }
        for one, text, vector in rows:
            table[one] = (text, None if vector is None else vector.tolist())
        return list(table), [text for text, _ in table.values()], [vector for _, vector in table.values()]


@pytest.fixture(scope="session")
def kept(minilm: Checkpoint) -> Kept:
    encoder, function = Encoder(minilm), packaged()
    collection = sample_material().collections[0]
    texts = [*collection.documents, *(SAMPLE_FOLDER / "wikipedia.txt").read_text("utf-8").splitlines()]
    texts = list(dict.fromkeys(text for text in texts if text.strip()))
    # What reports ask for again is known then.
    vectors = function.encode(texts).vectors
    asked = function.encode(collection.queries).vectors
    first = (asked @ vectors.T).argmax(axis=1)
    ids = [f"row-{place}" for place in range(len(texts))]
    found = [
        (query, ids[place])
        for query, place, relevant in zip(collection.queries, first.tolist(), collection.relevant, strict=True)
        if place in relevant
    ]
    return Kept(ids, texts, vectors, found, encoder)


def parquet(columns: tuple[list[str], list[str], list[object]], folder: Path, **more: list[object]) -> Path:
    ids, texts, vectors = columns
    file = folder / "rows.parquet"
    pq.write_table(
        pa.table({"id": ids, "text": texts, "vector": pa.array(vectors, pa.list_(pa.float32())), **more}), file
    )
    return file


@cache
def packaged() -> Remembering:
    """The packaged checkpoint, which embeds each text once: every report asks for many of the same ones."""
    return Remembering(load_checkpoint(PACKAGED, LoadOptions(device="cpu")))


def walked(store: Path, query: str, expect: str, **given: object) -> WhyReport:
    return embaudit.why(store, packaged(), query, expect, **given)  # type: ignore[arg-type]


def named(report: WhyReport) -> tuple[str, str]:
    (one,) = report.lost
    assert one.sentence
    return one.lost, one.cause
