"""What comes out of Elasticsearch and OpenSearch is read document by document, and chunk by chunk."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_rows import ROWS, TEXTS

import embaudit
from embaudit.stores.opened import open_store
from embaudit.words.errors import EmbauditError

D = 24
VECTORS = np.random.default_rng(0).normal(size=(ROWS, D)).astype(np.float32)
IDS = [f"doc-{row}" for row in range(ROWS)]


def hit(row: int, **more: Any) -> dict[str, Any]:
    document = {"content": TEXTS[row], "place": [4.9, 52.4], "v": VECTORS[row].tolist()}
    return {"_index": "docs", "_id": IDS[row], "_score": 1.0, "_source": document, "sort": [0.25, row], **more}


HITS = [hit(row) for row in range(ROWS)]


def answer(hits: list[dict[str, Any]]) -> dict[str, Any]:
    shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
    found = {"total": {"value": ROWS, "relation": "eq"}, "max_score": 1.0, "hits": hits}
    return {"took": 3, "timed_out": False, "_shards": shards, "hits": found}


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def asked_as_fields(row: int) -> dict[str, Any]:
    fields = {"content": [TEXTS[row]], "v": VECTORS[row].tolist()}
    return {"_index": "docs", "_id": IDS[row], "_score": 1.0, "fields": fields}


HALF = ROWS // 2
FORMS: dict[str, str] = {
    "elasticdump": lines(HITS),
    "elasticdump of one": lines(HITS[:1]),
    "an answer": json.dumps(answer(HITS)),
    "an answer, printed": json.dumps(answer(HITS), indent=2),
    "answers of a scroll, a line each": lines([answer(HITS[:HALF]), answer(HITS[HALF:]), answer([])]),
    "a list of answers": json.dumps([answer(HITS[:HALF]), answer(HITS[HALF:])]),
    "several searches": json.dumps({"took": 9, "responses": [answer(HITS[:HALF]), answer(HITS[HALF:])]}),
    "a search in the background": json.dumps({"id": "x", "is_partial": False, "response": answer(HITS)}),
    "a list of hits": json.dumps(HITS),
    "asked for as fields": json.dumps(answer([asked_as_fields(row) for row in range(ROWS)])),
}


@pytest.mark.parametrize("packed", [False, True], ids=["", "gz"])
@pytest.mark.parametrize("form", FORMS)
def test_documents_are_rows(form: str, packed: bool, tmp_path: Path) -> None:
    file = tmp_path / f"docs.json{'.gz' if packed else ''}"
    content = FORMS[form].encode()
    file.write_bytes(gzip.compress(content) if packed else content)
    store = open_store(file)
    (batch,) = store.batches()
    rows = 1 if form == "elasticdump of one" else ROWS
    assert (store.kind, batch.texts, batch.ids) == ("Elasticsearch's documents", TEXTS[:rows], IDS[:rows])
    np.testing.assert_allclose(batch.vectors[D][1], VECTORS[:rows], atol=1e-6)


def nested(row: int) -> dict[str, Any]:
    chunks = [{"text": f"{TEXTS[row]} {part}", "vector": (VECTORS[row] + part).tolist()} for part in range(2)]
    return {"title": f"title {row}", "place": [4.9, 52.4], "passages": chunks}


def semantic(row: int) -> dict[str, Any]:
    """As semantic_text keeps it before 8.18."""
    chunks = [{"text": f"{TEXTS[row]} {part}", "embeddings": (VECTORS[row] + part).tolist()} for part in range(2)]
    inference = {"inference_id": "e5", "model_settings": {"dimensions": D}, "chunks": chunks}
    return {"title": f"title {row}", "body": {"text": TEXTS[row] * 2, "inference": inference}}


def semantic_by_places(row: int) -> dict[str, Any]:
    """As semantic_text keeps it since: a chunk says from where to where of its field it goes."""
    whole = f"{TEXTS[row]} 0{TEXTS[row]} 1"
    half = len(whole) // 2
    chunks = [
        {"start_offset": part * half, "end_offset": (part + 1) * half, "embeddings": (VECTORS[row] + part).tolist()}
        for part in range(2)
    ]
    inference = {"inference_id": "e5", "model_settings": {"dimensions": D}, "chunks": {"body": chunks}}
    return {"body": whole, "_inference_fields": {"body": {"inference": inference}}}


CHUNKED: dict[str, Callable[[int], dict[str, Any]]] = {
    "nested": nested,
    "semantic_text": semantic,
    "semantic_text by places": semantic_by_places,
}


@pytest.mark.parametrize("form", CHUNKED)
@pytest.mark.parametrize("way", ["out", "in"])
def test_a_document_in_chunks_is_a_row_for_each(form: str, way: str, tmp_path: Path) -> None:
    documents = [CHUNKED[form](row) for row in range(ROWS)]
    file = tmp_path / "docs.ndjson"
    if way == "out":
        file.write_text(lines([{"_index": "d", "_id": IDS[row], "_source": one} for row, one in enumerate(documents)]))
    else:
        own = [[{"index": {"_id": IDS[row], "if_seq_no": 3}}, one] for row, one in enumerate(documents)]
        file.write_text(lines([line for pair in own for line in pair]))
    store = open_store(file)
    (batch,) = store.batches()
    assert batch.texts == [f"{text} {part}" for text in TEXTS for part in range(2)]
    assert batch.ids == [f"{name}[{part}]" for name in IDS for part in range(2)]
    expected = np.repeat(VECTORS, 2, 0) + np.tile([[0], [1]], (ROWS, 1))
    np.testing.assert_allclose(batch.vectors[D][1], expected, atol=1e-5)
    assert "row for each of its chunks" in store.notes[0]


@pytest.mark.parametrize("order", [">f4", "<f4"], ids=["Elasticsearch", "OpenSearch"])
def test_vectors_in_base64_are_read_in_either_order_of_bytes(order: str, tmp_path: Path) -> None:
    """Elasticsearch's clients of 9.3 and later put the largest byte first."""
    packed = [base64.b64encode(one.astype(order).tobytes()).decode() for one in VECTORS]
    own = [[{"index": {"_id": IDS[row]}}, {"content": TEXTS[row], "v": packed[row]}] for row in range(ROWS)]
    (tmp_path / "bulk.ndjson").write_text(lines([line for pair in own for line in pair]))
    (batch,) = open_store(tmp_path / "bulk.ndjson").batches()
    assert (batch.texts, batch.ids) == (TEXTS, IDS)
    np.testing.assert_array_equal(batch.vectors[D][1], VECTORS)


def test_a_document_without_chunks_is_a_row_without_a_vector(tmp_path: Path) -> None:
    documents = [nested(row) for row in range(4)]
    documents[2]["passages"] = []
    rows = [{"_index": "d", "_id": IDS[row], "_source": one} for row, one in enumerate(documents)]
    (tmp_path / "docs.json").write_text(lines(rows))
    (batch,) = open_store(tmp_path / "docs.json").batches()
    assert (batch.rows, len(batch.vectors[D][0])) == (7, 6)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"content": "a"}, r"and no vectors: from Elasticsearch 9\.2 on.*\"exclude_vectors\": false.*elasticdump"),
        (
            {"content": "a", "ml": {"tokens": {f"word{n}": 0.5 + n for n in range(9)}}},
            r"weights of words \(_source\.ml\.tokens\), and no vectors.*dense vectors",
        ),
    ],
    ids=["left out", "sparse"],
)
def test_documents_without_vectors_are_named(document: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "docs.json").write_text(json.dumps(answer([{"_index": "d", "_id": "1", "_source": document}])))
    with pytest.raises(EmbauditError, match=f"(?s){said}"):
        open_store(tmp_path / "docs.json")


def test_other_files_with_such_a_field_are_read_as_before(tmp_path: Path) -> None:
    rows = [{"id": IDS[row], "_source": "wiki", "text": TEXTS[row], "v": VECTORS[row].tolist()} for row in range(ROWS)]
    (tmp_path / "docs.jsonl").write_text(lines(rows))
    store = open_store(tmp_path / "docs.jsonl")
    assert (store.kind, store.columns["id"]) == ("JSON", "id")


def test_an_export_is_looked_at_as_any_store(tmp_path: Path) -> None:
    (tmp_path / "docs.json").write_text(FORMS["elasticdump"])
    report = embaudit.vectors(tmp_path / "docs.json")
    assert report.as_json()["vectors"]["rows"] == ROWS
