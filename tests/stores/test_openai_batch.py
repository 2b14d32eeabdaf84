"""OpenAI's batch: answers in any order, several inputs of a request, failures, and texts of the request file."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import numpy as np

from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions


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
