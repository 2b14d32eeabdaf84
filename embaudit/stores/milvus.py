"""Milvus: a folder of Milvus Lite, or a server.

Milvus Lite writes to the folder that it opens, so a copy is read; its server runs in this process, and ends with it.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from embaudit.stores.copies import copy_of
from embaudit.stores.milvus_search import METRICS, index_of, search_of_collection
from embaudit.stores.nested import at, column_of, flat
from embaudit.stores.place import ReadOptions, StorePlace, part_meant
from embaudit.stores.servers import address_of, counted, patiently, quiet, without_user
from embaudit.stores.store import LOOKED_AT, StoreColumn, StoreKind, StoreTable, Values, needed
from embaudit.words.errors import CorpusError, EmbauditError, UsageError, one_line
from embaudit.words.masking import keep_secret

KEY = "MILVUS_TOKEN"
ENDING = ".db"
# Of Milvus Lite: what stands in a collection's folder.
SCHEMA = "collections/*/schema.json"
ROWS_AT_ONCE = 2_000
DEFAULT = "default"
# How vectors are stored, by their type's name; what is sparse is none that is compared.
NUMBERS = {
    "FLOAT_VECTOR": "float32",
    "FLOAT16_VECTOR": "float16",
    "BFLOAT16_VECTOR": "bfloat16",
    "INT8_VECTOR": "int8",
    "BINARY_VECTOR": "bits",
}
SPARSE = "SPARSE_FLOAT_VECTOR"
TEXT_TYPES = ("VARCHAR", "STRING")
Ask = Callable[..., Any]


def is_lite(place: StorePlace) -> bool:
    return place.holds("LOCK", "collections") and (place.holds(SCHEMA) or place.path.suffix == ENDING)


def open_lite(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A collection of a folder of Milvus Lite; ``DATABASE/COLLECTION`` of a database that is not the usual one."""
    library = _library(place.shown)
    needed("milvus_lite", "milvus", place.shown)
    copy = copy_of([place.path], place.shown)
    folder = (copy / place.path.name).rename(copy / f"store{ENDING}")

    def ask(call: Callable[..., Any], *args: Any, **given: Any) -> Any:
        with _explained(place):
            return call(*args, **given)

    client = ask(lambda: library.MilvusClient(str(folder)))
    atexit.register(_ended, client, folder)
    names: dict[str, tuple[str, str]] = {}
    for database in ask(client.list_databases):
        ask(client.use_database, database)
        names |= {
            name if database == DEFAULT else f"{database}/{name}": (database, name)
            for name in ask(client.list_collections)
        }
    part = part_meant(list(names), asked.part, place.shown)
    database, name = names[part]
    ask(client.use_database, database)
    # On the copy alone: it is searched by nobody.
    ask(client.load_collection, name)
    return _table(f"{place.shown}, collection {part}", client, name, ask, is_pinned=True)


def open_server(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A collection of a server, of the database at the end of the address; its token is in the environment."""
    address = address_of(place, "milvus")
    library = _library(place.shown)
    token = os.environ.get(KEY) or (f"{address.username}:{address.password}" if address.password else "")
    keep_secret(token)
    database = address.path.strip("/")

    def ask(call: Callable[..., Any], *args: Any, **given: Any) -> Any:
        with _silent():
            return patiently(partial(call, *args, **given), place.shown, KEY)

    where = without_user(address._replace(path=""))
    client = ask(library.MilvusClient, where, token=token, db_name=database, timeout=10)
    name = part_meant(ask(client.list_collections), asked.part, place.shown)
    state = ask(client.get_load_state, name)["state"]
    if getattr(state, "name", "Loaded") != "Loaded":
        raise UsageError(
            f"Collection {name} of {place.shown} is not loaded, so its rows cannot be read.",
            kept="Nothing was changed: loading it takes its memory, which is yours to decide.",
            next_step=f"Load it: MilvusClient(…).load_collection({name!r})",
        )
    return _table(f"{place.shown}, collection {name}", client, name, ask)


def _table(shown: str, client: Any, name: str, ask: Ask, *, is_pinned: bool = False) -> StoreTable:
    schema = ask(client.describe_collection, name)
    types = {field["name"]: field["type"].name for field in schema["fields"]}
    vectors = [one for one, kind in types.items() if kind in NUMBERS]
    rows = int(ask(lambda: client.query(name, filter="", output_fields=["count(*)"]))[0]["count(*)"])
    key = next(field["name"] for field in schema["fields"] if field.get("is_primary"))
    some = next(_pages(client, name, ["*"], ask, LOOKED_AT), [])
    columns = {}
    for field, kind in types.items():
        if kind in (SPARSE, "JSON"):
            continue
        values = tuple(_plain(row.get(field)) for row in some if row.get(field) is not None)
        columns[field] = _column(kind, values)
    inner: dict[str, list[Any]] = {}
    for row in some:
        for path, value in flat({one: own for one, own in row.items() if types.get(one, "JSON") == "JSON"}):
            inner.setdefault(path, []).extend([value] if value is not None else [])
    columns |= {path: column_of(values) for path, values in inner.items()}

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        fields = list(dict.fromkeys(one if one in types else _top(one, some) for one in names))
        for page in _pages(client, name, fields, ask):
            yield {one: [_plain(row.get(one) if one in types else at(row, one)) for row in page] for one in names}

    index = index_of(client, name, vectors[0], ask) if len(vectors) == 1 else {}
    return StoreTable(
        shown,
        columns,
        read if is_pinned else counted(read, rows, shown),
        rows=rows,
        vector=vectors[0] if len(vectors) == 1 else "",
        id=key,
        metric=METRICS.get(str(index.get("metric_type", "")).upper(), ""),
        is_pinned=is_pinned,
        search=search_of_collection(
            client, name, types, key, rows, lambda path: _top(path, some), ask, is_lite=is_pinned
        ),
    )


def _pages(
    client: Any, name: str, fields: Sequence[str], ask: Ask, size: int = ROWS_AT_ONCE
) -> Iterator[list[dict[str, Any]]]:
    """All rows in the order of their keys."""
    rows = ask(lambda: client.query_iterator(name, batch_size=size, output_fields=list(fields)))
    try:
        while page := ask(rows.next):
            yield [dict(row) for row in page]
    finally:
        with suppress(Exception):
            rows.close()


def _column(kind: str, values: tuple[Any, ...]) -> StoreColumn:
    if kind in NUMBERS:
        numbers = NUMBERS[kind]
        if kind == "FLOAT_VECTOR" or (values and not isinstance(values[0], bytes)):
            return StoreColumn(f"list<item: {numbers}>", "whole numbers" if numbers == "int8" else "vector", values)
        return StoreColumn(f"{numbers} in bytes", "bytes", values, numbers)
    return StoreColumn(kind.lower(), "text" if kind in TEXT_TYPES else "other", values)


def _plain(value: Any) -> Any:
    """A value as Python's own; bytes of a vector as the client packs them, alone or in a list."""
    if isinstance(value, list | tuple) and len(value) == 1 and isinstance(value[0], bytes):
        return value[0]
    return value.tolist() if type(value).__module__ == "numpy" else value


def _top(path: str, some: Sequence[Mapping[str, Any]]) -> str:
    """The field that a path begins with; names may hold dots themselves."""
    names = {name for row in some for name in row if path == name or path.startswith(f"{name}.")}
    return max(names, key=len, default=path)


def _library(shown: str) -> Any:
    return needed("pymilvus", "milvus", shown)


def _ended(client: Any, folder: Path) -> None:
    """Stops the server of a copy, which runs in this process."""
    from importlib import import_module

    with suppress(Exception):
        client.close()
    import_module("milvus_lite.server_manager").server_manager_instance.release_server(str(folder))


@contextmanager
def _silent() -> Iterator[None]:
    """Its loggers have handlers and levels of their own, set when they are imported."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith(("pymilvus", "milvus_lite"))]
    with quiet(*names):
        yield


@contextmanager
def _explained(place: StorePlace) -> Iterator[None]:
    try:
        with _silent():
            yield
    except EmbauditError:
        raise
    except Exception as error:
        raise CorpusError(
            f"{place.shown} cannot be read by Milvus Lite: {one_line(error)}",
            kept="Nothing was changed: a copy of it was opened.",
            next_step="Check that it is the folder that MilvusClient(…) was given, and install the version of "
            "milvus-lite that wrote it.",
        ) from error


KINDS = (
    StoreKind(
        name="Milvus",
        recognises=is_lite,
        open=open_lite,
        looks="a folder of Milvus Lite (.db)",
        tried="the embedded engine (milvus-lite 3.2)",
        extra="milvus",
    ),
    StoreKind(
        name="Milvus",
        recognises=lambda place: place.scheme == "milvus",
        open=open_server,
        looks="milvus:http://HOST:19530",
        tried="Milvus Lite's own server, which speaks the same protocol",
        extra="milvus",
    ),
)
