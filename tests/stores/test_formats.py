"""Every format of an export gives the same rows, and what cannot be read is named."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import torch
from postgres_server import USER, Postgres

from embaudit.stores.arrays import table_of_arrays, table_of_object
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.stores.store import Store
from embaudit.words.errors import EmbauditError, UsageError

ROWS, D = 5_000, 6
VECTORS = np.random.default_rng(0).normal(size=(ROWS, D)).astype(np.float32)
TEXTS = [f"text of row {row}\nin two lines" for row in range(ROWS)]


def table(vectors: pa.Array | None = None) -> pa.Table:
    lists = pa.array(list(VECTORS), pa.list_(pa.float32())) if vectors is None else vectors
    return pa.table({"chunk_id": list(range(ROWS)), "text": TEXTS, "embedding": lists})


def rows_read(index: Store) -> tuple[np.ndarray, list[str | None], list[object]]:
    """All rows, read in batches, of which there are several."""
    vectors, texts, ids, start = [], [], [], 0
    for batch in index.batches():
        assert batch.start == start
        start += batch.rows
        (rows,) = batch.vectors.values()
        assert (rows[0] == np.arange(batch.rows)).all()
        vectors.append(rows[1])
        texts += batch.texts or []
        ids += batch.ids or []
    assert len(vectors) > 1
    return np.concatenate(vectors), texts, ids


def parquet(folder: Path, vectors: pa.Array | None = None) -> str:
    pq.write_table(table(vectors), folder / "index.parquet")
    return str(folder / "index.parquet")


def parts(folder: Path) -> str:
    place = folder / "parts"
    place.mkdir()
    pq.write_table(table().slice(0, 700), place / "part-0.parquet")
    pq.write_table(table().slice(700), place / "part-1.parquet")
    return str(place)


def arrow_stream(folder: Path) -> str:
    with pa.OSFile(str(folder / "index.arrow"), "wb") as file, pa.ipc.new_stream(file, table().schema) as writer:
        writer.write_table(table(), max_chunksize=1_000)
    return str(folder / "index.arrow")


def feather_file(folder: Path) -> str:
    feather.write_feather(table(), str(folder / "index.feather"))
    return str(folder / "index.feather")


def json_lines(folder: Path) -> str:
    with gzip.open(folder / "index.jsonl.gz", "wt", encoding="utf-8") as file:
        for row, (text, vector) in enumerate(zip(TEXTS, VECTORS.tolist(), strict=True)):
            file.write(json.dumps({"chunk_id": row, "text": text, "embedding": vector}) + "\n")
    return str(folder / "index.jsonl.gz")


def duckdb_table(folder: Path) -> str:
    rows = table()  # noqa: F841  (DuckDB reads it by its name)
    with duckdb.connect(str(folder / "index.duckdb")) as connection:
        connection.execute("CREATE TABLE notes AS SELECT 'x' AS text")
        connection.execute(f"CREATE TABLE chunks AS SELECT * EXCLUDE embedding, embedding::FLOAT[{D}] e FROM rows")
    return str(folder / "index.duckdb")


def tensors(folder: Path) -> str:
    content = {"chunk_id": list(range(ROWS)), "text": TEXTS, "embedding": torch.from_numpy(VECTORS)}
    torch.save(content, folder / "index.pt")
    return str(folder / "index.pt")


def pickled(folder: Path) -> str:
    content = {"chunk_id": list(range(ROWS)), "text": TEXTS, "embedding": VECTORS}
    (folder / "index.pkl").write_bytes(pickle.dumps(content))
    return str(folder / "index.pkl")


def archive(folder: Path) -> str:
    np.savez(folder / "index.npz", chunk_id=np.arange(ROWS), text=np.array(TEXTS), embedding=VECTORS)
    return str(folder / "index.npz")


def hdf5(folder: Path) -> str:
    h5py = pytest.importorskip("h5py", reason="needs h5py: pip install 'embaudit[hdf5]'")
    with h5py.File(folder / "index.h5", "w") as file:
        group = file.create_group("rows")
        group["chunk_id"], group["text"], group["embedding"] = np.arange(ROWS), TEXTS, VECTORS
        # What has no row for each vector is none of its columns.
        file["version"] = 3
    return str(folder / "index.h5")


def data_set(folder: Path) -> str:
    from datasets import Dataset

    content = {"chunk_id": list(range(ROWS)), "text": TEXTS, "embedding": list(VECTORS)}
    Dataset.from_dict(content).save_to_disk(folder / "index")
    return str(folder / "index")


WRITERS: dict[str, Callable[[Path], str]] = {
    "Parquet": parquet,
    "a folder of Parquet files": parts,
    "fixed-size lists": lambda folder: parquet(folder, pa.FixedSizeListArray.from_arrays(VECTORS.ravel(), D)),
    "float64": lambda folder: parquet(folder, pa.array(VECTORS.astype(np.float64).tolist())),
    "text": lambda folder: parquet(folder, pa.array([json.dumps(row) for row in VECTORS.tolist()])),
    "decimals": lambda folder: parquet(
        folder, pa.array([[Decimal(f"{one:.9f}") for one in row] for row in VECTORS.tolist()])
    ),
    "an Arrow stream": arrow_stream,
    "Feather": feather_file,
    "JSON lines, compressed": json_lines,
    "DuckDB": duckdb_table,
    "PyTorch": tensors,
    "a pickle": pickled,
    "NumPy's archive": archive,
    "HDF5": hdf5,
    "a saved data set": data_set,
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_every_format_gives_the_same_rows(write: Callable[[Path], str], tmp_path: Path) -> None:
    index = open_store(write(tmp_path), ReadOptions())
    vectors, texts, ids = rows_read(index)
    np.testing.assert_allclose(vectors, VECTORS, atol=1e-8)
    assert (texts, ids) == (TEXTS, list(range(ROWS)))
    assert index.rows in (None, ROWS)


@pytest.mark.parametrize("kind", [np.float16, np.int8, np.uint8, np.float32])
def test_numbers_keep_their_type(kind: type, tmp_path: Path) -> None:
    numbers = (VECTORS * 20 + 100).astype(kind)
    place = parquet(tmp_path, pa.array(list(numbers)))
    vectors, _, _ = rows_read(open_store(place, ReadOptions()))
    assert vectors.dtype == kind
    assert (vectors == numbers).all()


def test_npy_with_its_texts(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTORS)
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    vectors, texts, ids = rows_read(open_store(str(tmp_path / "v.npy"), ReadOptions(texts=tmp_path / "t.jsonl")))
    assert (vectors == VECTORS).all()
    assert (texts, ids) == (TEXTS, [])


def test_nulls_other_lengths_and_what_is_no_vector_are_told_apart(tmp_path: Path) -> None:
    rows = [[1.0, 2.0], None, [1.0, 2.0, 3.0], [], [4.0, None]]
    pq.write_table(pa.table({"vec": pa.array(rows, pa.list_(pa.float32())), "text": list("abcde")}), tmp_path / "i.pq")
    (batch,) = open_store(str(tmp_path / "i.pq"), ReadOptions()).batches()
    assert {dimension: places.tolist() for dimension, (places, _) in batch.vectors.items()} == {2: [0, 4], 3: [2]}
    assert np.isnan(batch.vectors[2][1][1, 1])
    (tmp_path / "i.jsonl").write_text(
        '{"v": [1, 2.5]}\n{"v": "[3, 4]"}\n{"v": ["a", "b"]}\n\n{"v": null}\n{"v": [5, 6]}\n'
    )
    (batch,) = open_store(str(tmp_path / "i.jsonl"), ReadOptions()).batches()
    assert batch.rows == 6
    assert batch.vectors[2][0].tolist() == [0, 1, 5]
    assert batch.vectors[2][1].tolist() == [[1, 2.5], [3, 4], [5, 6]]


def test_a_table_of_postgresql(postgres: Postgres, tmp_path: Path) -> None:
    """Vectors as real[] and as text, in a database without pgvector."""
    database = postgres.create("vectors_of_an_index")
    # A type whose values look like pgvector's.
    postgres.ask(
        database,
        "CREATE DOMAIN vector AS text; CREATE TABLE items (id int, content text, embedding real[]); "
        "INSERT INTO items SELECT n, 'text ' || n, ARRAY[n, n + 0.5]::real[] FROM generate_series(1, 9000) n; "
        "CREATE TABLE others (id int, content text, v vector); "
        "INSERT INTO others SELECT n, 'text ' || n, '[' || n || ',' || n + 0.5 || ']' FROM generate_series(1, 50) n;",
    )
    address = f"postgresql://{USER}:secret@{postgres.host}:{postgres.port}/{database}"
    with pytest.raises(EmbauditError, match="2 tables that may hold vectors: items, others"):
        open_store(address, ReadOptions())
    index = open_store(address, ReadOptions(part="items"))
    vectors, texts, ids = rows_read(index)
    assert (len(vectors), vectors[8_999].tolist(), texts[8_999], ids[0]) == (9_000, [9_000.0, 9_000.5], "text 9000", 1)
    assert "secret" not in index.shown
    (batch,) = open_store(address, ReadOptions(part="others")).batches()
    assert batch.vectors[2][1][1].tolist() == [2.0, 2.5]
    with pytest.raises(EmbauditError, match="no table 'itemz'; did you mean items") as raised:
        open_store(address, ReadOptions(part="itemz"))
    assert "secret" not in str(raised.value)
    with pytest.raises(EmbauditError, match="cannot be read") as raised:
        open_store(address.replace(database, "nothing"), ReadOptions())
    assert "secret" not in str(raised.value)


def lists(*names: str) -> pa.Table:
    return pa.table({name: pa.array([[0.1, 0.2 + place]]) for place, name in enumerate(names)} | {"text": ["a"]})


BAD_TABLES: dict[str, tuple[pa.Table, ReadOptions, str]] = {
    "no vectors": (
        pa.table({"text": ["a"], "url": ["b"]}),
        ReadOptions(),
        "no column of vectors: it has text \\(string\\)",
    ),
    "two": (lists("dense", "title_vector"), ReadOptions(), "2 columns that may be the vectors: dense, title_vector"),
    "strings named": (
        pa.table({"v": ["a"]}),
        ReadOptions(vector="v"),
        "'v' .* is string, not a list of numbers .*'a'",
    ),
    "mistyped": (lists("embedding"), ReadOptions(vector="embeding"), "no column 'embeding'.*Did you mean embedding"),
    "no text": (lists("embedding"), ReadOptions(text="embedding"), "'embedding' .* not text"),
    "two texts": (
        pa.table({"v": [[0.1]], "text": ["a"], "content": ["b"]}),
        ReadOptions(),
        "2 columns that may be the texts: text, content",
    ),
    "lists of text": (pa.table({"v": [["a", "b"]], "text": ["a"]}), ReadOptions(), "no column of vectors"),
}


@pytest.mark.parametrize(("rows", "asked", "said"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_a_column_that_is_not_clear_is_named(rows: pa.Table, asked: ReadOptions, said: str, tmp_path: Path) -> None:
    pq.write_table(rows, tmp_path / "index.parquet")
    with pytest.raises(EmbauditError, match=said):
        open_store(str(tmp_path / "index.parquet"), asked)


def broken(name: str, content: bytes) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        (folder / name).write_bytes(content)
        return str(folder / name)

    return write


def truncated(folder: Path) -> str:
    place = Path(parquet(folder))
    place.write_bytes(place.read_bytes()[:-200])
    return str(place)


def truncated_gzip(folder: Path) -> str:
    place = Path(json_lines(folder))
    place.write_bytes(place.read_bytes()[:-2_000])
    return str(place)


def three_dimensions(folder: Path) -> str:
    np.save(folder / "v.npy", np.zeros((2, 3, 4)))
    return str(folder / "v.npy")


BAD_FILES: dict[str, tuple[Callable[[Path], str], str]] = {
    "missing": (lambda folder: str(folder / "no.parquet"), "no file"),
    "truncated": (truncated, "cannot be read"),
    "truncated gzip": (truncated_gzip, "truncated or corrupt"),
    "numpy's print with dots": (
        broken("index.csv", b'text,embedding\na,"[ 0.1 0.2 ... 0.9 1.0]"\n'),
        "cut when they were printed",
    ),
    "compressed": (broken("index.parquet.gz", b"\x1f\x8b"), "is compressed"),
    "another format": (broken("index.bin", b""), "is no store of vectors"),
    "no Parquet": (broken("index.parquet", b"hello, this is text"), "cannot be read"),
    "no DuckDB": (broken("index.duckdb", b"hello, this is text" * 9), "cannot be read"),
    "broken line": (broken("index.jsonl", b'{"v": [1.5]}\n{"v": [1.5'), "Row 2 of .* cannot be read"),
    "no matrix": (three_dimensions, "of shape \\(2, 3, 4\\)"),
    "pickle": (broken("v.npy", b"\x80\x04K\x01."), "only unpickling reads"),
    "empty folder": (lambda folder: str(folder), "folder that holds no vectors"),
}


@pytest.mark.parametrize(("write", "said"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_cannot_be_read_is_named(write: Callable[[Path], str], said: str, tmp_path: Path) -> None:
    place = write(tmp_path)
    with pytest.raises(EmbauditError, match=said):
        list(open_store(place, ReadOptions()).batches())


# One of each kind of file, and what may have become of it: each is refused by name, and nothing ends in a traceback.
SUFFIXES = (".parquet", ".arrow", ".orc", ".npy", ".npz", ".pt", ".safetensors", ".h5", ".pkl", ".faiss", ".usearch")
SUFFIXES += (".ann", ".db", ".duckdb", ".csv", ".tsv", ".json", ".jsonl", ".fvecs", ".fbin", ".vec", ".ajson", ".bin")
BECOME = {
    "text": b"hello, this is text\n" * 9,
    "random": np.random.default_rng(0).bytes(500),
    "a zip": b"PK\x03\x04" + bytes(range(200)),
    "a pickle": b"\x80\x04K\x01.",
    "nothing": b"",
}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_whatever_has_become_of_a_file_it_is_refused_by_name(suffix: str, tmp_path: Path) -> None:
    for number, content in enumerate(BECOME.values()):
        place = tmp_path / f"rows{number}{suffix}"
        place.write_bytes(content)
        with pytest.raises(EmbauditError) as raised:
            list(open_store(place).batches())
        assert place.name in raised.value.happened
        assert raised.value.next_step


class Frame:
    """What a data frame has of what is read."""

    columns = ("text", "v")

    def __len__(self) -> int:
        return 2

    def reset_index(self) -> Frame:
        return self

    def to_dict(self, form: str) -> list[dict[str, Any]]:
        assert form == "records"
        return [{"index": row, "text": TEXTS[row], "v": [0.5, row]} for row in range(2)]


MATRIX = np.array([[0.5, 1], [2, 3], [4, 5]], dtype=np.float32)
LISTS = MATRIX.tolist()
# What a program saved, and the columns that it is read as.
OBJECTS: dict[str, tuple[Any, dict[str, list[Any]]]] = {
    "a matrix": (MATRIX, {"vectors": LISTS}),
    "rows": (LISTS, {"vectors": LISTS}),
    "vectors": (tuple(MATRIX), {"vectors": LISTS}),
    "a tensor": (torch.from_numpy(MATRIX).requires_grad_(), {"vectors": LISTS}),
    "half a tensor": (torch.from_numpy(MATRIX).to(torch.bfloat16), {"vectors": LISTS}),
    "arrays by name": (
        {"v": MATRIX, "texts": np.array(TEXTS[:3]), "raw": [b"a", b"b", b"c"], "other": [1, 2], "one": np.float32(1)},
        {"v": LISTS, "texts": TEXTS[:3], "raw": ["a", "b", "c"]},
    ),
    "lists by name": ({"v": LISTS, "n": [1, 2, 3]}, {"v": LISTS, "n": [1, 2, 3]}),
    "arrays in a group": ({"a": {"v": MATRIX, "n": [1, 2, 3]}}, {"a.v": LISTS, "a.n": [1, 2, 3]}),
    "the longest of two": ({"v": MATRIX, "w": MATRIX[:2]}, {"v": LISTS}),
    "vectors by id": ({"a": [0.5, 1], "b": [2, 3]}, {"id": ["a", "b"], "vector": LISTS[:2]}),
    "vectors by text": (dict(zip(TEXTS[:3], LISTS, strict=True)), {"text": TEXTS[:3], "vector": LISTS}),
    "fields by id": (
        {"a": {"v": MATRIX[0], "n": 1}, "b": {"v": MATRIX[1], "n": 2}},
        {"id": ["a", "b"], "v": LISTS[:2], "n": [1, 2]},
    ),
    "fields": ([{"v": torch.tensor([0.5, 1.0]), "n": 1}, {"v": [2.0, 3.0], "n": 2}], {"v": LISTS[:2], "n": [1, 2]}),
    "pairs": ([("a", [0.5, 1]), ("b", [2, 3])], {"part 1": ["a", "b"], "part 2": LISTS[:2]}),
    "texts and vectors": ((TEXTS[:3], MATRIX), {"part 1": TEXTS[:3], "part 2": LISTS}),
    "a frame": (Frame(), {"index": [0, 1], "text": TEXTS[:2], "v": [[0.5, 0], [0.5, 1]]}),
}


@pytest.mark.parametrize(("content", "expected"), OBJECTS.values(), ids=OBJECTS)
def test_what_a_program_saved_is_read_as_it_is_laid_out(content: Any, expected: dict[str, list[Any]]) -> None:
    table = table_of_object("rows.pt", content, metric="dot")
    found: dict[str, list[Any]] = {name: [] for name in table.columns}
    for batch in table.read(list(table.columns)):
        for name, values in batch.items():
            found[name] += [one.tolist() if hasattr(one, "tolist") else one for one in values]
    assert found == expected
    assert (table.shown, table.rows, table.metric) == ("rows.pt", len(next(iter(expected.values()))), "dot")


def test_vectors_in_groups_by_id_are_rows() -> None:
    groups = {"a.v": MATRIX[0], "a.n": np.array(1), "b.v": MATRIX[1], "b.n": np.array(2)}
    (batch,) = table_of_arrays("rows.h5", groups).read(["id", "v", "n"])
    assert [*map(list, batch["v"])] == LISTS[:2]
    assert [*batch["id"], *batch["n"]] == ["a", "b", 1, 2]
    (batch,) = table_of_arrays("rows.h5", {"a": MATRIX[0], "b": MATRIX[1]}).read(["id", "vector"])
    assert [*batch["id"], *map(list, batch["vector"])] == ["a", "b", *LISTS[:2]]


@pytest.mark.parametrize(
    ("content", "held"),
    [
        (5, "rows.pt holds int, not vectors."),
        ("texts", "rows.pt holds str of 5, not vectors."),
        ({}, "it has nothing."),
        ({"a": 1, "b": [1]}, "it has a (int), b (list of 1)."),
        ({"a": MATRIX[0], "b": MATRIX[0, :1]}, "it has a (float32 of shape (2,)), b (float32 of shape (1,))."),
        ({"a": torch.zeros(2, 3, 4)}, "it has a (float32 of shape (2, 3, 4))."),
        ((TEXTS[:2], [1, 2]), "it has part 1 (list of 2), part 2 (list of 2)."),
    ],
)
def test_what_holds_no_vectors_is_described(content: Any, held: str) -> None:
    with pytest.raises(UsageError) as raised:
        table_of_object("rows.pt", content)
    assert raised.value.happened.endswith(held)
    assert raised.value.next_step.startswith("Save a matrix")


def test_texts_and_vectors_of_different_length(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTORS[:10])
    (tmp_path / "t.txt").write_text("one\ntwo\n")
    with pytest.raises(EmbauditError, match=r"has 10 vectors, and .*t.txt has 2 texts"):
        open_store(str(tmp_path / "v.npy"), ReadOptions(texts=tmp_path / "t.txt"))
