"""Stores as people publish them: indexes of Annoy and usearch, folders of Chroma 0.3, columns that are no vectors."""

from __future__ import annotations

import json
import sqlite3
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.field import LookedAt, main, only_child, summary
from embaudit.stores.index_files import is_annoy, is_usearch, open_usearch
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import Store
from embaudit.words.errors import CorpusError, EmbauditError

ROWS, D = 40, 24
VECTORS = np.random.default_rng(0).normal(size=(ROWS, D)).astype(np.float32)
UNITS = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
TEXTS = [f"text {row}" for row in range(ROWS)]


def read(store: Store) -> tuple[np.ndarray, list[object]]:
    batches = list(store.batches())
    return np.concatenate([rows for one in batches for _, rows in one.vectors.values()]), [
        row_id for one in batches for row_id in one.ids or []
    ]


def annoy(path: Path, before: int, ids: range = range(ROWS), trees: int = 2) -> Path:
    """As ``AnnoyIndex.save`` writes it: items by their numbers, nodes that divide them, and the roots."""
    items = np.zeros((ids[-1] + 1, before + D), "<f4")
    items[list(ids), :1].view("<i4")[:] = 0
    for row, number in enumerate(ids):
        items[number, before:] = VECTORS[row]
        items[number, :1].view("<i4")[:] = 1
        if before == 3:
            items[number, 1] = (VECTORS[row].astype(float) ** 2).sum()
    nodes = np.zeros((3 * trees, before + D), "<f4")
    nodes.view("<i4")[:, 0] = [7, 9, len(items)] * trees
    path.write_bytes(items.tobytes() + nodes.tobytes())
    return path


@pytest.mark.parametrize("before", [3, 4], ids=["angular", "euclidean"])
@pytest.mark.parametrize("ids", [range(ROWS), range(1, 2 * ROWS, 2)], ids=["all", "gaps"])
def test_an_index_of_annoy_is_read(before: int, ids: range, tmp_path: Path) -> None:
    store = open_store(annoy(tmp_path / "v.ann", before, ids))
    vectors, found = read(store)
    np.testing.assert_array_equal(vectors, VECTORS)
    assert (store.kind, found, store.metric) == ("Annoy", list(ids), "cosine" if before == 3 else "")
    assert f"by the size of its nodes, {D}." in store.notes[0]


def test_an_index_of_annoy_without_trees_is_read(tmp_path: Path) -> None:
    vectors, _ = read(open_store(annoy(tmp_path / "v.ann", 3, trees=0)))
    np.testing.assert_array_equal(vectors, VECTORS)


def usearch(
    path: Path,
    numbers: int,
    matrix: np.ndarray,
    removed: int | None = None,
    *,
    metric: str = "c",
    keys: int = 14,
    places: tuple[int, int] = (15, 4),
    wide: bool = False,
    magic: bytes = b"usearch",
    dimension: int = D,
) -> Path:
    """As ``Index.save`` of usearch 2 writes it: every third node is on two levels; a place takes so many bytes."""
    kind, width = places
    head = magic + struct.pack("<3H4B3Q", 2, 12, 0, ord(metric), numbers, keys, kind, ROWS, 0, dimension)
    levels = [int(row % 3 == 0) for row in range(ROWS)]
    graph = struct.pack("<5Q", ROWS, 16, 32, 1, 0) + struct.pack(f"<{ROWS}h", *levels)
    for row, level in enumerate(levels):
        key = 2**64 - 1 if row == removed else 100 + row
        graph += struct.pack("<Qh", key, level) + bytes(32 * width + 4) + level * bytes(16 * width + 4)
    sizes = struct.pack("<2Q" if wide else "<2I", ROWS, matrix.nbytes // ROWS)
    path.write_bytes(sizes + matrix.tobytes() + head.ljust(64, b"\0") + graph)
    return path


@pytest.mark.parametrize(
    ("numbers", "matrix"),
    [
        (11, UNITS.astype("<f4")),
        (10, UNITS.astype("<f8")),
        (12, UNITS.astype("<f2")),
        (4, (UNITS.astype("<f4").view("<u4") >> 16).astype("<u2")),
        (23, np.rint(UNITS * 127).astype("i1")),
    ],
    ids=["f32", "f64", "f16", "bf16", "i8"],
)
def test_an_index_of_usearch_is_read(numbers: int, matrix: np.ndarray, tmp_path: Path) -> None:
    vectors, ids = read(open_store(usearch(tmp_path / "v.usearch", numbers, matrix, removed=3)))
    kept = [row for row in range(ROWS) if row != 3]
    found = vectors.astype(np.float64)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    np.testing.assert_allclose(found, UNITS[kept], atol=0.01)
    assert ids == [100 + row for row in kept]


@pytest.mark.parametrize(
    ("name", "given", "metric"),
    [
        ("v.usearch", {"metric": "c"}, "cosine"),
        ("v.bin", {"metric": "i"}, "dot"),
        ("v.index", {"metric": "e"}, "l2"),
        ("v.idx", {"metric": "h"}, ""),
        ("v.usearch", {"wide": True}, "cosine"),
        ("v.usearch", {"places": (2, 5)}, "cosine"),
        ("v.usearch", {"places": (14, 8)}, "cosine"),
    ],
)
def test_an_index_of_usearch_is_laid_out_as_its_head_says(
    name: str, given: dict[str, Any], metric: str, tmp_path: Path
) -> None:
    store = open_store(usearch(tmp_path / name, 11, UNITS.astype("<f4"), **given))
    vectors, ids = read(store)
    np.testing.assert_array_equal(vectors, UNITS.astype("<f4"))
    assert (store.kind, store.metric, store.rows, ids) == ("usearch", metric, ROWS, list(range(100, 100 + ROWS)))


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("v.dat", {}),
        ("v.usearch", {"magic": b"research"}),
        ("v.usearch", {"keys": 15}),
        ("v.usearch", {"places": (16, 4)}),
        ("v.usearch", {"dimension": D + 1}),
    ],
)
def test_another_head_is_none_of_usearch(name: str, given: dict[str, Any], tmp_path: Path) -> None:
    place = StorePlace(str(usearch(tmp_path / name, 11, UNITS.astype("<f4"), **given)))
    assert not is_usearch(place)
    with pytest.raises(CorpusError, match=r"v\.\w+ is no index of usearch"):
        open_usearch(place, ReadOptions())


def test_half_of_an_index_is_none(tmp_path: Path) -> None:
    place = usearch(tmp_path / "v.usearch", 11, UNITS.astype("<f4"))
    content = place.read_bytes()
    for length in (0, 5, 7, 12, 30, UNITS.nbytes, UNITS.nbytes + 8 + 64 + 39):
        place.write_bytes(content[:length])
        assert not is_usearch(StorePlace(str(place))), length
    for length in (0, 5, 7, 12):
        (tmp_path / "v.ann").write_bytes(bytes(length))
        assert not is_annoy(StorePlace(str(tmp_path / "v.ann"))), length


def chroma_0_3(folder: Path) -> Path:
    folder.mkdir()
    pq.write_table(
        pa.table({"uuid": ["u1", "u2"], "name": ["notes", "empty"], "metadata": ["", ""]}),
        folder / "chroma-collections.parquet",
    )
    rows = {
        "collection_uuid": ["u1"] * ROWS,
        "uuid": [f"{row:032}" for row in range(ROWS)],
        "embedding": pa.array(UNITS.astype(np.float64).tolist(), pa.list_(pa.float64())),
        "document": TEXTS,
        "id": [f"id{row}" for row in range(ROWS)],
        "metadata": ["{}"] * ROWS,
    }
    pq.write_table(pa.table(rows), folder / "chroma-embeddings.parquet")
    return folder


def test_a_folder_of_chroma_0_3_is_read(tmp_path: Path) -> None:
    folder = chroma_0_3(tmp_path / "old")
    store = open_store(folder, ReadOptions(part="notes"))
    vectors, ids = read(store)
    np.testing.assert_allclose(vectors, UNITS, atol=1e-7)
    assert (store.kind, ids[:2], store.columns["text"]) == ("Chroma 0.3", ["id0", "id1"], "document")
    with pytest.raises(EmbauditError, match="has no rows"):
        open_store(folder, ReadOptions(part="empty"))
    with pytest.raises(EmbauditError, match="2 collections: empty, notes"):
        open_store(folder)


def table(path: Path, **columns: list[object]) -> Path:
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE rows ({', '.join(columns)})")
        values = zip(*columns.values(), strict=True)
        connection.executemany(f"INSERT INTO rows VALUES ({', '.join('?' * len(columns))})", values)
    connection.close()
    return path


def test_lists_of_words_and_empty_ones_are_no_vectors(tmp_path: Path) -> None:
    for tags in (["[]", "[]", '["a", "b"]'], ["[]"]):
        file = table(
            tmp_path / f"{len(tags)}.db",
            text=TEXTS,
            tags=[tags[row % len(tags)] for row in range(ROWS)],
            embedding=[row.tobytes() for row in VECTORS],
        )
        assert open_store(file).columns["vector"] == "embedding"


def test_columns_of_the_same_values_are_one(tmp_path: Path) -> None:
    blobs = [row.tobytes() for row in VECTORS]
    file = table(tmp_path / "v.db", text=TEXTS, embedding=blobs, face_embedding=blobs)
    assert open_store(file).columns["vector"] == "embedding"
    for others in (TEXTS, [""] * ROWS):
        rows = [
            {"meta": {"text": other}, "text": text, "vector": vector.tolist()}
            for other, text, vector in zip(others, TEXTS, VECTORS, strict=True)
        ]
        (tmp_path / "v.json").write_text(json.dumps(rows))
        assert open_store(tmp_path / "v.json").columns["text"] == "text"


def test_numbers_that_a_person_wrote_are_float64(tmp_path: Path) -> None:
    blobs = [np.array(row).tobytes() for row in ([0.1, 0.2, 0.3], [0.4, 0.5, 0.6])]
    vectors, _ = read(open_store(table(tmp_path / "v.db", text=TEXTS[:2], embedding=blobs)))
    np.testing.assert_allclose(vectors, [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])


# ---- ``python -m benchmarks field`` says of a folder of stores what each is, and how often what is found ----


FIELD_VECTORS = np.random.default_rng(0).normal(size=(8, 16))


def written(place: Path, texts: list[str]) -> None:
    rows = [{"text": text, "vector": vector.tolist()} for text, vector in zip(texts, FIELD_VECTORS, strict=True)]
    place.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def test_every_store_of_a_folder_is_looked_at_once_and_none_of_its_texts_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stores, kept = tmp_path / "stores", tmp_path / "kept.jsonl"
    (stores / "001").mkdir(parents=True)
    written(stores / "001" / "rows.jsonl", [f"secret {row}" for row in range(8)])
    (stores / "002").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    main([str(stores), "--keep", str(kept)])
    first = capsys.readouterr().out
    assert "| 001 | JSON | 8 | 16 | sound |" in first
    assert "| 002 |  | 0 | 0 | Error: STORE is a pointer of Git LFS" in first
    assert "| read, of those that are whole | 1 of 1: 100.0%" in first
    assert "secret" not in first + kept.read_text()
    before = kept.read_bytes()
    main([str(stores), "--keep", str(kept)])
    assert capsys.readouterr().out == first
    assert kept.read_bytes() == before


def test_the_counts_have_wilsons_intervals() -> None:
    looked = [
        LookedAt(str(n), kind="JSON", rows=100 + n, findings=("copied_texts",) if n < 3 else ()) for n in range(12)
    ]
    said = dict(
        summary([*looked, LookedAt("x", "Error: STORE is no store"), LookedAt("y", "Error: STORE has no rows.")])
    )
    assert said["stores"] == "14"
    assert said["read, of those that are whole"] == "12 of 13: 92.3% [66.7%, 98.6%]"
    assert said["`copied_texts`"] == "3 of 12: 25.0% [8.9%, 53.2%]"
    assert said["rows: quartiles"] == "103, 106, 108"


def test_a_folder_of_one_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "rows.csv").write_text("x")
    assert only_child(tmp_path / "a").name == "rows.csv"
    (tmp_path / "a" / "b" / "more.csv").write_text("x")
    assert only_child(tmp_path / "a").name == "b"
