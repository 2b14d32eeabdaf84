"""Vectors as tools write them: one layer deeper, in base64 or bytes, without names, as answers of a batch."""

from __future__ import annotations

import array
import base64
import csv
import gzip
import hashlib
import io
import json
import os
import pickle
import sqlite3
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from engine_rows import ROWS, TEXTS
from planted_calls import Calls

from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.words.errors import EmbauditError

D = 24
VECTORS = np.random.default_rng(0).normal(size=(ROWS, D)).astype(np.float32)
NUMBERS = [[float(str(one)) for one in row] for row in VECTORS]


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _rows(folder: Path, value: Callable[[int], Any], name: str = "embedding") -> Path:
    file = folder / "rows.jsonl"
    lines = (json.dumps({"id": row, "text": TEXTS[row], name: value(row)}) for row in range(ROWS))
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def _whole(folder: Path, content: Any) -> Path:
    file = folder / "rows.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


def _csv(folder: Path, value: Callable[[list[float]], str], suffix: str = ".csv", names: bool = True) -> Path:
    file, content = folder / f"rows{suffix}", io.StringIO()
    writer = csv.writer(content, delimiter="\t" if suffix == ".tsv" else ",")
    if names:
        writer.writerow(["id", "text", "embedding"])
    writer.writerows([row, text, value(vector)] for row, (text, vector) in enumerate(zip(TEXTS, NUMBERS, strict=True)))
    file.write_text(content.getvalue(), encoding="utf-8")
    return file


def _csv_of(folder: Path, rows: list[list[str]]) -> Path:
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["payload", "vector"], *rows])
    return folder / "rows.csv"


def _bson_vector(row: int) -> dict[str, Any]:
    raw = bytes([0x27, 0]) + struct.pack(f"<{D}f", *NUMBERS[row])
    return {"$binary": {"base64": _base64(raw), "subType": "09"}}


def _beside(folder: Path) -> Path:
    data = [{"__id__": f"chunk-{row}", "__created_at__": 1, "content": text} for row, text in enumerate(TEXTS)]
    return _whole(folder, {"embedding_dim": D, "data": data, "matrix": _base64(VECTORS.tobytes())})


def _words(numbers: list[float]) -> str:
    return " ".join(map(str, numbers))


def _latin(row: int) -> str:
    return VECTORS[row].tobytes().decode("latin-1")


def _frame(folder: Path, orient: Any) -> Path:
    pd.DataFrame({"text": TEXTS, "v": NUMBERS}).to_json(folder / "rows.json", orient=orient)
    return folder / "rows.json"


def _cells(row: int) -> dict[str, Any]:
    return {"type": "tensor", "cells": [{"address": {"x": str(x)}, "value": v} for x, v in enumerate(NUMBERS[row])]}


def _in_firestore(row: int) -> dict[str, Any]:
    values = {"arrayValue": {"values": [{"doubleValue": one} for one in NUMBERS[row]]}}
    return {"mapValue": {"fields": {"__type__": {"stringValue": "__vector__"}, "value": values}}}


def _objects(name: str = "v") -> list[dict[str, Any]]:
    return [{"id": row, "text": text, name: one} for row, (text, one) in enumerate(zip(TEXTS, NUMBERS, strict=True))]


def _in_fours(one: Callable[[int, slice], Any]) -> list[Any]:
    """The rows, four in one."""
    return [one(row, slice(row, row + 4)) for row in range(0, ROWS, 4)]


def _text(folder: Path, content: str) -> Path:
    (folder / "rows.json").write_text(content, encoding="utf-8")
    return folder / "rows.json"


FORMS: dict[str, Callable[[Path], Path]] = {
    "bytes read as Latin letters": lambda folder: _rows(folder, _latin),
    "bytes as Python prints them": lambda folder: _csv(folder, lambda one: repr(np.array(one, np.float32).tobytes())),
    "numbers as text": lambda folder: _rows(folder, lambda row: list(map(str, NUMBERS[row]))),
    "DynamoDB's numbers": lambda folder: _rows(folder, lambda row: {"L": [{"N": str(one)} for one in NUMBERS[row]]}),
    "DynamoDB's bytes": lambda folder: _rows(folder, lambda row: {"B": _base64(VECTORS[row].tobytes())}),
    "Firestore's vectors": lambda folder: _rows(folder, _in_firestore),
    "Vespa's cells": lambda folder: _rows(folder, _cells),
    "rows by id, bytes in letters": lambda folder: _whole(
        folder, {f"doc:{row}": {"content": text, "v": _latin(row)} for row, text in enumerate(TEXTS)}
    ),
    "a frame by columns": lambda folder: _frame(folder, "columns"),
    "a frame split": lambda folder: _frame(folder, "split"),
    "a frame by index": lambda folder: _frame(folder, "index"),
    "a frame as a table": lambda folder: _frame(folder, "table"),
    "ClickHouse's compact form": lambda folder: _whole(
        folder,
        {
            "meta": [{"name": "text", "type": "String"}, {"name": "v", "type": "Array(Float32)"}],
            "data": [list(row) for row in zip(TEXTS, NUMBERS, strict=True)],
            "rows": ROWS,
        },
    ),
    "cells under a line of names": lambda folder: _whole(
        folder, [["text", "v"], *([text, one] for text, one in zip(TEXTS, NUMBERS, strict=True))]
    ),
    "vectors by text": lambda folder: _whole(folder, dict(zip(TEXTS, NUMBERS, strict=True))),
    "texts beside vectors by kind": lambda folder: _whole(
        folder, {"id": "x", "texts": TEXTS, "embeddings": {"float": NUMBERS}, "meta": {}}
    ),
    "texts beside an answer": lambda folder: _whole(
        folder, {"texts": TEXTS, "response": {"data": [{"index": row, "v": one} for row, one in enumerate(NUMBERS)]}}
    ),
    "columns of a query": lambda folder: _whole(
        folder,
        {"ids": [list(map(str, range(ROWS)))], "distances": [[0.5] * ROWS], "v": [NUMBERS], "documents": [TEXTS]},
    ),
    "lists of one form": lambda folder: _whole(
        folder, {"namespaces": {"a": {"vectors": _objects()[:9]}, "b": {"vectors": _objects()[9:]}}}
    ),
    "lists of rows": lambda folder: _whole(folder, [_objects()[:9], _objects()[9:]]),
    "chunks of documents": lambda folder: _whole(
        folder, {"documents": _in_fours(lambda row, own: {"doc_id": row, "chunks": _objects()[own]})}
    ),
    "lists of chunks and of vectors": lambda folder: _text(
        folder,
        "\n".join(
            map(
                json.dumps,
                _in_fours(lambda row, own: {"doc_id": row, "chunks": TEXTS[own], "embeddings": NUMBERS[own]}),
            )
        ),
    ),
    "pages, a line each": lambda folder: _text(
        folder, "\n".join(json.dumps({"result": {"points": page}}) for page in (_objects()[:9], _objects()[9:]))
    ),
    "objects in lines, one after another": lambda folder: _text(
        folder, "\n".join(json.dumps(one, indent=2) for one in _objects())
    ),
    "a comma behind the last": lambda folder: _text(
        folder, "[\n" + "".join(f"{json.dumps(one)},\n" for one in _objects()) + "]\n"
    ),
    "texts in lists": lambda folder: _whole(folder, {"docs": [{**one, "text": [one["text"]]} for one in _objects()]}),
    "dictionaries as Python prints them": lambda folder: _csv_of(
        folder, [[str({"page_content": text, "n": None}), str(one)] for text, one in zip(TEXTS, NUMBERS, strict=True)]
    ),
    "a list in a list": lambda folder: _rows(folder, lambda row: [NUMBERS[row]]),
    "a list in two lists": lambda folder: _rows(folder, lambda row: [[NUMBERS[row]]]),
    "a list in a list, as text": lambda folder: _csv(folder, lambda one: json.dumps([one])),
    "Meilisearch": lambda folder: _rows(
        folder, lambda row: {"default": {"embeddings": [NUMBERS[row]], "regenerate": False}}, "_vectors"
    ),
    "Meilisearch, one": lambda folder: _rows(folder, lambda row: {"default": NUMBERS[row]}, "_vectors"),
    "MongoDB's doubles": lambda folder: _rows(
        folder, lambda row: [{"$numberDouble": str(one)} for one in NUMBERS[row]]
    ),
    "MongoDB's bytes": lambda folder: _rows(
        folder, lambda row: {"$binary": {"base64": _base64(VECTORS[row].tobytes()), "subType": "00"}}
    ),
    "MongoDB's vectors": lambda folder: _rows(folder, _bson_vector),
    "base64": lambda folder: _rows(folder, lambda row: _base64(VECTORS[row].tobytes())),
    "base64 for addresses": lambda folder: _rows(
        folder, lambda row: base64.urlsafe_b64encode(VECTORS[row].tobytes()).decode().rstrip("=")
    ),
    "hexadecimal": lambda folder: _rows(folder, lambda row: VECTORS[row].tobytes().hex()),
    "PostgreSQL's bytea": lambda folder: _csv(folder, lambda one: "\\x" + np.float32(one).tobytes().hex()),
    "PostgreSQL's arrays": lambda folder: _csv(folder, lambda one: "{" + ",".join(map(str, one)) + "}"),
    "numpy's repr": lambda folder: _csv(folder, lambda one: f"array({one}, dtype=float32)"),
    "torch's repr": lambda folder: _csv(folder, lambda one: f"tensor({one}, device='cuda:0')"),
    "a tuple": lambda folder: _csv(folder, lambda one: str(tuple(one))),
    "numbers alone": lambda folder: _csv(folder, _words),
    "numbers and commas": lambda folder: _csv(folder, lambda one: ", ".join(map(str, one))),
    "a matrix beside the rows": _beside,
    "a tsv": lambda folder: _csv(folder, json.dumps, ".tsv"),
    "a tsv without names": lambda folder: _csv(folder, json.dumps, ".tsv", names=False),
    "a csv without names": lambda folder: _csv(folder, json.dumps, names=False),
    "a csv without names, in braces": lambda folder: _csv(
        folder, lambda one: "{" + ",".join(map(str, one)) + "}", names=False
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_vectors_are_read(form: str, tmp_path: Path) -> None:
    store = open_store(FORMS[form](tmp_path))
    (batch,) = store.batches()
    places, vectors = batch.vectors[D]
    assert (batch.rows, len(places)) == (ROWS, ROWS)
    np.testing.assert_allclose(vectors, VECTORS, atol=1e-6)
    if "without names" in form:
        assert store.columns["vector"] == "column 3"
    else:
        assert batch.texts == TEXTS


@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_a_number_a_column_needs_no_names(suffix: str, before: int, tmp_path: Path) -> None:
    """As TensorFlow's projector reads them, behind nothing, a text, or an id and a text."""
    file, mark = tmp_path / f"v{suffix}", "\t" if suffix == ".tsv" else ","
    first = [[], ["a text"], ["7", "a text"]][before]
    file.write_text("\n".join(mark.join([*first, *map(str, one)]) for one in NUMBERS), encoding="utf-8")
    store = open_store(file)
    (batch,) = store.batches()
    np.testing.assert_allclose(batch.vectors[D][1], VECTORS, atol=1e-6)
    assert batch.rows == ROWS


def test_columns_that_have_whole_numbers_for_names_are_named(tmp_path: Path) -> None:
    file = tmp_path / "v.csv"
    lines = [",".join(map(str, range(D))), *(",".join(map(str, one)) for one in NUMBERS)]
    file.write_text("\n".join(lines), encoding="utf-8")
    assert open_store(file).columns["vector"] == f"0 … {D - 1}"


@pytest.mark.parametrize("text", ["v1.2.3 of 4 5 6 7 8 9", "(see 1, 2 and 3)", "{a, b}", "deadbeef" * 4, "12 34"])
def test_texts_are_no_vectors(text: str, tmp_path: Path) -> None:
    store = open_store(_rows(tmp_path, lambda row: NUMBERS[row]), ReadOptions())
    assert store.columns["text"] == "text"
    file = tmp_path / "texts.jsonl"
    file.write_text("\n".join(json.dumps({"text": text, "v": one}) for one in NUMBERS), encoding="utf-8")
    assert open_store(file).columns == {"vector": "v", "text": "text"}


IDS: dict[str, Callable[[int], str]] = {
    "uuid": lambda row: f"550e8400-e29b-41d4-a716-{row:012d}",
    "hash": lambda row: f"{row * 2654435761 % 2**128:032x}",
    "sha256": lambda row: hashlib.sha256(str(row).encode()).hexdigest(),
    "name": lambda row: f"document_of_the_collection_chunk_{row:04d}",
    "oid": lambda row: f"{row + 6 * 10**23:024x}",
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_are_no_vectors(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    rows = [
        [IDS[kind](row), text, json.dumps(vector)]
        for row, (text, vector) in enumerate(zip(TEXTS, NUMBERS, strict=True))
    ]
    with file.open("w", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerows([["key", "text", "vector"], *rows])
    assert open_store(file).columns == {"vector": "vector", "text": "text", "id": "key"}


@pytest.mark.parametrize(
    "value",
    [{"$numberLong": [1]}, {"$numberDouble": "x"}, {"$binary": 3}, {"$binary": {"base64": "!!"}}, {"$oid": None}],
)
def test_what_only_looks_like_an_extended_type_stays_what_it_is(value: Any, tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    rows = ({"other": value, "text": text, "v": one} for text, one in zip(TEXTS, NUMBERS, strict=True))
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (batch,) = open_store(file).batches()
    assert (batch.rows, batch.texts) == (ROWS, TEXTS)
    (tmp_path / "one.json").write_text(json.dumps(value), encoding="utf-8")
    # Nothing but such a value: at most a number.
    with suppress(EmbauditError):
        assert [one.rows for one in open_store(tmp_path / "one.json").batches()] == [1]


# ---- bytes that say themselves what they are ----


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


def test_nothing_that_is_pickled_runs(tmp_path: Path) -> None:
    values = [pickle.dumps(one) for one in VECTORS[:10]]
    values[7] = pickle.dumps(Calls(os.system, f"touch {tmp_path}/ran"))
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


# ---- OpenAI's batch ----


def lines(file: Path, rows: list[dict[str, object]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def answer(name: str, vectors: list[object], status: int = 200) -> dict[str, object]:
    data = [{"object": "embedding", "index": place, "embedding": one} for place, one in enumerate(vectors)]
    return {"id": f"b{name}", "custom_id": name, "response": {"status_code": status, "body": {"data": data[::-1]}}}


def request(name: str, sent: object) -> dict[str, object]:
    return {"custom_id": name, "method": "POST", "url": "/v1/embeddings", "body": {"model": "m", "input": sent}}


def test_rows_find_their_texts(tmp_path: Path) -> None:
    out = [answer("b", [[1.5, 2], [3.5, 4]]), answer("a", [[5.5, 6]]), answer("d", [], 500), answer("c", [[7.5, 8]])]
    place = lines(tmp_path / "out.jsonl", out)
    sent = [request("a", "A"), request("b", ["B0", "B1"]), request("c", [12, 13]), request("d", "D")]
    texts = lines(tmp_path / "in.jsonl", sent)
    store = open_store(place, ReadOptions(texts=texts))
    (batch,) = store.batches()
    assert batch.ids == ["b[0]", "b[1]", "a", "d", "c"]
    assert list(batch.texts or ()) == ["B0", "B1", "A", "D", None]
    places, vectors = batch.vectors[2]
    assert places.tolist() == [0, 1, 2, 4]
    assert vectors.tolist() == [[1.5, 2], [3.5, 4], [5.5, 6], [7.5, 8]]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


def test_vectors_in_base64(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).normal(size=(4, 32)).astype(np.float32)
    rows = [answer(str(row), [base64.b64encode(one.tobytes()).decode()]) for row, one in enumerate(vectors)]
    (batch,) = open_store(lines(tmp_path / "out.jsonl", rows)).batches()
    assert (batch.vectors[32][1] == vectors).all()
