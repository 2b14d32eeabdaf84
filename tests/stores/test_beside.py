"""An index beside the file of its texts, as applications write the two: read by row, known by people's ids."""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from embaudit.questions.why.rows import OtherPlaces, gather
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions, SeveralParts
from embaudit.stores.store import RowBatch, Store
from embaudit.words.errors import CorpusError, UsageError

faiss = pytest.importorskip("faiss")
ROWS = 12
VECTORS = np.random.default_rng(0).normal(size=(ROWS, 16)).astype(np.float32)
TEXTS = [f"what row {row} says" for row in range(ROWS)]
IDS = [f"doc-{row}" for row in range(ROWS)]
OBJECTS = [{"chunk_id": name, "text": text, "page": 3} for name, text in zip(IDS, TEXTS, strict=True)]


def index_in(folder: Path, name: str = "faiss.index", rows: int = ROWS) -> Path:
    index = faiss.IndexFlatL2(16)
    index.add(VECTORS[:rows])
    faiss.write_index(index, str(folder / name))
    return folder


def as_json(name: str, content: Any) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(json.dumps(content), encoding="utf-8") and None  # type: ignore[return-value]


def as_pickle(name: str, content: Any) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(pickle.dumps(content)) and None  # type: ignore[return-value]


def as_sqlite(folder: Path) -> None:
    with sqlite3.connect(folder / "store.sqlite") as database:
        database.execute("CREATE TABLE sources (name TEXT)")
        database.execute("CREATE TABLE chunks (id TEXT, text TEXT)")
        database.executemany("INSERT INTO chunks VALUES (?, ?)", zip(IDS, TEXTS, strict=True))
        database.execute("INSERT INTO sources VALUES ('a file')")
    database.close()


# What lies beside the index, and whether it has ids.
BESIDE: dict[str, tuple[Callable[[Path], None], bool]] = {
    "a list of texts": (as_json("chunks.json", TEXTS), False),
    "a list of objects": (as_json("chunks.json", OBJECTS), True),
    "lists in an object": (as_json("meta.json", {"texts": TEXTS, "ids": IDS, "model": "m"}), True),
    "texts and metadata in an object": (as_json("m.json", {"texts": TEXTS, "metadata": [{"page": 1}] * ROWS}), False),
    "objects by id": (as_json("docs.json", {name: {"text": t} for name, t in zip(IDS, TEXTS, strict=True)}), True),
    "texts by id": (as_json("docs.json", dict(zip(IDS, TEXTS, strict=True))), True),
    "texts by place": (as_json("id_map.json", {str(row): text for row, text in enumerate(TEXTS)}), False),
    "a list in an object": (as_json("metadata.json", {"count": ROWS, "chunks": OBJECTS}), True),
    "lines of objects": (
        lambda folder: (folder / "c.jsonl").write_text("\n".join(map(json.dumps, OBJECTS))) and None,  # type: ignore[return-value]
        True,
    ),
    "lines of text": (lambda folder: (folder / "texts.txt").write_text("\n".join(TEXTS)) and None, False),  # type: ignore[return-value]
    "a pickle of texts": (as_pickle("chunks.pkl", TEXTS), False),
    "a pickle of objects": (as_pickle("metadata.pickle", OBJECTS), True),
    "a pickle of a tuple": (as_pickle("store.pkl", (TEXTS, [{"page": 1}] * ROWS)), False),
    "a table of CSV": (lambda folder: pd.DataFrame(OBJECTS).to_csv(folder / "rows.csv", index=False), True),
    "a Parquet file": (lambda folder: pd.DataFrame(OBJECTS).to_parquet(folder / "meta.parquet"), True),
    "a database": (as_sqlite, True),
}


def only(store: Store) -> RowBatch:
    (batch,) = store.batches()
    return batch


@pytest.mark.parametrize("index", ["faiss.index", "index.faiss", "embeddings.npy"])
@pytest.mark.parametrize("name", BESIDE)
def test_texts_and_ids_are_those_of_the_file_beside(name: str, index: str, tmp_path: Path) -> None:
    write, has_ids = BESIDE[name]
    if index.endswith(".npy"):
        if name == "a Parquet file":
            pytest.skip("a folder of Parquet files may hold vectors itself")
        np.save(tmp_path / index, VECTORS)
    else:
        index_in(tmp_path, index)
    write(tmp_path)
    (tmp_path / "README.md").write_text("What this is.")
    (tmp_path / "config.json").write_text('{"model": "all-MiniLM-L6-v2"}')
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    store = open_store(tmp_path)
    batch = only(store)
    assert (batch.vectors[16][1] == VECTORS).all()
    assert batch.texts == TEXTS
    assert any("row by row: both have 12 rows" in note for note in store.notes)
    if has_ids:
        assert batch.ids == IDS
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_its_search_gives_the_ids_of_the_file(tmp_path: Path) -> None:
    as_json("chunks.json", OBJECTS)(index_in(tmp_path))
    store = open_store(tmp_path)
    assert store.search is not None
    assert store.search().find(VECTORS[5], 1, {}, ()).ids == ["doc-5"]


def test_a_named_file_of_texts_brings_its_ids_too(tmp_path: Path) -> None:
    as_json("chunks.json", OBJECTS)(index_in(tmp_path))
    store = open_store(tmp_path / "faiss.index", ReadOptions(texts=tmp_path / "chunks.json"))
    batch = only(store)
    assert (batch.texts, batch.ids) == (TEXTS, IDS)
    assert store.search is not None
    assert store.search().find(VECTORS[7], 2, {}, ()).ids[0] == "doc-7"


def test_numbers_of_an_index_point_into_the_file(tmp_path: Path) -> None:
    index = faiss.IndexIDMap(faiss.IndexFlatL2(16))
    index.add_with_ids(VECTORS, np.arange(ROWS)[::-1].copy())
    faiss.write_index(index, str(tmp_path / "index.faiss"))
    as_json("chunks.json", OBJECTS)(tmp_path)
    batch = only(open_store(tmp_path))
    assert (batch.texts, batch.ids) == (TEXTS[::-1], IDS[::-1])


def test_ids_that_are_no_texts_are_not_taken_for_them(tmp_path: Path) -> None:
    as_pickle("faiss_meta.pkl", [f"{row + 234_000}" for row in range(ROWS)])(index_in(tmp_path))
    batch = only(open_store(tmp_path))
    assert batch.texts is None
    assert batch.ids == [f"{row + 234_000}" for row in range(ROWS)]


def test_a_file_of_texts_is_meant_before_one_of_ids(tmp_path: Path) -> None:
    as_json("chunk_ids.json", IDS)(index_in(tmp_path))
    as_json("what.json", OBJECTS)(tmp_path)
    assert only(open_store(tmp_path)).texts == TEXTS


def test_a_file_of_fewer_texts_is_named_and_not_read(tmp_path: Path) -> None:
    as_json("chunks.json", TEXTS[:9])(index_in(tmp_path))
    store = open_store(tmp_path)
    assert only(store).texts is None
    (note,) = store.notes
    assert note == (
        "The index has 12 rows, and no file of texts beside it has as many: chunks.json (9). Which text "
        "belongs to which vector is unknown."
    )


class Other:
    """A class of an application's own, whose pickle runs what it says."""

    def __reduce__(self) -> Any:
        return (print, ("ran",))


def test_a_pickle_of_classes_is_not_opened_and_what_else_there_is_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    as_pickle("chunks.pkl", [Other() for _ in range(ROWS)])(index_in(tmp_path))
    store = open_store(tmp_path)
    assert only(store).texts is None
    assert any(note.startswith("chunks.pkl beside it is a pickle that holds more than plain") for note in store.notes)
    as_json("pages.json", TEXTS)(tmp_path)
    assert only(open_store(tmp_path)).texts == TEXTS
    assert capsys.readouterr().out == ""


def test_several_indexes_of_a_folder_are_named(tmp_path: Path) -> None:
    index_in(index_in(tmp_path), "questions.index", 5)
    as_json("chunks.json", TEXTS)(tmp_path)
    as_json("questions.json", [f"what is {row}?" for row in range(5)])(tmp_path)
    with pytest.raises(SeveralParts) as raised:
        open_store(tmp_path)
    assert raised.value.names == ("faiss.index", "questions.index")
    assert only(open_store(tmp_path, ReadOptions(part="questions.index"))).texts == [
        f"what is {row}?" for row in range(5)
    ]


def test_an_index_alone_in_a_folder_is_itself(tmp_path: Path) -> None:
    assert only(open_store(index_in(tmp_path))).texts is None


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"


@pytest.mark.parametrize("name", ["embeddings.json", "embeddings.npy", "rows.parquet", "index.faiss"])
def test_a_pointer_of_git_lfs_is_named(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(POINTER)
    with pytest.raises(UsageError, match="pointer of Git LFS") as raised:
        open_store(tmp_path / name)
    assert raised.value.next_step == "Fetch it: git lfs pull"


def test_a_pointer_in_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "index.faiss").write_bytes(POINTER)
    (tmp_path / "index.pkl").write_bytes(POINTER)
    with pytest.raises(CorpusError, match=r"index\.faiss, index\.pkl in it are pointers of Git LFS"):
        open_store(tmp_path)


def test_vectors_by_id_on_one_line_are_rows(tmp_path: Path) -> None:
    place = tmp_path / "embeddings.json"
    place.write_text(json.dumps(dict(zip(IDS, VECTORS.tolist(), strict=True))))
    batch = only(open_store(place))
    assert batch.ids == IDS
    assert np.allclose(batch.vectors[16][1], VECTORS)


ARRAYS = {
    "index.npz": lambda place, arrays: np.savez(place, **arrays),
    "index.pt": lambda place, arrays: __import__("torch").save(
        {
            name: one.tolist() if one.dtype.kind == "U" else __import__("torch").tensor(one)
            for name, one in arrays.items()
        },
        place,
    ),
}


@pytest.mark.parametrize("file", ARRAYS)
def test_the_one_array_of_texts_is_meant_whatever_it_is_called(file: str, tmp_path: Path) -> None:
    arrays = {"emb": VECTORS, "verses": np.array(TEXTS), "codes": np.array(IDS)}
    ARRAYS[file](tmp_path / file, arrays)
    assert only(open_store(tmp_path / file)).texts == TEXTS
    ARRAYS[file](tmp_path / file, {**arrays, "notes": np.array(TEXTS[::-1])})
    assert only(open_store(tmp_path / file)).texts is None
    ARRAYS[file](tmp_path / file, {"emb": VECTORS, "codes": np.array(IDS)})
    assert only(open_store(tmp_path / file)).texts is None


def test_rows_are_expected_by_the_ids_of_the_file_and_by_their_numbers(tmp_path: Path) -> None:
    as_json("chunks.json", OBJECTS)(index_in(tmp_path))
    asked = ReadOptions(texts=tmp_path / "chunks.json")
    place = str(tmp_path / "faiss.index")
    numbers = OtherPlaces(place, asked).numbers(["4"])
    known = gather(open_store(place, asked), ["doc-3", "4", TEXTS[5]], (), 0, numbers=numbers)
    assert [known.rows[one][0].number for one in ("doc-3", "4", TEXTS[5])] == [3, 4, 5]


def test_llama_indexs_nodes_are_those_of_its_faiss_index(tmp_path: Path) -> None:
    index_in(tmp_path, "default__vector_store.json")
    nodes = {name: {"__data__": {"text": text, "metadata": {}}} for name, text in zip(IDS, TEXTS, strict=True)}
    as_json("docstore.json", {"docstore/data": nodes})(tmp_path)
    own = {"nodes_dict": {str(row): name for row, name in enumerate(IDS)}}
    as_json("index_store.json", {"index_store/data": {"x": {"__data__": json.dumps(own)}}})(tmp_path)
    batch = only(open_store(tmp_path))
    assert (batch.texts, batch.ids) == (TEXTS, IDS)
    assert (batch.vectors[16][1] == VECTORS).all()


def test_txtais_folder_is_an_index_beside_its_database(tmp_path: Path) -> None:
    index = faiss.index_factory(16, "IDMap,Flat", faiss.METRIC_INNER_PRODUCT)
    index.add_with_ids(VECTORS, np.arange(ROWS))
    faiss.write_index(index, str(tmp_path / "embeddings"))
    (tmp_path / "config").write_bytes(pickle.dumps({"path": "sentence-transformers/all-MiniLM-L6-v2"}))
    with sqlite3.connect(tmp_path / "documents") as database:
        database.execute("CREATE TABLE documents (id TEXT PRIMARY KEY, data JSON, tags TEXT)")
        database.execute("CREATE TABLE sections (indexid INTEGER PRIMARY KEY, id TEXT, text TEXT, tags TEXT)")
        rows = zip(range(ROWS), IDS, TEXTS, strict=True)
        database.executemany("INSERT INTO sections VALUES (?, ?, ?, NULL)", rows)
    database.close()
    store = open_store(tmp_path)
    batch = only(store)
    assert (batch.texts, batch.ids) == (TEXTS, IDS)
    assert store.search is not None
    assert store.search().find(VECTORS[5], 1, {}, ()).ids == ["doc-5"]
