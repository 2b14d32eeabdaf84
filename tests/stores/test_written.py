"""Vectors one layer deeper, as MongoDB's or PostgreSQL's tools write them, in base64, or without names."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import struct
from collections.abc import Callable
from contextlib import suppress
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


def _bson_vector(row: int) -> dict[str, Any]:
    raw = bytes([0x27, 0]) + struct.pack(f"<{D}f", *NUMBERS[row])
    return {"$binary": {"base64": _base64(raw), "subType": "09"}}


def _beside(folder: Path) -> Path:
    data = [{"__id__": f"chunk-{row}", "__created_at__": 1, "content": text} for row, text in enumerate(TEXTS)]
    return _whole(folder, {"embedding_dim": D, "data": data, "matrix": _base64(VECTORS.tobytes())})


def _words(numbers: list[float]) -> str:
    return " ".join(map(str, numbers))


FORMS: dict[str, Callable[[Path], Path]] = {
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
