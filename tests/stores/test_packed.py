"""Bytes that say themselves what they are, and lines for Elasticsearch, are read as that and not as raw numbers."""

from __future__ import annotations

import array
import gzip
import hashlib
import io
import json
import os
import pickle
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_rows import ROWS, TEXTS

from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.words.errors import EmbauditError

D = 24
VECTORS = np.random.default_rng(0).normal(size=(ROWS, D)).astype(np.float32)


def _saved(vector: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, vector)
    return file.getvalue()


def _table(folder: Path, values: list[Any], more: str = "") -> Path:
    file = folder / "rows.db"
    with sqlite3.connect(file) as connection:
        connection.execute(f"CREATE TABLE docs (id INTEGER, text TEXT, embedding BLOB{more})")
        rows = zip(range(len(values)), TEXTS, values, strict=False)
        connection.executemany("INSERT INTO docs (id, text, embedding) VALUES (?, ?, ?)", rows)
    connection.close()
    return file


WRITTEN: dict[str, Callable[[np.ndarray], bytes]] = {
    "numpy.save": _saved,
    "numpy.save, a row": lambda vector: _saved(vector[None]),
    "numpy.save, float64": lambda vector: _saved(vector.astype(np.float64)),
    **{f"pickle {protocol}": lambda vector, p=protocol: pickle.dumps(vector, p) for protocol in range(2, 6)},  # type: ignore[misc]
    "pickled list": lambda vector: pickle.dumps(vector.tolist()),
    "pickled tuple": lambda vector: pickle.dumps(tuple(vector.tolist())),
    "pickled array": lambda vector: pickle.dumps(array.array("f", vector)),
    "JSON": lambda vector: json.dumps(vector.tolist()).encode(),
    "raw": lambda vector: vector.tobytes(),
}


@pytest.mark.parametrize("form", WRITTEN)
def test_vectors_in_bytes_are_the_vectors(form: str, tmp_path: Path) -> None:
    file = _table(tmp_path, [WRITTEN[form](one) for one in VECTORS])
    (batch,) = open_store(file).batches()
    places, vectors = batch.vectors[D]
    assert len(places) == ROWS
    np.testing.assert_allclose(vectors, VECTORS, atol=1e-6)


class _Planted:
    def __init__(self, command: str) -> None:
        self.command = command

    def __reduce__(self) -> Any:
        return os.system, (self.command,)


def test_nothing_that_is_pickled_runs(tmp_path: Path) -> None:
    values = [pickle.dumps(one) for one in VECTORS[:10]]
    values[7] = pickle.dumps(_Planted(f"touch {tmp_path}/ran"))
    (batch,) = open_store(_table(tmp_path, values)).batches()
    assert batch.vectors[D][0].tolist() == [row for row in range(10) if row != 7]
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("packed", "said"),
    [
        (lambda vector: zlib.compress(vector.tobytes()), r"compressed by zlib.*zlib\.decompress"),
        (lambda vector: gzip.compress(vector.tobytes()), r"compressed by gzip.*gzip\.decompress"),
        (lambda vector: b"PK\x03\x04" + vector.tobytes(), r"a zip file, as torch\.save and numpy\.savez write"),
        (lambda vector: pickle.dumps({"of": "something else"}), r"No value of column 'embedding' .* can be read"),
    ],
)
def test_what_is_not_opened_is_named(packed: Callable[[np.ndarray], bytes], said: str, tmp_path: Path) -> None:
    with pytest.raises(EmbauditError, match=said):
        list(open_store(_table(tmp_path, [packed(one) for one in VECTORS])).batches())


def test_a_hash_beside_the_vectors_is_none(tmp_path: Path) -> None:
    """As in llm's embeddings.db, whichever dimension the function has."""
    file = _table(tmp_path, [one.tobytes() for one in VECTORS], ", content_hash BLOB")
    with sqlite3.connect(file) as connection:
        for row in range(ROWS):
            digest = hashlib.md5(str(row).encode(), usedforsecurity=False).digest()
            connection.execute("UPDATE docs SET content_hash = ? WHERE id = ?", (digest, row))
    connection.close()
    for asked in (ReadOptions(), ReadOptions(dimension=D)):
        assert open_store(file, asked).columns["vector"] == "embedding"


def test_of_two_columns_of_bytes_the_one_of_the_functions_dimension_is_meant(tmp_path: Path) -> None:
    file = _table(tmp_path, [one.tobytes() for one in VECTORS], ", small BLOB")
    with sqlite3.connect(file) as connection:
        for row, vector in enumerate(VECTORS[:, :12]):
            connection.execute("UPDATE docs SET small = ? WHERE id = ?", (vector.tobytes(), row))
    connection.close()
    assert open_store(file, ReadOptions(dimension=12)).columns["vector"] == "small"
    assert open_store(file, ReadOptions(dimension=D)).columns["vector"] == "embedding"
    with pytest.raises(EmbauditError, match="2 columns that may be the vectors: embedding, small"):
        open_store(file)


def _indexed(row: int, document: Any) -> list[Any]:
    return [{"index": {"_index": "docs", "_id": str(row)}}, document]


LINES: dict[str, Callable[[int, Any], list[Any]]] = {
    "index": _indexed,
    "create": lambda row, document: [{"create": {"_id": str(row)}}, document],
    "update": lambda row, document: [{"update": {"_id": str(row)}}, {"doc": document, "doc_as_upsert": True}],
    "after a deletion": lambda row, document: [{"delete": {"_id": "gone"}}, *_indexed(row, document)],
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", LINES)
def test_lines_that_say_what_to_do_are_no_rows(form: str, packed: bool, tmp_path: Path) -> None:
    file = tmp_path / ("bulk.ndjson.gz" if packed else "bulk.json")
    rows = [{"content": text, "v": vector} for text, vector in zip(TEXTS, VECTORS.tolist(), strict=True)]
    lines = [json.dumps(line) for row, one in enumerate(rows) for line in LINES[form](row, one)]
    if form == "after a deletion":
        # A file may begin with documents.
        lines = lines[1:]
    content = "\n".join(lines).encode() + b"\n"
    file.write_bytes(gzip.compress(content) if packed else content)
    (batch,) = open_store(file).batches()
    places, vectors = batch.vectors[D]
    assert (batch.rows, len(places), batch.texts, batch.ids) == (ROWS, ROWS, TEXTS, [str(row) for row in range(ROWS)])
    np.testing.assert_allclose(vectors, VECTORS, atol=1e-6)


def test_a_document_without_what_to_do_with_it_is_named(tmp_path: Path) -> None:
    lines = [{"index": {"_id": "1"}}, {"v": VECTORS[0].tolist()}, {"v": VECTORS[1].tolist()}]
    (tmp_path / "bulk.ndjson").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    with pytest.raises(EmbauditError, match=r"Line 3 of .*bulk\.ndjson cannot be read"):
        list(open_store(tmp_path / "bulk.ndjson").batches())
