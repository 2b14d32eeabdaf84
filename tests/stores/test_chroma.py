"""Chroma: folders by the embedded engine, and its own server."""

from __future__ import annotations

import shutil
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine_rows import DELETED, IDS, KEPT, ROWS, TEXTS, TITLES, VECTORS, D, check_rows, contents
from ports import running_server

from embaudit.stores import servers
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.words.errors import EmbauditError

chromadb = pytest.importorskip("chromadb", reason="needs chromadb: pip install 'embaudit[chroma]'")


def build(
    folder: Path, vectors: np.ndarray, texts: Sequence[str | None], ids: Sequence[str], titles: Sequence[str]
) -> str:
    """A folder with one collection of these rows."""
    place = folder / "chroma"
    client = chromadb.PersistentClient(path=str(place), settings=chromadb.Settings(anonymized_telemetry=False))
    fill(client, "docs", vectors, texts, ids, titles)
    client.close()
    return str(place)


def fill(client: Any, name: str, vectors: np.ndarray, texts: Any, ids: Any, titles: Any, space: str = "ip") -> Any:
    settings = {"hnsw": {"space": space}}
    collection = client.create_collection(name, configuration=settings, embedding_function=None)
    fields = [{"title": one, "page": row} for row, one in enumerate(titles)]
    if len(ids):
        collection.add(ids=list(ids), embeddings=vectors, documents=list(texts), metadatas=fields)
    return collection


def delete(named: str, ids: Sequence[str]) -> None:
    client = chromadb.PersistentClient(path=named, settings=chromadb.Settings(anonymized_telemetry=False))
    client.get_collection("docs", embedding_function=None).delete(ids=list(ids))
    client.close()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = build(
        tmp_path_factory.mktemp("built"),
        VECTORS,
        [f"text {row}" for row in range(ROWS)],
        IDS,
        [f"title {row}" for row in range(ROWS)],
    )
    delete(named, DELETED)
    return Path(named)


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "store"))


def test_a_folder_is_read_whole_and_never_written_to(folder: Path) -> None:
    before = contents(folder)
    check_rows(open_store(folder))
    check_rows(open_store(folder))
    assert contents(folder) == before
    store = open_store(folder)
    assert (store.kind, store.metric, store.rows, store.numbers) == ("Chroma", "dot", len(KEPT), "float32")
    assert store.fields == ("metadata.page", "metadata.title")


def test_nothing_is_printed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    check_rows(open_store(folder))
    assert capfd.readouterr() == ("", "")


def test_pages_are_joined(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("embaudit.stores.chroma.IDS_AT_ONCE", 70)
    monkeypatch.setattr("embaudit.stores.chroma.ROWS_AT_ONCE", 11)
    check_rows(open_store(folder))


def test_a_folder_that_a_program_holds_open_and_writes_to(folder: Path) -> None:
    """Its rows are those of the moment at which it was opened."""
    writer = chromadb.PersistentClient(path=str(folder), settings=chromadb.Settings(anonymized_telemetry=False))
    collection = writer.get_collection("docs", embedding_function=None)
    collection.add(ids=["new"], embeddings=[[1.0] * D])
    store = open_store(folder)
    collection.add(ids=["newer"], embeddings=[[1.0] * D])
    ids = [one for batch in store.batches() for one in batch.ids or ()]
    assert ids == [*(IDS[row] for row in KEPT), "new"]
    writer.close()


def test_collections_are_told_apart(tmp_path: Path) -> None:
    place = tmp_path / "many"
    client = chromadb.PersistentClient(path=str(place), settings=chromadb.Settings(anonymized_telemetry=False))
    for number in range(30):
        client.create_collection(f"part-{number:03}", embedding_function=None)
    fill(client, "cosines", VECTORS[:4], [None] * 4, IDS[:4], IDS[:4], "cosine")
    client.close()
    with pytest.raises(EmbauditError, match=r"has 31 collections: cosines, .* and 19 more.*--from cosines") as raised:
        open_store(place)
    assert len(str(raised.value).replace(str(place), "")) < 450
    with pytest.raises(EmbauditError, match="no collection 'cosine'; did you mean cosines"):
        open_store(place, ReadOptions(part="cosine"))
    store = open_store(place, ReadOptions(part="cosines"))
    assert (store.metric, store.rows, store.has_texts) == ("cosine", 4, False)
    empty = open_store(place, ReadOptions(part="part-007"))
    assert (empty.rows, list(empty.batches())) == (0, [])


def another_version(folder: Path) -> None:
    with sqlite3.connect(folder / "chroma.sqlite3") as connection:
        connection.execute("INSERT INTO migrations VALUES ('metadb', 99, '00099-future.sqlite.sql', 'SELECT 1', 'x')")
        connection.execute("ALTER TABLE collections RENAME TO shelves")
    connection.close()


def damaged(folder: Path) -> None:
    file = folder / "chroma.sqlite3"
    file.write_bytes(file.read_bytes()[:5_000] + b"x" * 9_000)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (another_version, "another version wrote it.*pip install chromadb==VERSION"),
        (damaged, "cannot be read"),
    ],
    ids=["another version", "damaged"],
)
def test_a_folder_that_cannot_be_read_is_named(spoil: Any, said: str, folder: Path) -> None:
    spoil(folder)
    before = contents(folder)
    with pytest.raises(EmbauditError, match=said) as raised:
        list(open_store(folder).batches(["metadata.title"]))
    assert "embaudit-store-" not in str(raised.value)
    assert contents(folder) == before


def test_a_server_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "PAUSES", ())
    for address in ("chroma:http://someone:hunter2secret@127.0.0.1:9", "http://someone:hunter2secret@127.0.0.1:9"):
        with pytest.raises(EmbauditError, match="does not answer") as raised:
            open_store(address)
        assert "hunter2" not in str(raised.value)
    with pytest.raises(EmbauditError, match=r"no address of a server.*chroma:http://HOST:PORT"):
        open_store("chroma:somewhere")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    program = str(Path(sys.executable).parent / "chroma")
    command = [program, "run", "--path", str(folder / "data"), "--port", "PORT", "--host", "127.0.0.1"]
    with running_server(command, "/api/v2/heartbeat", folder / "log") as address:
        yield address


@pytest.mark.slow
def test_its_own_server_is_read(server: str) -> None:
    host, port = server.removeprefix("http://").split(":")
    client = chromadb.HttpClient(host=host, port=int(port), settings=chromadb.Settings(anonymized_telemetry=False))
    collection = fill(client, "docs", VECTORS, TEXTS, IDS, TITLES)
    collection.delete(ids=list(DELETED))
    for named in (server, f"chroma:{server}"):
        check_rows(open_store(named))
        check_rows(open_store(named))
    store = open_store(server)
    assert (store.kind, store.metric, store.rows) == ("Chroma", "dot", len(KEPT))
    collection.add(ids=["new"], embeddings=[[1.0] * D])
    search = store.search()  # type: ignore[misc]
    assert (search.dials, search.exact, search.metric) == ((), None, store.metric)
    own = np.argsort(-(VECTORS @ VECTORS[8]))[:4]
    assert search.find(VECTORS[8], 4, {}, ()).ids == [IDS[row] for row in own]
    assert search.find(VECTORS[8], 4, {}, [("metadata.title", TITLES[9]), ("metadata.page", 9)]).ids == [IDS[9]]
    with pytest.raises(EmbauditError, match="changed while it was read"):
        list(store.batches())
    with pytest.raises(EmbauditError, match="no collection 'dogs'; did you mean docs"):
        open_store(server, ReadOptions(part="dogs"))
