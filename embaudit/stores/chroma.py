"""Chroma: a folder of its persistent client, or a server.

Its client writes to what it opens, so a copy of a folder is read: of the database, and of the index of the collection
that is meant.

A folder of Chroma 0.3 and before: two Parquet files, read as they are, since no later version opens them.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.stores.arrow import ParquetPart, table_of_parts
from embaudit.stores.chroma_search import search_of_server, search_on_copy
from embaudit.stores.copies import changed, copy_of, database_copy
from embaudit.stores.nested import batched, column_of, listed
from embaudit.stores.place import ReadOptions, StorePlace, part_meant
from embaudit.stores.servers import address_of, answers, basic_authorization, counted, patiently, quiet, without_user
from embaudit.stores.store import FETCH, LOOKED_AT, Metric, StoreColumn, StoreKind, StoreTable, Values, needed, reported
from embaudit.words.errors import CorpusError, EmbauditError, one_line
from embaudit.words.masking import keep_secret

DATABASE = "chroma.sqlite3"
KEY = "CHROMA_API_KEY"
VECTOR, TEXT, ID, FIELD = "embedding", "document", "id", "metadata."
# Ids are asked for first, and rows by their ids: to skip to a row takes the longer the farther it is.
IDS_AT_ONCE, ROWS_AT_ONCE = 20_000, 2_000
METRICS: Mapping[str, Metric] = {"l2": "l2", "cosine": "cosine", "ip": "dot"}
FEW = 300
COLLECTIONS = """
SELECT databases.tenant_id, databases.name, collections.name FROM collections JOIN databases
ON databases.id = collections.database_id ORDER BY 1, 2, 3
"""
SEGMENTS = """
SELECT segments.id FROM segments JOIN collections ON segments.collection = collections.id
JOIN databases ON databases.id = collections.database_id
WHERE (databases.tenant_id, databases.name, collections.name) = (?, ?, ?)
"""
# Of these, those whose vectors were written to a folder: the database has them no more.
WRITTEN = "SELECT max_seq_id.segment_id FROM max_seq_id JOIN segments ON id = segment_id WHERE scope = 'VECTOR'"
DEFAULT = ("default_tenant", "default_database")
Ask = Callable[..., Any]


def open_folder(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A collection of a folder that Chroma's persistent client wrote."""
    chromadb = _library(place.shown)
    copy = database_copy(place.path / DATABASE, place.shown)
    with _explained(place, chromadb.__version__):
        # Opening it brings an older database, which the copy is, to the version of the library.
        with quiet("chromadb"):
            chromadb.PersistentClient(path=str(copy), settings=_settings(chromadb))
        with closing(sqlite3.connect((copy / DATABASE).as_uri() + "?mode=ro", uri=True)) as connection:
            found = {_called(*row): row for row in connection.execute(COLLECTIONS)}
            name = part_meant(list(found), asked.part, place.shown)
            segments = [row[0] for row in connection.execute(SEGMENTS, found[name])]
            gone = [row[0] for row in connection.execute(WRITTEN) if row[0] in segments]
    if missing := [one for one in gone if not (place.path / one).is_dir()]:
        raise CorpusError(
            f"{place.shown} lacks the folder {missing[0]}, in which Chroma keeps the vectors of collection {name}: it "
            "was copied without it.",
            kept="Its ids, texts and metadata are in chroma.sqlite3.",
            next_step="Copy the whole folder, or embed the texts again.",
        )
    index = [place.path / one for one in segments if (place.path / one).is_dir()]
    for folder in copy_of(index, place.shown).iterdir() if index else ():
        folder.rename(copy / folder.name)

    def ask(call: Callable[..., Any], *args: Any, **given: Any) -> Any:
        with _explained(place, chromadb.__version__):
            return call(*args, **given)

    tenant, database, own = found[name]

    def opened(folder: str) -> Any:
        return chromadb.PersistentClient(path=folder, settings=_settings(chromadb), tenant=tenant, database=database)

    table = _table(f"{place.shown}, collection {name}", ask(opened, str(copy)), own, ask, is_pinned=True)
    return replace(table, search=search_on_copy(copy, opened, own, table.metric, table.rows or 0, ask))


def open_server(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A collection of a server: of the tenant and database that the environment names, as for its client."""
    address = address_of(place, "chroma")
    chromadb = _library(place.shown)
    key = os.environ.get(KEY, "")
    keep_secret(key)
    headers = basic_authorization(address) | ({"x-chroma-token": key} if key else {})

    def ask(call: Callable[..., Any], *args: Any, **given: Any) -> Any:
        with quiet("chromadb", "httpx", "httpcore"):
            return patiently(partial(call, *args, **given), place.shown, KEY)

    client = ask(
        chromadb.HttpClient,
        host=without_user(address),
        port=address.port or (443 if address.scheme == "https" else 80),
        ssl=address.scheme == "https",
        headers=headers,
        settings=_settings(chromadb),
        tenant=os.environ.get("CHROMA_TENANT", DEFAULT[0]),
        database=os.environ.get("DATABASE", DEFAULT[1]),
    )
    names: list[str] = []
    while some := ask(client.list_collections, limit=FEW, offset=len(names)):
        names += [one.name for one in some]
    name = part_meant(names, asked.part, place.shown)
    return _table(f"{place.shown}, collection {name}", client, name, ask)


def _table(shown: str, client: Any, name: str, ask: Ask, *, is_pinned: bool = False) -> StoreTable:
    collection = ask(client.get_collection, name, embedding_function=None)
    rows = ask(collection.count)
    some = ask(collection.get, limit=LOOKED_AT, include=["embeddings", "documents", "metadatas"])
    vectors = some["embeddings"]
    columns = {
        ID: StoreColumn("text", "text", tuple(some["ids"])),
        VECTOR: StoreColumn("list<item: float>", "vector", tuple(map(_listed, vectors if vectors is not None else ()))),
    }
    if texts := tuple(one for one in some["documents"] or () if one is not None):
        columns[TEXT] = StoreColumn("text", "text", texts)
    fields: dict[str, list[Any]] = {}
    for metadata in some["metadatas"] or ():
        for key, value in (metadata or {}).items():
            fields.setdefault(f"{FIELD}{key}", []).append(value)
    columns |= {field: column_of(values) for field, values in sorted(fields.items())}

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        include = [what for what, own in _included(names).items() if own]
        offset = 0
        while True:
            ids = ask(collection.get, limit=IDS_AT_ONCE, offset=offset, include=[])["ids"]
            for part in batched(ids, ROWS_AT_ONCE):
                found = ask(collection.get, ids=part, include=include) if include else {"ids": part}
                yield _in_order(found, part, names, shown)
            offset += len(ids)
            # A server may give fewer than it is asked for.
            if not ids or offset >= rows:
                return

    return StoreTable(
        shown,
        columns,
        read if is_pinned else counted(read, rows, shown),
        rows=rows,
        vector=VECTOR,
        text=TEXT if texts else "",
        id=ID,
        metric=(metric := _metric(collection)),
        is_pinned=is_pinned,
        search=search_of_server(collection, metric, ask),
    )


def _included(names: Sequence[str]) -> dict[str, bool]:
    return {
        "embeddings": VECTOR in names,
        "documents": TEXT in names,
        "metadatas": any(name.startswith(FIELD) for name in names),
    }


def _in_order(found: Mapping[str, Any], ids: Sequence[str], names: Sequence[str], shown: str) -> dict[str, Values]:
    """The columns of what was found for these ids, in their order."""
    places = {one: place for place, one in enumerate(found["ids"])}
    if len(places) != len(ids):
        raise changed(shown)
    order = [places[one] for one in ids]
    columns: dict[str, Values] = {}
    for name in names:
        if name == ID:
            columns[name] = list(ids)
        elif name == VECTOR:
            columns[name] = _vectors(found["embeddings"], order)
        elif name == TEXT:
            columns[name] = [found["documents"][place] for place in order]
        else:
            key = name.removeprefix(FIELD)
            columns[name] = [(found["metadatas"][place] or {}).get(key) for place in order]
    return columns


def _vectors(found: Any, order: Sequence[int]) -> Values:
    """(n, D) float32, as they are stored; a list if rows have none."""
    if isinstance(found, np.ndarray) and found.ndim == 2:
        return found[list(order)].astype(np.float32, copy=False)
    return [None if found[place] is None else np.asarray(found[place], np.float32) for place in order]


def _listed(vector: Any) -> list[float]:
    return [] if vector is None else np.asarray(vector, np.float32).tolist()


def _metric(collection: Any) -> Metric:
    """What the index ranks by; before 1.0 it stood in the metadata."""
    settings = collection.configuration_json or {}
    own = settings.get("hnsw") or settings.get("spann") or {}
    space = own.get("space") or (collection.metadata or {}).get("hnsw:space") or "l2"
    return METRICS.get(space, "")


def _called(tenant: str, database: str, name: str) -> str:
    """A collection by its name; with its database and tenant where these are not the usual ones."""
    parts = [part for part, usual in zip((tenant, database), DEFAULT, strict=True) if part != usual]
    return "/".join([*parts, name])


def _library(shown: str) -> Any:
    with quiet("chromadb"):
        return needed("chromadb", "chroma", shown)


def _settings(chromadb: Any) -> Any:
    return chromadb.Settings(anonymized_telemetry=False, chroma_otel_collection_endpoint="")


@contextmanager
def _explained(place: StorePlace, version: str) -> Iterator[None]:
    """Errors of the library, also panics of its engine, as one that names the folder."""
    try:
        with quiet("chromadb"):
            yield
    except EmbauditError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise CorpusError(
            f"{place.shown} cannot be read by Chroma {version}: it is damaged, or another version wrote it "
            f"({re.sub(r'embaudit-store-[^/ ]+', '…', one_line(error))}).",
            kept="Nothing was changed: a copy of it was opened.",
            next_step="Install the version that wrote it: pip install chromadb==VERSION",
        ) from error


OLD_COLLECTIONS, ROWS = "chroma-collections.parquet", "chroma-embeddings.parquet"
COLLECTION = "collection_uuid"
UUID, NAME = "uuid", "name"


def is_old_chroma(place: StorePlace) -> bool:
    return place.holds(OLD_COLLECTIONS, ROWS) and not place.holds(DATABASE)


def open_old_chroma(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A collection: its rows are those with its number, in one file with all others'."""
    uuid_of = _collections(place.path / OLD_COLLECTIONS)
    name = part_meant(list(uuid_of), asked.part, place.shown)
    file = place.path / ROWS
    whole = table_of_parts(f"{place.shown}, collection {name}", [ParquetPart(str(file), lambda: file)])
    if lacking := [one for one in (COLLECTION, VECTOR) if one not in whole.columns]:
        raise CorpusError(f"{file} has no column {lacking[0]!r}: it is none of Chroma's.", next_step=FETCH)
    columns = {one: column for one, column in whole.columns.items() if one not in (COLLECTION, UUID)}

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for batch in whole.read([*names, COLLECTION]):
            kept = [row for row, uuid in enumerate(listed(batch[COLLECTION])) if uuid == uuid_of[name]]
            if kept:
                yield {one: batch[one].take(kept) for one in names}

    rows = sum(len(batch[VECTOR]) for batch in read([VECTOR]))
    has_texts = TEXT in columns and bool(columns[TEXT].some)
    table = replace(whole, columns=columns if rows else {}, read=read, rows=rows, draw=None, vector="", text="", id="")
    return replace(table, vector=VECTOR, text=TEXT if has_texts else "", id=ID) if rows else table


def _collections(file: Path) -> dict[str, str]:
    import pyarrow.parquet as pq

    with reported(str(file)):
        rows = pq.read_table(file, columns=[UUID, NAME]).to_pylist()
    return {str(row[NAME]): row[UUID] for row in rows}


KINDS = (
    StoreKind(
        name="Chroma",
        recognises=lambda place: place.holds(DATABASE),
        open=open_folder,
        looks="a folder of Chroma (chroma.sqlite3)",
        tried="the embedded engine (chromadb 1.5)",
        extra="chroma",
    ),
    StoreKind(
        name="Chroma",
        recognises=lambda place: (
            place.scheme == "chroma"
            or answers(place, "/api/v2/heartbeat", lambda found: "nanosecond heartbeat" in found)
        ),
        open=open_server,
        looks="chroma:http://HOST:PORT",
        tried="its own server (chromadb 1.5)",
        extra="chroma",
    ),
    StoreKind(
        name="Chroma 0.3",
        recognises=is_old_chroma,
        open=open_old_chroma,
        looks="a folder of Chroma 0.3 or before (chroma-embeddings.parquet)",
        tried="folders as it wrote them (by hand)",
    ),
)
