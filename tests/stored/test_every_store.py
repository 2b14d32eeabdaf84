"""One suite for every form in which people keep vectors: read whole, in order, twice the same, never written to; a
faithful index is the checkpoint's, and 4 % of foreign rows are found."""

from __future__ import annotations

import base64
import csv
import importlib.util
import json
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.numpy import save_file
from some_rows import mostly_slow

import embaudit
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.stores.store import RowBatch

ROWS, FOREIGN = 200, 8
STORES = Path(__file__).parents[1] / "stores"


class Rows(NamedTuple):
    """What is kept."""

    vectors: np.ndarray
    texts: list[str]
    ids: list[str]
    titles: list[str]


class Kept(NamedTuple):
    """Where it is kept, and what has to be said to read it."""

    place: Path | str
    asked: dict[str, Any] = {}  # noqa: RUF012


def lines(folder: Path, records: list[dict[str, Any]], name: str = "rows.jsonl") -> Kept:
    (folder / name).write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return Kept(folder / name)


def records(rows: Rows, of: Callable[[str, str, str, list[float]], dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        of(name, text, title, vector)
        for vector, text, name, title in zip(rows.vectors.tolist(), rows.texts, rows.ids, rows.titles, strict=True)
    ]


def texts_beside(folder: Path, rows: Rows) -> Path:
    lines(folder, [{"text": text} for text in rows.texts], "texts.jsonl")
    return folder / "texts.jsonl"


def parquet(folder: Path, rows: Rows, vectors: Any) -> Kept:
    table = pa.table({"id": rows.ids, "text": rows.texts, "title": rows.titles, "embedding": vectors})
    pq.write_table(table, folder / "rows.parquet")
    return Kept(folder / "rows.parquet")


def separated(folder: Path, rows: Rows, written: Callable[[np.ndarray], str], separator: str = ",") -> Kept:
    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(["id", "text", "title", "embedding"])
        writer.writerows(zip(rows.ids, rows.texts, rows.titles, map(written, rows.vectors), strict=True))
    return Kept(folder / "rows.csv")


def a_column_each(folder: Path, rows: Rows) -> Kept:
    frame = pd.DataFrame(rows.vectors, columns=[f"dim_{number}" for number in range(rows.vectors.shape[1])])
    frame.insert(0, "text", rows.texts)
    frame.insert(0, "id", rows.ids)
    frame.to_csv(folder / "wide.csv", index=False)
    return Kept(folder / "wide.csv")


def columns(folder: Path, rows: Rows) -> Kept:
    found = {"ids": rows.ids, "documents": rows.texts, "embeddings": rows.vectors.tolist(), "data": None}
    (folder / "get.json").write_text(json.dumps(found | {"metadatas": [{"title": one} for one in rows.titles]}))
    return Kept(folder / "get.json")


def an_answer(folder: Path, rows: Rows) -> Kept:
    points = records(rows, lambda name, text, title, v: {"id": name, "payload": {"text": text}, "vector": v})
    (folder / "scroll.json").write_text(json.dumps({"result": {"points": points, "next_page_offset": 1}, "time": 0.1}))
    return Kept(folder / "scroll.json")


def fetched(folder: Path, rows: Rows) -> Kept:
    found = records(rows, lambda name, text, _, v: {"id": name, "text": text, "values": v})
    (folder / "fetched.json").write_text(json.dumps({"vectors": {one["id"]: one for one in found}, "namespace": ""}))
    return Kept(folder / "fetched.json")


def batch(folder: Path, rows: Rows) -> Kept:
    def answer(name: str, text: str, title: str, vector: list[float]) -> dict[str, Any]:
        body = {"data": [{"object": "embedding", "index": 0, "embedding": vector}]}
        return {"id": "b", "custom_id": name, "response": {"status_code": 200, "body": body}, "error": None}

    asked = [
        {"custom_id": name, "method": "POST", "url": "/v1/embeddings", "body": {"model": "m", "input": text}}
        for name, text in zip(reversed(rows.ids), reversed(rows.texts), strict=True)
    ]
    requests = lines(folder, asked, "requests.jsonl").place
    return Kept(lines(folder, records(rows, answer)).place, {"texts": Path(requests)})


def npy(folder: Path, rows: Rows) -> Kept:
    np.save(folder / "rows.npy", rows.vectors)
    return Kept(folder / "rows.npy", {"texts": texts_beside(folder, rows)})


def npz(folder: Path, rows: Rows) -> Kept:
    np.savez(folder / "rows.npz", vectors=rows.vectors, text=np.array(rows.texts), id=np.array(rows.ids))
    return Kept(folder / "rows.npz")


def tensors(folder: Path, rows: Rows) -> Kept:
    save_file({"embeddings": rows.vectors}, folder / "rows.safetensors")
    return Kept(folder / "rows.safetensors", {"texts": texts_beside(folder, rows)})


def torch_file(folder: Path, rows: Rows) -> Kept:
    torch.save({"embeddings": torch.from_numpy(rows.vectors.copy()), "text": rows.texts}, folder / "rows.pt")
    return Kept(folder / "rows.pt")


def hdf5(folder: Path, rows: Rows) -> Kept:
    h5py = pytest.importorskip("h5py", reason="needs h5py: pip install 'embaudit[hdf5]'")
    with h5py.File(folder / "rows.h5", "w") as file:
        file["index/embeddings"] = rows.vectors
        file["index/text"] = rows.texts
    return Kept(folder / "rows.h5")


def a_pickled_frame(folder: Path, rows: Rows) -> Kept:
    pd.DataFrame({"id": rows.ids, "text": rows.texts, "embedding": list(rows.vectors)}).to_pickle(folder / "rows.pkl")
    return Kept(folder / "rows.pkl", {"allow_pickle": True})


def a_pickled_dictionary(folder: Path, rows: Rows) -> Kept:
    (folder / "rows.pkl").write_bytes(pickle.dumps(dict(zip(rows.ids, rows.vectors, strict=True))))
    texts = [{"id": name, "text": text} for name, text in zip(reversed(rows.ids), reversed(rows.texts), strict=True)]
    lines(folder, texts, "texts.jsonl")
    return Kept(folder / "rows.pkl", {"allow_pickle": True, "texts": folder / "texts.jsonl"})


def saved(folder: Path, rows: Rows) -> Kept:
    import datasets

    made = {"id": rows.ids, "text": rows.texts, "embedding": rows.vectors.tolist()}
    datasets.Dataset.from_dict(made).save_to_disk(str(folder / "saved"))
    return Kept(folder / "saved")


def duckdb_file(folder: Path, rows: Rows) -> Kept:
    frame = pd.DataFrame({"id": rows.ids, "text": rows.texts, "e": rows.vectors.tolist()})  # noqa: F841
    with duckdb.connect(str(folder / "rows.db")) as connection:
        connection.execute(f"CREATE TABLE rows AS SELECT id, text, e::FLOAT[{rows.vectors.shape[1]}] AS e FROM frame")
    return Kept(folder / "rows.db")


def sqlite(folder: Path, rows: Rows, written: Callable[[np.ndarray], Any]) -> Kept:
    with sqlite3.connect(folder / "rows.db") as connection:
        connection.execute("CREATE TABLE notes (word TEXT)")
        connection.execute("CREATE TABLE embeddings (id TEXT, content TEXT, title TEXT, embedding)")
        made = zip(rows.ids, rows.texts, rows.titles, map(written, rows.vectors), strict=True)
        connection.executemany("INSERT INTO embeddings VALUES (?, ?, ?, ?)", made)
    connection.close()
    return Kept(folder / "rows.db")


def sqlite_vec(folder: Path, rows: Rows) -> Kept:
    library = pytest.importorskip("sqlite_vec", reason="needs sqlite-vec: pip install 'embaudit[sqlite-vec]'")
    connection = sqlite3.connect(folder / "rows.db")
    if not hasattr(connection, "enable_load_extension"):
        pytest.skip("this Python's sqlite3 was built without extensions, which sqlite-vec is")
    connection.enable_load_extension(True)
    library.load(connection)
    width = rows.vectors.shape[1]
    connection.execute(f"CREATE VIRTUAL TABLE v USING vec0(embedding float[{width}] distance_metric=cosine)")
    connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, text TEXT)")
    for number, (vector, text) in enumerate(zip(rows.vectors, rows.texts, strict=True), 1):
        connection.execute("INSERT INTO v (rowid, embedding) VALUES (?, ?)", (number, vector.tobytes()))
        connection.execute("INSERT INTO items VALUES (?, ?)", (number, text))
    connection.commit()
    connection.close()
    query = "SELECT v.embedding, items.text, items.id FROM v JOIN items ON items.id = v.rowid ORDER BY items.id"
    return Kept(folder / "rows.db", {"part": query})


def faiss_file(folder: Path, rows: Rows, kind: str) -> Kept:
    faiss = pytest.importorskip("faiss", reason="needs faiss: pip install 'embaudit[faiss]'")
    index = faiss.index_factory(rows.vectors.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
    index.train(rows.vectors)
    index.add(rows.vectors)
    faiss.write_index(index, str(folder / "rows.faiss"))
    return Kept(folder / "rows.faiss", {"texts": texts_beside(folder, rows)})


def engine(name: str, folder: Path, rows: Rows, ids: Any = None) -> Kept:
    """As that store's own test builds it."""
    spec = importlib.util.spec_from_file_location(f"builder_of_{name}", STORES / f"test_{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Kept(module.build(folder, rows.vectors, rows.texts, rows.ids if ids is None else ids, rows.titles))


FORMS: dict[str, Callable[[Path, Rows], Kept]] = {
    "Parquet, lists": lambda folder, rows: parquet(folder, rows, list(rows.vectors)),
    "Parquet, bytes": lambda folder, rows: parquet(folder, rows, [one.tobytes() for one in rows.vectors]),
    "Parquet, bytes of fixed width": lambda folder, rows: parquet(
        folder, rows, pa.array([one.tobytes() for one in rows.vectors], pa.binary(rows.vectors.shape[1] * 4))
    ),
    "Parquet, float64 as bytes": lambda folder, rows: parquet(
        folder, rows, [one.astype(np.float64).tobytes() for one in rows.vectors]
    ),
    "Parquet, float16 as bytes": lambda folder, rows: parquet(
        folder, rows, [one.astype(np.float16).tobytes() for one in rows.vectors]
    ),
    "Parquet, base64": lambda folder, rows: parquet(
        folder, rows, [base64.b64encode(one.tobytes()).decode() for one in rows.vectors]
    ),
    "Parquet, structs": lambda folder, rows: parquet(folder, rows, [{"dense": one} for one in rows.vectors.tolist()]),
    "CSV, lists as text": lambda folder, rows: separated(folder, rows, lambda one: json.dumps(one.tolist())),
    "CSV by semicolons": lambda folder, rows: separated(folder, rows, lambda one: json.dumps(one.tolist()), ";"),
    "CSV, numpy's print": lambda folder, rows: separated(
        folder, rows, lambda one: np.array2string(one, threshold=10_000, precision=9)
    ),
    "CSV, a column each": a_column_each,
    "JSON by columns": columns,
    "JSON, an answer": an_answer,
    "JSON by id": fetched,
    "Qdrant's scroll": lambda folder, rows: lines(
        folder,
        records(rows, lambda name, text, title, v: {"id": name, "payload": {"text": text, "t": title}, "vector": v}),
    ),
    "Qdrant's named vectors": lambda folder, rows: lines(
        folder,
        records(rows, lambda name, text, _, v: {"id": name, "payload": {"page_content": text}, "vector": {"d": v}}),
    ),
    "Pinecone": lambda folder, rows: lines(
        folder, records(rows, lambda name, text, _, v: {"id": name, "values": v, "metadata": {"text": text}})
    ),
    "Elasticsearch": lambda folder, rows: lines(
        folder, records(rows, lambda name, text, _, v: {"_id": name, "_source": {"content": text, "vec": v}})
    ),
    "OpenAI's batch": batch,
    "npy": npy,
    "npz": npz,
    "safetensors": tensors,
    "torch": torch_file,
    "HDF5": hdf5,
    "a pickled frame": a_pickled_frame,
    "a pickled dictionary": a_pickled_dictionary,
    "a saved data set": saved,
    "DuckDB": duckdb_file,
    "SQLite, blobs": lambda folder, rows: sqlite(folder, rows, lambda one: one.tobytes()),
    "SQLite, JSON": lambda folder, rows: sqlite(folder, rows, lambda one: json.dumps(one.tolist())),
    "sqlite-vec": sqlite_vec,
    "FAISS, flat": lambda folder, rows: faiss_file(folder, rows, "Flat"),
    "FAISS, HNSW": lambda folder, rows: faiss_file(folder, rows, "HNSW8"),
    "FAISS, IVF": lambda folder, rows: faiss_file(folder, rows, "IVF4,Flat"),
    "Chroma": lambda folder, rows: engine("chroma", folder, rows),
    "LanceDB": lambda folder, rows: engine("lancedb", folder, rows),
    "Qdrant": lambda folder, rows: engine("qdrant", folder, rows, list(range(len(rows.ids)))),
    "Milvus": lambda folder, rows: engine("milvus", folder, rows),
}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def in_order(batches: list[RowBatch], dimension: int) -> dict[str | None, np.ndarray]:
    """The vectors by their texts, in the order of the store."""
    return {text: row for one in batches for text, row in zip(one.texts or (), one.vectors[dimension][1], strict=True)}


@pytest.mark.parametrize("keep", mostly_slow(FORMS.values(), 6), ids=FORMS)
def test_an_index_is_judged_alike_wherever_it_is_kept(
    keep: Callable[[Path, Rows], Kept], tiny_index: Any, tmp_path: Path
) -> None:
    texts = tiny_index.texts[:ROWS]
    ids, titles = ([f"{what}-{row}" for row in range(ROWS)] for what in ("row", "title"))
    mixed = tiny_index.vectors[:ROWS].copy()
    mixed[:: ROWS // FOREIGN] = tiny_index.others[: ROWS : ROWS // FOREIGN]
    for name, vectors in (("own", tiny_index.vectors[:ROWS]), ("mixed", mixed)):
        folder = tmp_path / name
        folder.mkdir()
        kept = keep(folder, Rows(vectors, texts, ids, titles))
        before = contents(folder)
        asked = ReadOptions(**kept.asked, dimension=vectors.shape[1])
        passes = [list(open_store(kept.place, asked).batches()) for _ in range(2)]
        first, second = (in_order(batches, vectors.shape[1]) for batches in passes)
        assert list(first) == list(second)
        assert sorted(first) == sorted(texts)
        for text, vector in zip(texts, vectors, strict=True):
            np.testing.assert_allclose(first[text], vector, atol=1e-3)
            assert (first[text] == second[text]).all()
        options = {{"part": "from_table"}.get(key, key): value for key, value in kept.asked.items()}
        report = embaudit.vectors(kept.place, tiny_index.folder, device="cpu", with_explanation=False, **options)
        assert contents(folder) == before
        if name == "own":
            assert report.verdict == "wholly its own", report.line
        else:
            assert report.verdict == "not wholly its own", report.line
            assert report.against is not None
            assert report.against.is_foreign.sum() == FOREIGN
