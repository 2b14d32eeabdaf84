"""Qdrant: local folders of its client, and what its client answers."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from engine_rows import GONE, KEPT, ROWS, TEXTS, TITLES, VECTORS, D, check_rows, contents
from planted_calls import Calls

from embaudit.stores import servers
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.qdrant import table_of_client
from embaudit.stores.search import SearchedColumns
from embaudit.words.errors import EmbauditError

qdrant = pytest.importorskip("qdrant_client", reason="needs qdrant-client: pip install 'embaudit[qdrant]'")
models = qdrant.models
TITLE = "payload.metadata.title"


def build(
    folder: Path, vectors: np.ndarray, texts: Sequence[str | None], ids: Sequence[Any], titles: Sequence[str]
) -> str:
    """A folder with one collection of these rows; ids are whole numbers or UUIDs."""
    place = folder / "qdrant"
    client = qdrant.QdrantClient(path=str(place))
    fill(client, vectors, texts, ids, titles)
    client.close()
    return str(place)


def fill(client: Any, vectors: np.ndarray, texts: Any, ids: Any, titles: Any) -> None:
    config = models.VectorParams(size=vectors.shape[1], distance=models.Distance.DOT)
    client.create_collection("docs", vectors_config=config)
    rows = zip(ids, vectors.tolist(), texts, titles, strict=True)
    points = [
        models.PointStruct(id=one, vector=vector, payload={"text": text, "metadata": {"title": title}})
        for one, vector, text, title in rows
    ]
    client.upsert("docs", points)


def delete(named: str, ids: Sequence[Any]) -> None:
    client = qdrant.QdrantClient(path=named)
    client.delete("docs", list(ids))
    client.close()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = build(tmp_path_factory.mktemp("built"), VECTORS, TEXTS, range(ROWS), TITLES)
    delete(named, GONE)
    return Path(named)


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "store"))


def test_a_folder_is_read_whole_and_never_written_to(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    check_rows(open_store(folder), KEPT, TITLE)
    check_rows(open_store(folder), KEPT, TITLE)
    assert contents(folder) == before
    assert capfd.readouterr() == ("", "")


def test_a_folder_that_a_program_holds_open_is_read(folder: Path) -> None:
    client = qdrant.QdrantClient(path=str(folder))
    check_rows(open_store(folder), KEPT, TITLE)
    client.close()


@pytest.mark.parametrize("call", [os.system, eval, exec, shutil.rmtree, __import__], ids=lambda one: one.__name__)
def test_nothing_that_is_planted_in_a_row_runs(call: Any, folder: Path, tmp_path: Path) -> None:
    argument = {"system": f"touch {tmp_path}/ran", "rmtree": str(tmp_path / "kept")}.get(
        call.__name__, f"__import__('os').system('touch {tmp_path}/ran')"
    )
    (tmp_path / "kept").mkdir()
    with sqlite3.connect(folder / "collection/docs/storage.sqlite") as connection:
        for row in (7, 290):
            connection.execute(
                "UPDATE points SET point = ? WHERE rowid = ?", (pickle.dumps(Calls(call, argument)), row)
            )
    connection.close()
    with pytest.raises(EmbauditError, match=r"is no point of Qdrant's: .* none of the classes that are read"):
        list(open_store(folder).batches())
    assert not (tmp_path / "ran").exists()
    assert (tmp_path / "kept").exists()


def test_the_newest_row_of_a_point_is_the_point(folder: Path) -> None:
    """Older clients wrote a point again under a key of another pickle protocol."""
    import base64

    point = models.PointStruct(id=5, vector=[9.0] * D, payload={"text": "newer"})
    key = base64.b64encode(pickle.dumps(5, protocol=2)).decode()
    with sqlite3.connect(folder / "collection/docs/storage.sqlite") as connection:
        connection.execute("INSERT INTO points VALUES (?, ?)", (key, pickle.dumps(point)))
    connection.close()
    store = open_store(folder)
    (batch,) = store.batches()
    assert store.rows == batch.rows == len(KEPT)
    assert (batch.ids or [])[-1] == 5
    assert list(batch.ids or []).count(5) == 1
    assert (batch.texts or [])[-1] == "newer"


def test_named_and_sparse_vectors_and_points_without_any(tmp_path: Path) -> None:
    client = qdrant.QdrantClient(path=str(tmp_path))
    config = {
        name: models.VectorParams(size=size, distance=models.Distance.EUCLID) for name, size in {"a": 3, "b": 2}.items()
    }
    client.create_collection("two", config, sparse_vectors_config={"words": models.SparseVectorParams()})
    sparse = models.SparseVector(indices=[1], values=[0.5])
    client.upsert(
        "two",
        [
            models.PointStruct(id=1, vector={"words": sparse}, payload={"text": "none"}),
            models.PointStruct(id=2, vector={"a": [1.0, 2.0, 3.0], "words": sparse}, payload={"text": "a"}),
        ],
    )
    client.create_collection("empty", models.VectorParams(size=3, distance=models.Distance.COSINE))
    client.close()
    with pytest.raises(EmbauditError, match=r"has 2 collections: empty, two"):
        open_store(tmp_path)
    with pytest.raises(EmbauditError, match=r"may be the vectors: vector\.a, vector\.b"):
        open_store(tmp_path, ReadOptions(part="two"))
    (batch,) = open_store(tmp_path, ReadOptions(part="two", vector="a")).batches()
    places, vectors = batch.vectors[3]
    assert (batch.rows, places.tolist(), vectors.tolist()) == (2, [1], [[1.0, 2.0, 3.0]])
    empty = open_store(tmp_path, ReadOptions(part="empty"))
    assert (empty.rows, empty.metric, list(empty.batches())) == (0, "cosine", [])


@pytest.mark.parametrize("beside", [False, True])
def test_a_vector_without_a_name_may_stand_under_an_empty_one(beside: bool, tmp_path: Path) -> None:
    """As clients write it that keep sparse vectors beside it, or that name every vector."""
    client = qdrant.QdrantClient(path=str(tmp_path))
    config = models.VectorParams(size=D, distance=models.Distance.COSINE)
    sparse = {"words": models.SparseVectorParams()} if beside else None
    client.create_collection("docs", config, sparse_vectors_config=sparse)
    words = {"words": models.SparseVector(indices=[1], values=[0.5])} if beside else {}
    client.upsert(
        "docs",
        [
            models.PointStruct(id=row, vector={"": one, **words}, payload={"text": text})
            for row, (one, text) in enumerate(zip(VECTORS.tolist(), TEXTS, strict=True))
        ],
    )
    client.close()
    store = open_store(tmp_path)
    (batch,) = store.batches()
    places, vectors = batch.vectors[D]
    assert (store.columns["vector"], store.metric, places.tolist()) == ("vector", "cosine", list(range(ROWS)))
    np.testing.assert_array_equal(vectors, VECTORS)
    assert store.search().find(VECTORS[7], 1, {}, ()).ids == [7]  # type: ignore[misc]


def test_a_damaged_folder_is_named(folder: Path) -> None:
    (folder / "meta.json").write_text("{")
    with pytest.raises(EmbauditError, match=r"its meta\.json is damaged"):
        open_store(folder)


def test_a_connected_client_is_read_by_scrolling(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the client's own engine in place of a server, in pages."""
    from embaudit.stores.opened import store_of

    monkeypatch.setattr("embaudit.stores.qdrant.POINTS_AT_ONCE", 70)
    client = qdrant.QdrantClient(":memory:")
    fill(client, VECTORS, TEXTS, range(ROWS), TITLES)
    client.delete("docs", list(GONE))
    table = table_of_client(client, StorePlace("qdrant:http://localhost:6333"), ReadOptions())
    check_rows(store_of(table, ReadOptions(), "Qdrant"), KEPT, TITLE)
    search = table.search(SearchedColumns("vector", "id"))  # type: ignore[misc]
    assert (search.metric, search.present, search.exact, search.is_exact) == (
        "dot",
        {"hnsw_ef": 100},
        {"exact": 1},
        False,
    )
    nearest = [row for row in np.argsort(-(VECTORS @ VECTORS[9])).tolist() if row not in GONE]
    for settings in ({}, search.present, search.exact):
        assert search.find(VECTORS[9], 5, settings, ()).ids == nearest[:5]
    assert search.find(VECTORS[9], 5, {}, [(TITLE, TITLES[7]), ("payload.text", TEXTS[7])]).ids == [7]
    client.delete("docs", [9])
    with pytest.raises(EmbauditError, match="changed while it was read"):
        list(table.read(["id"]))


class Documented(BaseHTTPRequestHandler):
    """Answers in the form that Qdrant's REST interface documents, for one collection of two points."""

    fails = 0
    seen: ClassVar[list[str]] = []

    def answer(self, found: Any, status: int = 200) -> None:
        body = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def result(self, found: Any) -> None:
        self.answer({"result": found, "status": "ok", "time": 0.001})

    def do_GET(self) -> None:
        if self.path == "/":
            self.answer({"title": "qdrant - vector search engine", "version": "1.16.0", "commit": "x"})
        elif self.headers.get("api-key") != "the-right-key":
            self.answer({"status": {"error": f"Invalid key {self.headers.get('api-key')}"}}, 401)
        elif self.path == "/collections":
            self.result({"collections": [{"name": "docs"}]})
        elif self.path == "/aliases":
            self.result({"aliases": [{"alias_name": "current", "collection_name": "docs"}]})
        else:
            params = {"vectors": {"size": 2, "distance": "Cosine"}}
            optimizer = {"deleted_threshold": 0.2, "vacuum_min_vector_number": 9, "default_segment_number": 0,
                         "flush_interval_sec": 5}  # fmt: skip
            hnsw = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000}
            config = {"params": params, "hnsw_config": hnsw, "optimizer_config": optimizer}
            self.result({"status": "green", "optimizer_status": "ok", "segments_count": 1, "config": config,
                         "payload_schema": {}})  # fmt: skip

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.startswith("/collections/docs/points/count"):
            self.result({"count": 2})
            return
        if self.path.startswith("/collections/docs/points/query"):
            type(self).seen.append(asked)
            self.result({"points": [{"id": 2, "version": 1, "score": 0.5}]})
            return
        if type(self).fails:
            type(self).fails -= 1
            self.answer({"status": {"error": "busy"}}, 503)
            return
        last = asked.get("offset") == 2
        point = {"id": 2 if last else 1, "payload": {"text": "b" if last else "a"}, "vector": [0.0, 1.0]}
        self.result({"points": [point], "next_page_offset": None if last else 2})

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(servers, "PAUSES", (0.0, 0.0))
    monkeypatch.setenv("QDRANT_API_KEY", "the-right-key")
    Documented.fails = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Documented) as found:
        threading.Thread(target=found.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()


def test_an_address_is_asked_patiently(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for named in (server, f"qdrant:{server}"):
        store = open_store(named, ReadOptions(part="current"))
        Documented.fails = 2
        assert [batch.ids for batch in store.batches()] == [[1], [2]]
        assert (store.kind, store.metric, store.columns["text"]) == ("Qdrant", "cosine", "payload.text")
    search = store.search()  # type: ignore[misc]
    hits = search.find(np.ones(2, np.float32), 7, {"hnsw_ef": 300}, [("payload.n", 3), ("payload.share", 0.5)])
    assert (search.index, search.metric) == ("HNSW, m 16, ef_construct 100", "cosine")
    assert (hits.ids, hits.scores.tolist()) == ([2], [0.5])
    assert Documented.seen.pop() == {
        "query": {"nearest": [1.0, 1.0]},
        "limit": 7,
        "with_payload": False,
        "with_vector": False,
        "params": {"hnsw_ef": 300, "exact": False},
        "filter": {"must": [{"key": "n", "match": {"value": 3}}, {"key": "share", "range": {"gte": 0.5, "lte": 0.5}}]},
    }
    Documented.fails = 9
    with pytest.raises(EmbauditError, match=r"answers with an error \(503\).*Run|answers with an error \(503\)"):
        list(store.batches())
    Documented.fails = 0
    monkeypatch.setenv("QDRANT_API_KEY", "a-wrong-key-of-mine")
    with pytest.raises(EmbauditError, match=r"refuses to answer \(401\).*export QDRANT_API_KEY=") as raised:
        open_store(server)
    assert "a-wrong-key" not in str(raised.value)


def test_a_folder_of_many_points_is_refused_and_a_named_vector_is_searched(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("embaudit.stores.qdrant_search.MOST_ROWS", 200)
    with pytest.raises(EmbauditError, match=r"has 298 points.*at most 200"):
        open_store(folder).search()  # type: ignore[misc]
    monkeypatch.undo()
    client = qdrant.QdrantClient(path=str(tmp_path / "named"))
    client.create_collection("two", {"a": models.VectorParams(size=D, distance=models.Distance.EUCLID)})
    points = [models.PointStruct(id=row, vector={"a": one}) for row, one in enumerate(VECTORS[:50].tolist())]
    client.upsert("two", [*points, models.PointStruct(id=99, vector={})])
    client.close()
    search = open_store(tmp_path / "named").search()  # type: ignore[misc]
    hits = search.find(VECTORS[7], 50, {}, ())
    distances = np.linalg.norm(VECTORS[:50] - VECTORS[7], axis=1)
    assert search.metric == "l2"
    assert hits.ids == np.argsort(distances).tolist()
    np.testing.assert_allclose(hits.scores, np.sort(distances), atol=1e-5)
