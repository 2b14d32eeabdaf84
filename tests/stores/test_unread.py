"""What is not read is named by what it is, with the line that exports it; and what looks like it and is read."""

from __future__ import annotations

import json
import pickle
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engine_rows import GONE, KEPT, ROWS, TEXTS

from embaudit.stores.index_files import is_hnswlib, open_hnswlib
from embaudit.stores.milvus_file import row_of
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.words.errors import CorpusError, EmbauditError

D = 24
VECTORS = np.random.default_rng(0).normal(size=(ROWS, D)).astype(np.float32)


def _file(name: str, content: bytes) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        (folder / name).write_bytes(content)
        return str(folder / name)

    return write


def _folder(**contents: bytes) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        for name, content in contents.items():
            (folder / name.replace("__", ".")).write_bytes(content)
        return str(folder)

    return write


def _zip(name: str) -> Callable[[Path], str]:
    def write(folder: Path) -> str:
        with zipfile.ZipFile(folder / name, "w") as file:
            file.writestr("a.txt", "a")
        return str(folder / name)

    return write


def _newer_duckdb(folder: Path) -> str:
    import duckdb

    file = folder / "rows.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute("CREATE TABLE docs (text VARCHAR, v FLOAT[2])")
    content = bytearray(file.read_bytes())
    # The number of its form and who made it; and the checksum of the block, over its words of 8 bytes.
    content[12:20] = struct.pack("<Q", 1 << 20)
    content[52:84] = b"v9.1.0".ljust(32, b"\0")
    checksum = 5381
    for (word,) in struct.iter_unpack("<Q", content[8:4096]):
        checksum ^= word * 0xBF58476D1CE4E5B9 & (1 << 64) - 1
    content[:8] = struct.pack("<Q", checksum)
    file.write_bytes(bytes(content))
    return str(file)


BSON = struct.pack("<i", 22) + b"\x07_id\x00" + bytes(12) + b"\x00"
UNREAD: dict[str, tuple[Callable[[Path], str], str]] = {
    "usearch": (_file("v.usearch", b"\x01" * 99), r"is an index of usearch.*Index\.restore\('.*v\.usearch'\)"),
    "annoy": (_file("v.ann", b"\x01" * 99), r"is an index of Annoy.*AnnoyIndex"),
    "redb": (_file("v.db", b"redb\x1a\n\xa9\r\n" + bytes(40)), r"is a database of redb.*JSON lines"),
    "bson": (_file("docs.bson", BSON), r"is a dump of MongoDB.*bsondump"),
    "bson by content": (_file("docs.dump", BSON), r"is a dump of MongoDB"),
    "avro": (_file("docs.avro", b"Obj\x01" + bytes(40)), r"a file of Avro.*fastavro"),
    "xlsx": (_zip("docs.xlsx"), r"is a spreadsheet.*read_excel"),
    "zip": (_zip("docs.zip"), r"is an archive.*Unpack it"),
    "tar.gz": (_file("index.tar.gz", b"\x1f\x8b\x08" + bytes(40)), r"is an archive"),
    "pg_dump": (_file("dump.sql", b"--\n-- PostgreSQL database dump\n--\n"), r"is a dump of PostgreSQL.*psql"),
    "pg_dump -Fc": (_file("dump.bin", b"PGDMP" + bytes(40)), r"is a dump of PostgreSQL.*pg_restore"),
    ".dump": (_file("dump.sql", b"PRAGMA foreign_keys=OFF;\nBEGIN TRANSACTION;\n"), r"is a dump of SQLite"),
    "mysqldump": (_file("dump.sql", b"-- MySQL dump 10.13\n"), r"is a dump of MySQL"),
    "sql": (_file("rows.sql", b"INSERT INTO docs VALUES (1);"), r"is a script of SQL"),
    "redis": (_file("dump.rdb", b"REDIS0011" + bytes(40)), r"is a dump of Redis"),
    "xz": (_file("rows.jsonl.xz", b"\xfd7zXZ\x00" + bytes(40)), r"is compressed.*xz -dk .*rows\.jsonl\.xz"),
    "bz2": (_file("rows.csv.bz2", b"BZh91AY" + bytes(40)), r"is compressed.*bunzip2 -k .*rows\.csv\.bz2"),
    "zst": (_file("rows.jsonl.zst", b"\x28\xb5\x2f\xfd" + bytes(40)), r"is compressed.*zstd -d .*rows\.jsonl\.zst"),
    "tar.xz": (_file("rows.tar.xz", b"\xfd7zXZ\x00" + bytes(40)), r"is an archive"),
    "XML": (_file("docs.xml", b"<?xml version='1.0'?><add><doc/></add>"), r"is XML.*JSON lines or CSV"),
    "YAML": (_file("docs.yaml", b"- text: a\n"), r"is YAML.*yaml\.safe_load"),
    "SurrealDB": (_file("docs.surql", b"OPTION IMPORT;"), r"is a script of SurrealDB.*JSON lines"),
    "raw numbers": (_file("v.f32", bytes(40)), r"a file of raw numbers.*numpy\.fromfile"),
    "not a whole file": (_file("v.fvecs", struct.pack("<i", 3) + bytes(40)), r"no whole number of rows"),
    "Python's print": (
        _file("rows.json", b"[{'text': 'a', 'v': [0.1, 0.2]}]"),
        r"is not JSON.*what Python prints.*json\.dump",
    ),
    "parts of other tables": (
        lambda folder: _folder(a__json=b'[{"text": "a", "n": 1}]', b__json=b'[{"id": 1, "v": [0.1, 0.2]}]')(folder),
        r"no parts of one table: a\.json and b\.json have not the same columns.*embaudit vectors .*b\.json",
    ),
    "zarr": (_folder(__zarray=b"{}"), r"is a store of Zarr.*zarr\.open"),
    "txtai": (_folder(config=b"x", embeddings=b"x", documents=b"x"), r"is an index of txtai.*--texts texts\.csv"),
    "checkpoint": (_folder(config__json=b"{}", model__safetensors=b""), r"is a checkpoint, not a store"),
    "GGUF": (_file("m.gguf", b"GGUF" + bytes(40)), r"is a checkpoint in GGUF"),
    "LFS": (_file("v.faiss2", b"version https://git-lfs.github.com/spec/v1\n"), r"a pointer of Git LFS.*git lfs pull"),
    "HTML": (_file("v.bin", b"<!DOCTYPE html><html>"), r"is a web page"),
    "word2vec": (_file("w.bin", b"2 3\na " + struct.pack("<3f", 0.1, 0.2, 0.3)), r"word2vec's binary form.*gensim"),
    "nothing": (_file("v.bin", b""), r"it is empty"),
    "something": (
        _file("v.xyz", b"what is this"),
        r"is no store of vectors that is read\. It begins with b'what is this'",
    ),
    "two files": (_folder(a__json=b"[]", b__csv=b"text"), r"a\.json, .*b\.csv.*embaudit vectors .*a\.json"),
    "DuckDB": (
        _newer_duckdb,
        r"rows\.duckdb was made by DuckDB v9\.1\.0, in form 1048576, which the DuckDB [\d.]+ here does not read\."
        r".*duckdb .*rows\.duckdb -c \"COPY TABLE TO 'rows\.parquet'\".*STORAGE_VERSION 'v1\.5\.0'",
    ),
}


@pytest.mark.parametrize("kind", UNREAD)
def test_what_is_not_read_is_named_with_the_line_that_exports_it(kind: str, tmp_path: Path) -> None:
    write, said = UNREAD[kind]
    with pytest.raises(EmbauditError, match=f"(?s){said}") as raised:
        open_store(write(tmp_path))
    assert len(str(raised.value).replace(str(tmp_path), "")) < 650


@pytest.mark.parametrize("form", ["", " (STORAGE_VERSION 'v1.5.0')"], ids=["its own form", "the older form"])
def test_a_file_of_duckdb_2_is_read_where_duckdb_2_is(form: str, tmp_path: Path) -> None:
    import duckdb

    if int(duckdb.__version__.partition(".")[0]) < 2:
        pytest.skip(f"DuckDB {duckdb.__version__} is installed: make test-newest has DuckDB 2")
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{tmp_path}/rows.duckdb' AS rows{form}")
        connection.execute(f"CREATE TABLE rows.docs (text VARCHAR, v FLOAT[{D}])")
        pairs = zip(TEXTS, VECTORS.tolist(), strict=True)
        connection.executemany("INSERT INTO rows.docs VALUES (?, ?)", [[text, vector] for text, vector in pairs])
        connection.execute("DETACH rows")
    (batch,) = open_store(tmp_path / "rows.duckdb").batches()
    assert batch.texts == TEXTS
    np.testing.assert_array_equal(batch.vectors[D][1], VECTORS)


def test_a_folder_with_one_file_is_that_file(tmp_path: Path) -> None:
    """As Vectra's, whose index.json has the items."""
    items = [
        {"id": str(row), "metadata": {"text": text}, "vector": vector, "norm": 1}
        for row, (text, vector) in enumerate(zip(TEXTS, VECTORS.tolist(), strict=True))
    ]
    (tmp_path / "index.json").write_text(json.dumps({"version": 1, "metadata_config": {}, "items": items}))
    (tmp_path / "notes.md").write_text("of other things")
    (batch,) = open_store(tmp_path).batches()
    assert (batch.rows, batch.texts) == (ROWS, TEXTS)


def test_orc_is_read(tmp_path: Path) -> None:
    from pyarrow import orc

    orc.write_table(pa.table({"text": TEXTS, "v": VECTORS.tolist()}), tmp_path / "rows.orc")
    batches = list(open_store(tmp_path / "rows.orc").batches())
    assert [text for batch in batches for text in batch.texts or ()] == TEXTS
    np.testing.assert_allclose(np.concatenate([batch.vectors[D][1] for batch in batches]), VECTORS, atol=1e-6)


def _fvecs(folder: Path) -> Path:
    rows = b"".join(struct.pack("<i", D) + one.tobytes() for one in VECTORS)
    (folder / "base.fvecs").write_bytes(rows)
    return folder / "base.fvecs"


def _fbin(folder: Path) -> Path:
    (folder / "base.fbin").write_bytes(struct.pack("<ii", ROWS, D) + VECTORS.tobytes())
    return folder / "base.fbin"


def _objects_in_npz(folder: Path) -> Path:
    np.savez(folder / "rows.npz", v=VECTORS, text=np.array(TEXTS, object))
    return folder / "rows.npz"


def _pickled(content: Any) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / "rows.pkl").write_bytes(pickle.dumps(content))
        return folder / "rows.pkl"

    return write


def _saved_by_id(folder: Path) -> Path:
    import torch

    rows = zip(TEXTS, VECTORS, strict=True)
    content = {f"id-{row}": {"text": text, "v": torch.tensor(one)} for row, (text, one) in enumerate(rows)}
    torch.save(content, folder / "rows.pt")
    return folder / "rows.pt"


def _parts(suffix: str, written: Callable[[slice], str]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        for number, own in enumerate((slice(0, 9), slice(9, None))):
            (folder / f"part-{number}{suffix}").write_text(written(own), encoding="utf-8")
        (folder / "_SUCCESS").write_bytes(b"")
        return folder

    return write


def _lines(own: slice) -> str:
    rows = zip(TEXTS[own], VECTORS[own].tolist(), strict=True)
    return "".join(json.dumps({"text": text, "v": one}) + "\n" for text, one in rows)


def _by_commas(own: slice) -> str:
    rows = zip(TEXTS[own], VECTORS[own].tolist(), strict=True)
    return "text,v\n" + "".join(f'{text},"{one}"\n' for text, one in rows)


def _without_suffix(folder: Path) -> Path:
    (folder / "rows.jsonl.out").write_text(_lines(slice(None)), encoding="utf-8")
    return folder / "rows.jsonl.out"


def _copied(folder: Path) -> Path:
    rows = zip(TEXTS, VECTORS.tolist(), strict=True)
    lines = [f'"{text[0]}" is {text}\\nline\t\\N\t{one}' for text, one in rows]
    (folder / "rows.tsv").write_text("text\tnothing\tv\n" + "\n".join(lines), encoding="utf-8")
    return folder / "rows.tsv"


def _projected(folder: Path) -> Path:
    (folder / "vectors.tsv").write_text("\n".join("\t".join(map(str, one)) for one in VECTORS), encoding="utf-8")
    (folder / "metadata.tsv").write_text("\n".join(TEXTS), encoding="utf-8")
    return folder


def _tensors_beside(folder: Path) -> Path:
    from safetensors.numpy import save_file

    save_file({"embeddings": VECTORS}, folder / "embeddings.safetensors")
    (folder / "chunks.json").write_text(json.dumps(TEXTS), encoding="utf-8")
    return folder


def _arrays_beside(kind: Any) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        np.save(folder / "vectors.npy", VECTORS)
        np.save(folder / "texts.npy", np.array(TEXTS, dtype=kind))
        return folder

    return write


def _joined(folder: Path) -> Path:
    ids = [f"chunk-{row}" for row in range(ROWS)]
    with sqlite3.connect(folder / "rows.db") as connection:
        connection.execute("CREATE TABLE chunks (id TEXT, file TEXT, content TEXT)")
        connection.execute("CREATE TABLE vectors (chunk_id TEXT, model TEXT, v BLOB)")
        connection.execute("CREATE TABLE libsql_vector_meta_shadow (name TEXT, metadata BLOB)")
        connection.execute("CREATE TABLE v_idx_shadow (index_key INTEGER, data BLOB)")
        connection.execute("INSERT INTO v_idx_shadow VALUES (1, ?)", (VECTORS[:9].tobytes(),))
        rows = [(one, "d", text) for one, text in zip(ids, TEXTS, strict=True)]
        connection.executemany("INSERT INTO chunks VALUES (?, ?, ?)", rows[::-1])
        blobs = [(one, "m", vector.tobytes()) for one, vector in zip(ids, VECTORS, strict=True)]
        connection.executemany("INSERT INTO vectors VALUES (?, ?, ?)", blobs)
    connection.close()
    return folder / "rows.db"


def _graph(folder: Path) -> Path:
    nodes = [
        {"type": "node", "id": str(row), "labels": ["Chunk"], "properties": {"text": text, "v": one}}
        for row, (text, one) in enumerate(zip(TEXTS, VECTORS.tolist(), strict=True))
    ]
    file = {"type": "node", "id": "f", "labels": ["File"], "properties": {"name": "a"}}
    edge = {"type": "relationship", "id": "r", "label": "OF", "start": {"id": "1"}, "end": {"id": "f"}}
    (folder / "all.json").write_text("\n".join(map(json.dumps, [file, *nodes, edge, edge])), encoding="utf-8")
    return folder / "all.json"


def _structs(folder: Path) -> Path:
    rows = [{"text": text, "v": one} for text, one in zip(TEXTS, VECTORS.tolist(), strict=True)]
    own = pa.table({"file": ["a", "b"], "chunks": [rows[:9], rows[9:]]})
    pq.write_table(own, folder / "rows.parquet")
    return folder / "rows.parquet"


def _grouped(folder: Path) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "rows.h5", "w") as file:
        for row, (text, one) in enumerate(zip(TEXTS, VECTORS, strict=True)):
            file[f"chunk_{row:04}/v"], file[f"chunk_{row:04}/text"] = one, text
    return folder / "rows.h5"


def _lists_beside(folder: Path) -> Path:
    (folder / "embeddings.json").write_text(json.dumps(VECTORS.tolist()), encoding="utf-8")
    (folder / "chunks.json").write_text(json.dumps(TEXTS), encoding="utf-8")
    return folder


def _blocks(folder: Path) -> Path:
    four = [slice(row, row + 4) for row in range(0, ROWS, 4)]
    lines = [{"text": TEXTS[own], "e": {"type": "t", "blocks": dict(enumerate(VECTORS[own].tolist()))}} for own in four]
    (folder / "feed.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return folder / "feed.jsonl"


ROWS_BY_ID = {f"id-{row}": {"text": text, "v": one} for row, (text, one) in enumerate(zip(TEXTS, VECTORS, strict=True))}
# How it is written, and what is said of it.
ALSO_READ: dict[str, tuple[Callable[[Path], Path], str]] = {
    "objects in .npz": (_objects_in_npz, ""),
    "a pickle of vectors by text": (_pickled(dict(zip(TEXTS, VECTORS, strict=True))), ""),
    "a pickle of rows by id": (_pickled(ROWS_BY_ID), ""),
    "a pickle of columns": (_pickled({"text": TEXTS, "v": VECTORS}), ""),
    "tensors by id": (_saved_by_id, ""),
    "lines in parts": (_parts(".jsonl", _lines), "those of 2 files of the folder"),
    "cells in parts": (_parts(".csv", _by_commas), "those of 2 files of the folder"),
    "lines by their content": (_without_suffix, ""),
    "lines of the projector": (_projected, "those of metadata.tsv beside it"),
    "tensors beside texts": (_tensors_beside, "those of chunks.json beside it"),
    "texts of NumPy's": (_arrays_beside(str), "those of texts.npy beside it"),
    "texts as objects": (_arrays_beside(object), "those of texts.npy beside it"),
    "texts of another table": (_joined, "table chunks, by vectors.chunk_id = chunks.id"),
    "structs in lists": (_structs, "a row for each of its pieces (chunks)"),
    "a group for each row": (_grouped, ""),
    "lists beside texts": (_lists_beside, "those of chunks.json beside it"),
    "Vespa's blocks": (_blocks, "a row for each of its pieces (e)"),
    "a graph": (_graph, "are left out: 1 File, 2 OF"),
}


@pytest.mark.parametrize("form", ALSO_READ)
def test_what_people_write_otherwise_is_read(form: str, tmp_path: Path) -> None:
    write, said = ALSO_READ[form]
    place = write(tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*")}
    store = open_store(place)
    batches = list(store.batches())
    assert [text for batch in batches for text in batch.texts or ()] == TEXTS
    np.testing.assert_allclose(np.concatenate([batch.vectors[D][1] for batch in batches]), VECTORS, atol=1e-6)
    assert said in " ".join(store.notes)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*")} == before


@pytest.mark.parametrize("write", [_fvecs, _fbin])
def test_files_of_benchmarks_are_read(write: Callable[[Path], Path], tmp_path: Path) -> None:
    (batch,) = open_store(write(tmp_path)).batches()
    np.testing.assert_array_equal(batch.vectors[D][1], VECTORS)


def test_cells_that_no_quotes_enclose_are_read_as_copy_writes_them(tmp_path: Path) -> None:
    (batch,) = open_store(_copied(tmp_path)).batches(["nothing"])
    assert batch.texts == [f'"{text[0]}" is {text}\nline' for text in TEXTS]
    assert set(batch.fields["nothing"]) == {None}
    np.testing.assert_allclose(batch.vectors[D][1], VECTORS, atol=1e-6)


def test_of_lists_with_other_fields_one_is_named(tmp_path: Path) -> None:
    vectors = VECTORS.tolist()
    chunks = [{"id": row, "content": TEXTS[row], "n": 1, "vector": vectors[row]} for row in range(ROWS)]
    entities = [{"name": "a", "kind": "b", "vector": vectors[row]} for row in range(3)]
    (tmp_path / "rows.json").write_text(json.dumps({"chunks": chunks, "entities": entities}), encoding="utf-8")
    with pytest.raises(EmbauditError, match=r"has 2 lists: chunks, entities\..*--from chunks"):
        open_store(tmp_path / "rows.json")
    (batch,) = open_store(tmp_path / "rows.json", ReadOptions(part="chunks")).batches()
    assert batch.texts == TEXTS


def test_a_text_of_several_vectors_is_not_that_of_each(tmp_path: Path) -> None:
    """They are its pieces', which are not in the file."""
    place = _joined(tmp_path)
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE vectors SET chunk_id = 'chunk-1' WHERE chunk_id = 'chunk-2'")
    connection.close()
    store = open_store(place)
    assert (store.has_texts, store.notes) == (False, ())


def test_pieces_of_rows_that_have_vectors_themselves_are_said_and_can_be_named(tmp_path: Path) -> None:
    chunks = [{"text": text, "v": one} for text, one in zip(TEXTS, VECTORS.tolist(), strict=True)]
    rows = [{"id": row, "vector": VECTORS[row].tolist(), "chunks": chunks[4 * row : 4 * row + 4]} for row in range(3)]
    (tmp_path / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    assert "--from chunks reads these" in " ".join(open_store(tmp_path / "rows.json").notes)
    asked = ReadOptions(part="chunks", vector="chunks.v")
    (batch,) = open_store(tmp_path / "rows.json", asked).batches()
    assert (batch.texts, batch.ids) == (TEXTS[:12], [f"{row}[{piece}]" for row in range(3) for piece in range(4)])


@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("name", ["words.vec", "words.txt"])
def test_word_vectors_are_read(name: str, header: bool, tmp_path: Path) -> None:
    words = [f"word{row}" if row % 9 else f"two words{row}" for row in range(1, ROWS + 1)]
    lines = [" ".join([word, *map(str, vector)]) for word, vector in zip(words, VECTORS.tolist(), strict=True)]
    (tmp_path / name).write_text("\n".join([f"{ROWS} {D}", *lines] if header else lines), encoding="utf-8")
    (batch,) = open_store(tmp_path / name).batches()
    assert batch.texts == words
    np.testing.assert_allclose(batch.vectors[D][1], VECTORS, atol=1e-6)


def test_a_file_of_texts_is_none_of_word_vectors(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VECTORS)
    (tmp_path / "t.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    (batch,) = open_store(tmp_path / "v.npy", ReadOptions(texts=tmp_path / "t.txt")).batches()
    assert batch.texts == TEXTS


def test_an_index_of_hnswlib_is_read_without_what_was_deleted(tmp_path: Path) -> None:
    """In the layout of HierarchicalNSW::saveIndex; its links are of no account here."""
    links = 8
    vector, number = 4 * links + 4, 4 * links + 4 + 4 * D
    header = struct.pack("<6QiI3QdQ", 0, 500, ROWS, number + 8, number, vector, 0, 0, 4, links, 4, 0.72, 50)
    blocks = [
        bytes([links, 0, row in GONE, 0]) + bytes(4 * links) + VECTORS[row].tobytes() + struct.pack("<Q", 1_000 + row)
        for row in range(ROWS)
    ]
    (tmp_path / "index.bin").write_bytes(header + b"".join(blocks) + bytes(4 * ROWS))
    store = open_store(tmp_path / "index.bin")
    (batch,) = store.batches()
    assert (store.kind, store.rows, batch.ids) == ("hnswlib", len(KEPT), [1_000 + row for row in KEPT])
    np.testing.assert_array_equal(batch.vectors[D][1], VECTORS[KEPT])
    (tmp_path / "short.bin").write_bytes(header + b"".join(blocks[:9]))
    with pytest.raises(EmbauditError, match="is no store of vectors"):
        open_store(tmp_path / "short.bin")


def _field(number: int, value: bytes | int) -> bytes:
    """Of a protobuf message."""
    if isinstance(value, int):
        return _whole(number << 3) + _whole(value)
    return _whole(number << 3 | 2) + _whole(len(value)) + value


def _whole(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = b""
    while value > 127:
        found, value = found + bytes([value & 127 | 128]), value >> 7
    return found + bytes([value])


def _of_row(row: int) -> bytes:
    vector = _field(1, D) + _field(2, _field(1, VECTORS[row].tobytes()))
    text = json.dumps({"text": TEXTS[row], "source": f"s{row}"}).encode()
    own = [
        _field(1, 5) + _field(2, b"id") + _field(3, _field(3, _field(1, _whole(row - 5)))),
        _field(1, 101) + _field(2, b"vector") + _field(4, vector),
        _field(1, 10) + _field(2, b"score") + _field(3, _field(4, _field(1, struct.pack("<f", 0.5)))),
        _field(1, 21) + _field(2, b"title") + _field(3, _field(6, _field(1, b"a title"))),
        _field(1, 23) + _field(2, b"$meta") + _field(3, _field(9, _field(1, text))),
        _field(1, 5) + _field(2, b"RowID") + _field(3, _field(3, _field(1, _whole(9)))),
    ]
    return b"".join(_field(1, one) for one in own) + _field(2, 1)


def test_a_file_of_an_older_milvus_lite_is_read(tmp_path: Path) -> None:
    file = tmp_path / "milvus_demo.db"
    with sqlite3.connect(file) as connection:
        connection.execute(
            "CREATE TABLE collection_meta (id INTEGER PRIMARY KEY, collection_name VARCHAR(1024), "
            "meta_type VARCHAR(1024), blob_field BLOB, string_field VARCHAR(1024))"
        )
        pair = _field(5, _field(1, b"metric_type") + _field(2, b"COSINE"))
        for name in ("docs", "empty"):
            connection.execute(f'CREATE TABLE "{name}" (id INTEGER PRIMARY KEY, milvus_id VARCHAR(1024), data BLOB)')
            told = [(name, "schema", b"", "id"), (name, "index", _field(1, 101) + pair, "vector")]
            insert = (
                "INSERT INTO collection_meta (collection_name, meta_type, blob_field, string_field) VALUES (?, ?, ?, ?)"
            )
            connection.executemany(insert, told)
        rows = [(str(row), _of_row(row)) for row in range(ROWS)]
        connection.executemany("INSERT INTO docs (milvus_id, data) VALUES (?, ?)", rows)
    connection.close()
    with pytest.raises(EmbauditError, match="has 2 collections: docs, empty"):
        open_store(file)
    store = open_store(file, ReadOptions(part="docs"))
    (batch,) = store.batches(["source"])
    assert (store.metric, store.rows, batch.texts, batch.fields["source"][3]) == ("cosine", ROWS, TEXTS, "s3")
    assert batch.ids == [row - 5 for row in range(ROWS)]
    np.testing.assert_array_equal(batch.vectors[D][1], VECTORS)
    found = row_of(_of_row(7))
    assert (found["score"], found["title"]) == (0.5, "a title")
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE docs SET data = ? WHERE id = 9", (b"\x0a\xff",))
    connection.close()
    with pytest.raises(EmbauditError, match="row 9 of docs is no message of Milvus's"):
        list(open_store(file, ReadOptions(part="docs")).batches())


def _scalar(number: int, value: bytes | int) -> bytes:
    return _field(3, _field(number, _field(1, value)))


# A field of a row as schemapb.FieldData has it, and what it is.
FIELDS: dict[str, tuple[bytes, Any]] = {
    "true": (_scalar(1, 1), 1),
    "a whole number": (_scalar(2, 300), 300),
    "below zero": (_scalar(3, -5), -5),
    "packed": (_scalar(3, _whole(1 << 40)), 1 << 40),
    "the least": (_scalar(3, -(1 << 63)), -(1 << 63)),
    "the largest": (_scalar(3, (1 << 63) - 1), (1 << 63) - 1),
    "float32": (_scalar(4, struct.pack("<f", 0.5)), 0.5),
    "float64": (_scalar(5, struct.pack("<d", 0.1)), 0.1),
    "text": (_scalar(6, b"a title"), "a title"),
    "JSON": (_scalar(9, b'{"a": [1]}'), {"a": [1]}),
    "no JSON": (_scalar(9, b"{"), None),
    "nothing": (b"", None),
    "of no kind that is known": (_scalar(8, b"a"), None),
    "a vector": (_field(4, _field(1, 2) + _field(2, _field(1, struct.pack("<2f", 0.5, -2)))), [0.5, -2]),
    "bits": (_field(4, _field(1, 16) + _field(3, b"\x01\xff")), [1, 255]),
    "float16": (_field(4, _field(1, 2) + _field(4, np.array([0.5, -2], "<f2").tobytes())), [0.5, -2]),
    "bfloat16": (_field(4, _field(1, 2) + _field(5, np.array([0x3F00, 0xC000], "<u2").tobytes())), [0.5, -2]),
    "int8": (_field(4, _field(1, 2) + _field(7, b"\x01\xff")), [1, -1]),
    "a vector of no kind": (_field(4, _field(1, 2)), None),
}


@pytest.mark.parametrize(("value", "expected"), FIELDS.values(), ids=FIELDS)
def test_a_field_of_milvus_is_what_its_kind_says(value: bytes, expected: Any) -> None:
    # Of other kinds, which are passed over: eight bytes, and four.
    others = b"\x49" + bytes(8) + b"\x4d" + bytes(4)
    found = row_of(others + _field(1, _field(1, 5) + others + _field(2, b"own") + value) + _field(2, 1))
    assert list(found) == ["own"]
    assert np.array_equal(found["own"], expected)
    assert isinstance(found["own"], float) == isinstance(expected, float)


@pytest.mark.parametrize(
    ("message", "why"),
    [(b"\x0a\x05abc", "in the middle"), (b"\x0b", "an unknown type"), (b"\x80", "in the middle")],
)
def test_what_is_no_message_is_none(message: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        row_of(message)


# Of a header of hnswlib, what cannot be.
NO_HNSWLIB = {
    **{"begins later": (0, 8), "no rows": (2, 0), "more than fit": (1, ROWS - 1), "number within": (4, 36)},
    **{"longer rows": (3, 4 * D + 36 + 16), "vector elsewhere": (5, 32), "no link": (8, 0), "more links": (8, 9)},
    **{"no factor": (11, 0.0), "a factor of two": (11, 2.0), "more rows than bytes": (2, ROWS + 1)},
}


@pytest.mark.parametrize("name", NO_HNSWLIB)
def test_what_is_no_header_of_hnswlib_is_none(name: str, tmp_path: Path) -> None:
    size = 4 * D + 36 + 8
    header: list[Any] = [0, ROWS + 1, ROWS, size, size - 8, 36, 0, 0, 4, 8, 4, 0.72, 50]
    place = StorePlace(str(tmp_path / "rows.bin"))
    # On the last byte, and on one less.
    place.path.write_bytes(struct.pack("<6QiI3QdQ", *header) + bytes(ROWS * size))
    assert is_hnswlib(place)
    place.path.write_bytes(struct.pack("<6QiI3QdQ", *header) + bytes(ROWS * size - 1))
    assert not is_hnswlib(place)
    field, value = NO_HNSWLIB[name]
    header[field] = value
    place.path.write_bytes(struct.pack("<6QiI3QdQ", *header) + bytes(ROWS * size))
    assert not is_hnswlib(place)
    with pytest.raises(CorpusError, match=r"rows\.bin is no index of hnswlib"):
        open_hnswlib(place, ReadOptions())
