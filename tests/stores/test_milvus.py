"""Milvus: folders of Milvus Lite, and its server, which speaks Milvus's protocol."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_rows import DELETED, IDS, TEXTS, TITLES, VECTORS, D, check_rows, contents

from embaudit.stores import servers
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.words.errors import EmbauditError

NEEDED = "pip install 'embaudit[milvus]'"
pymilvus = pytest.importorskip("pymilvus", reason=f"needs pymilvus: {NEEDED}")
pytest.importorskip("milvus_lite", reason=f"needs milvus-lite: {NEEDED}")


def build(folder: Path, vectors: np.ndarray, texts: Sequence[str], ids: Sequence[str], titles: Sequence[str]) -> str:
    """A folder with one collection of these rows."""
    named = str(folder / "milvus.db")
    with opened(named) as client:
        fill(client, "docs", vectors, texts, ids, titles)
    return named


class opened:  # noqa: N801
    """A client of a folder, whose server ends with it."""

    def __init__(self, named: str) -> None:
        self.named = named

    def __enter__(self) -> Any:
        self.client = pymilvus.MilvusClient(self.named)
        return self.client

    def __exit__(self, *_: Any) -> None:
        from milvus_lite.server_manager import server_manager_instance

        self.client.close()
        server_manager_instance.release_server(self.named)


def fill(client: Any, name: str, vectors: np.ndarray, texts: Any, ids: Any, titles: Any) -> None:
    kinds = pymilvus.DataType
    schema = pymilvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=True)
    schema.add_field("key", kinds.VARCHAR, is_primary=True, max_length=100)
    schema.add_field("vector", kinds.FLOAT_VECTOR, dim=vectors.shape[1])
    schema.add_field("text", kinds.VARCHAR, max_length=1_000)
    index = client.prepare_index_params()
    index.add_index("vector", index_type="HNSW", metric_type="IP", params={"M": 8, "efConstruction": 40})
    client.create_collection(name, schema=schema, index_params=index)
    rows = zip(ids, vectors.tolist(), texts, titles, strict=True)
    if len(ids):
        client.insert(
            name,
            [
                {"key": one, "vector": vector, "text": text, "metadata": {"title": title}, "page": 1}
                for one, vector, text, title in rows
            ],
        )


def delete(named: str, ids: Sequence[str]) -> None:
    with opened(named) as client:
        client.delete("docs", ids=list(ids))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = build(tmp_path_factory.mktemp("built"), VECTORS, TEXTS, IDS, TITLES)
    delete(named, DELETED)
    return Path(named)


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "store.db"))


def test_a_folder_is_read_whole_and_never_written_to(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = contents(folder)
    check_rows(open_store(folder))
    check_rows(open_store(folder))
    assert contents(folder) == before
    assert capfd.readouterr() == ("", "")


def test_a_folder_that_a_program_holds_open_is_read(folder: Path) -> None:
    with opened(str(folder)):
        check_rows(open_store(folder))


def test_collections_are_told_apart(tmp_path: Path) -> None:
    named = str(tmp_path / "many.db")
    with opened(named) as client:
        fill(client, "one", VECTORS[:0], [], [], [])
        client.create_collection("two", dimension=D)
    with pytest.raises(EmbauditError, match=r"has 2 collections: one, two.*--from one"):
        open_store(named)
    empty = open_store(named, ReadOptions(part="one"))
    assert (empty.rows, list(empty.batches())) == (0, [])


def test_a_damaged_folder_is_named(folder: Path) -> None:
    for file in folder.rglob("*.parquet"):
        file.write_bytes(b"PAR1 and nothing else")
    with pytest.raises(EmbauditError, match="cannot be read by Milvus Lite"):
        list(open_store(folder).batches())


@pytest.fixture
def server(folder: Path) -> Iterator[str]:
    from milvus_lite.server_manager import server_manager_instance

    address = server_manager_instance.start_and_get_uri(str(folder))
    pymilvus.MilvusClient(address).load_collection("docs")
    yield f"milvus:{address}"
    server_manager_instance.release_server(str(folder))


def test_a_server_is_read(server: str) -> None:
    check_rows(open_store(server))
    store = open_store(server)
    check_rows(store)
    search = store.search()  # type: ignore[misc]
    kept = [row for row in np.argsort(-(VECTORS @ VECTORS[8])).tolist() if IDS[row] not in DELETED]
    assert (search.metric, search.dials[0].name, search.exact) == ("dot", "ef", None)
    assert search.find(VECTORS[8], 5, {"ef": 300}, ()).ids == [IDS[row] for row in kept[:5]]
    where = [("metadata.title", TITLES[9]), ("page", 1), ("text", TEXTS[9])]
    # At its default, its graph finds none of the few rows that this leaves.
    for some in (where[:1], where[2:], where):
        assert search.find(VECTORS[8], 5, {"ef": 300}, some).ids == [IDS[9]]


def test_a_server_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(servers, "PAUSES", ())
    with pytest.raises(EmbauditError, match="does not answer") as raised:
        open_store("milvus:http://someone:hunter2secret@127.0.0.1:9")
    assert "hunter2" not in str(raised.value)
    assert capfd.readouterr() == ("", "")
