"""LanceDB: folders by the embedded engine, and a bucket."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from engine_rows import DELETED, IDS, KEPT, TEXTS, TITLES, VECTORS, D, check_rows, contents
from s3_server import SECRET, Bucket

from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.words.errors import EmbauditError

NEEDED = "pip install 'embaudit[lancedb]'"
lancedb = pytest.importorskip("lancedb", reason=f"needs lancedb: {NEEDED}")
lance = pytest.importorskip("lance", reason=f"needs pylance: {NEEDED}")


def build(
    folder: Path | str, vectors: np.ndarray, texts: Sequence[str | None], ids: Sequence[str], titles: Sequence[str]
) -> str:
    """A database with one table of these rows."""
    place = f"{folder}/lance"
    rows = rows_of(vectors, texts, ids, titles)
    lancedb.connect(place).create_table("docs", rows)
    return place


def rows_of(vectors: np.ndarray, texts: Any, ids: Any, titles: Any) -> pa.Table:
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    inner = pa.StructArray.from_arrays([pa.array(list(titles), pa.string())], ["title"])
    columns = [pa.array(list(ids), pa.string()), pa.array(list(texts), pa.string()), lists, inner]
    return pa.table(columns, names=["id", "text", "vector", "metadata"])


def delete(named: str, ids: Sequence[str]) -> None:
    lancedb.connect(named).open_table("docs").delete(f"id IN {tuple(ids)}")


def whole(folder: Path | str) -> str:
    named = build(folder, VECTORS, TEXTS, IDS, TITLES)
    delete(named, DELETED)
    return named


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(whole(tmp_path_factory.mktemp("built")))


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "store"))


def test_a_folder_is_read_whole_and_never_written_to(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    for place in (folder, folder / "docs.lance"):
        check_rows(open_store(place), atol=0)
        check_rows(open_store(place), atol=0)
    assert contents(folder) == before
    assert capfd.readouterr() == ("", "")
    store = open_store(folder)
    assert (store.kind, store.metric, store.rows, store.numbers) == ("LanceDB", "", len(KEPT), "float32")


def test_rows_that_are_added_meanwhile_are_of_another_version(folder: Path) -> None:
    store = open_store(folder)
    lancedb.connect(str(folder)).open_table("docs").add(rows_of(VECTORS[:2], "ab", "cd", "ef"))
    assert [one for batch in store.batches() for one in batch.ids or ()] == [IDS[row] for row in KEPT]
    assert open_store(folder).rows == len(KEPT) + 2


def test_the_metric_is_that_of_the_index(folder: Path) -> None:
    table = lancedb.connect(str(folder)).open_table("docs")
    table.create_index(metric="cosine", index_type="IVF_FLAT", num_partitions=2)
    assert open_store(folder).metric == "cosine"


def test_tables_are_told_apart(tmp_path: Path) -> None:
    database = lancedb.connect(str(tmp_path))
    for number in range(14):
        database.create_table(f"part-{number:02}", rows_of(VECTORS[:0], [], [], []))
    with pytest.raises(EmbauditError, match=r"has 14 tables: part-00, .* and 2 more.*--from part-00"):
        open_store(tmp_path)
    with pytest.raises(EmbauditError, match="no table 'part-0'"):
        open_store(tmp_path, ReadOptions(part="part-0"))
    empty = open_store(tmp_path, ReadOptions(part="part-03"))
    assert (empty.rows, list(empty.batches()), empty.columns["vector"]) == (0, [], "vector")


def test_two_columns_of_vectors_and_none_are_named(tmp_path: Path) -> None:
    two = rows_of(VECTORS, IDS, IDS, IDS)
    two = two.append_column("title_vector", rows_of(VECTORS[::-1], IDS, IDS, IDS).column("vector"))
    lancedb.connect(str(tmp_path / "two")).create_table("docs", two)
    with pytest.raises(EmbauditError, match="may be the vectors: vector, title_vector"):
        open_store(tmp_path / "two")
    lancedb.connect(str(tmp_path / "none")).create_table("docs", two.select(["id", "text"]))
    with pytest.raises(EmbauditError, match="no column of vectors: it has id"):
        open_store(tmp_path / "none")


def test_bfloat16_is_read(tmp_path: Path) -> None:
    from lance.arrow import BFloat16Type

    halves = (VECTORS.view(np.uint32) >> 16).astype(np.uint16)
    storage = pa.FixedSizeBinaryArray.from_buffers(pa.binary(2), halves.size, [None, pa.py_buffer(halves.tobytes())])
    numbers = pa.ExtensionArray.from_storage(BFloat16Type(), storage)
    lists = pa.FixedSizeListArray.from_arrays(numbers, D)
    lance.write_dataset(pa.table({"vector": lists, "text": IDS}), tmp_path / "docs.lance")
    found = [batch.vectors[D][1] for batch in open_store(tmp_path).batches()]
    assert (np.concatenate(found) == (halves.astype(np.uint32) << 16).view(np.float32)).all()


def test_a_table_that_lacks_a_file_is_named(folder: Path) -> None:
    next((folder / "docs.lance" / "data").iterdir()).unlink()
    with pytest.raises(EmbauditError, match=r"lacks files|cannot be read"):
        list(open_store(folder).batches())


@pytest.mark.slow
def test_a_bucket_is_read(bucket: Bucket) -> None:
    folder = f"{bucket.address}/vectors"
    options = {"allow_http": "true"}
    database = lancedb.connect(folder, storage_options=options)
    database.create_table("docs", rows_of(VECTORS, TEXTS, IDS, TITLES)).delete(f"id IN {tuple(DELETED)}")
    before = bucket.objects()
    check_rows(open_store(folder), atol=0)
    check_rows(open_store(f"{folder}/docs.lance"), atol=0)
    assert bucket.objects() == before
    with pytest.raises(EmbauditError, match="has no table") as raised:
        open_store(f"{bucket.address}/elsewhere")
    assert SECRET not in str(raised.value)
