"""Qdrant: the local folder of its client, or a server.

The client unpickles each point of a local folder, which would run whatever it holds; here only plain values and the
point itself are made of it.
"""

from __future__ import annotations

import base64
import binascii
import io
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from embaudit.stores.copies import connected, copied
from embaudit.stores.nested import Record, at, table_of_records
from embaudit.stores.pickled import OnlyThese, stand_ins
from embaudit.stores.place import ReadOptions, StorePlace, part_meant
from embaudit.stores.qdrant_search import search_of_client, search_of_rows
from embaudit.stores.servers import address_of, answers, counted, patiently, quiet, without_user
from embaudit.stores.store import ONLY_READ, Metric, StoreColumn, StoreKind, StoreTable, Values, needed
from embaudit.words.errors import CorpusError, UsageError, one_line
from embaudit.words.masking import keep_secret

META, FOLDER, FILE, OLD = "meta.json", "collection", "storage.sqlite", "storage.dbm"
KEY = "QDRANT_API_KEY"
VECTOR = "vector"
MODELS = "qdrant_client.http.models.models"
POINT, SPARSE = f"{MODELS}.PointStruct", f"{MODELS}.SparseVector"
METRICS: Mapping[str, Metric] = {"cosine": "cosine", "dot": "dot", "euclid": "l2"}
TITLE = "qdrant - vector search engine"
POINTS_AT_ONCE = 1_000
SECONDS = 60
CHECK = "Check that it is the folder that QdrantClient(path=…) was given."


def _classes() -> dict[str, type]:
    """What a pickled point is made of: it and sparse vectors, of which stand-ins are made, and dates in payloads."""
    import datetime

    dates = ("date", "datetime", "time", "timedelta", "timezone")
    return stand_ins([POINT, SPARSE]) | {f"datetime.{name}": getattr(datetime, name) for name in dates}


def open_folder(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A collection of a folder that Qdrant's client wrote (``QdrantClient(path=FOLDER)``)."""
    try:
        meta = json.loads((place.path / META).read_text(encoding="utf-8"))
        aliases, collections = dict(meta.get("aliases") or {}), dict(meta["collections"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CorpusError(
            f"{place.shown} cannot be read: its {META} is damaged.", kept=ONLY_READ, next_step=CHECK
        ) from error
    asked_for = aliases.get(asked.part, asked.part) if asked.part else None
    name = part_meant(list(collections), asked_for, place.shown)
    file = place.path / FOLDER / name / FILE
    if not file.exists() and file.with_name(OLD).exists():
        raise UsageError(
            f"{place.shown} was written by a client of Qdrant before 1.1.7, in a form that is no longer read.",
            next_step="Open a copy of it once with an older one: pip install 'qdrant-client<1.16'",
        )
    configured = (collections[name] or {}).get("vectors") or {}
    file = copied(file, ("-wal", "-journal")) if file.exists() else file
    outdated = _outdated(place, file)

    def records() -> Iterator[Record]:
        classes = _classes()
        with _connected(place, file) as connection:
            for rowid, value in connection.execute("SELECT rowid, point FROM points ORDER BY rowid"):
                if rowid not in outdated:
                    yield _record(_opened(place, rowid, value, classes))

    with _connected(place, file) as connection:
        rows = connection.execute("SELECT count(*) FROM points").fetchone()[0] - len(outdated)
    shown = f"{place.shown}, collection {name}"
    search = search_of_rows(records, _distances(configured), rows, shown, partial(_asked, place))
    return replace(_with_vectors(table_of_records(shown, records, rows=rows), _sizes(configured)), search=search)


def _outdated(place: StorePlace, file: Path) -> set[int]:
    """Rows of points that were written again under another key, as older clients did; the newest is the point."""
    seen, found = set(), set()
    with _connected(place, file) as connection:
        for rowid, key in connection.execute("SELECT rowid, id FROM points ORDER BY rowid DESC"):
            try:
                point = _identity(_opened(place, rowid, base64.b64decode(key), {}))
            except (binascii.Error, TypeError, ValueError):
                point = key
            if point in seen:
                found.add(rowid)
            seen.add(point)
    return found


def _identity(point: Any) -> Any:
    """An id, however it is spelled."""
    return UUID(point).int if isinstance(point, str) else -1 - point if point >= 0 else point


def _opened(place: StorePlace, rowid: int, value: bytes, classes: dict[str, type]) -> Any:
    try:
        return OnlyThese(io.BytesIO(value), classes).load()
    except Exception as error:
        raise CorpusError(
            f"Row {rowid:,} of {place.shown} is no point of Qdrant's: {one_line(error)}",
            kept="Nothing that it names was run.",
            next_step="Find out who wrote it before you open this folder with anything else.",
        ) from error


def _record(point: Any) -> Record:
    """A point as plain values; sparse vectors are none that is compared.

    A vector without a name may stand by itself, or under an empty one.
    """
    fields = getattr(point, "__dict__", {})
    vector, payload = fields.get("vector"), fields.get("payload")
    named = vector if isinstance(vector, dict) else {"": vector}
    dense = {_column(name): one for name, one in named.items() if _is_dense(one)}
    return {"id": fields.get("id"), **dense, "payload": payload if isinstance(payload, dict) else {}}


def _is_dense(vector: Any) -> bool:
    return isinstance(vector, list) and not (vector and isinstance(vector[0], list))


def _sizes(configured: Mapping[str, Any]) -> dict[str, tuple[int, Metric]]:
    """The dense vectors of a collection, by column: their dimension and metric."""
    return {name: (size, metric) for name, (size, _, metric) in _distances(configured).items()}


def _column(name: str) -> str:
    """Of the vectors of this name."""
    return f"{VECTOR}.{name}" if name else VECTOR


def _distances(configured: Mapping[str, Any]) -> dict[str, tuple[int, str, Metric]]:
    """The same, with what Qdrant calls their distance."""
    by_name = {"": configured} if "size" in configured else configured
    return {
        _column(name): (
            one["size"],
            str(one["distance"]),
            METRICS.get(str(one["distance"]).lower(), ""),
        )
        for name, one in by_name.items()
        if not one.get("multivector_config")
    }


def _with_vectors(table: StoreTable, sizes: Mapping[str, tuple[int, Metric]]) -> StoreTable:
    """The table with what its collection says of its vectors, also where its first rows have none."""
    columns = {name: column for name, column in table.columns.items() if name != VECTOR or name in sizes}
    own = {
        name: StoreColumn(f"list<item: float>[{size}]", "vector", columns[name].some if name in columns else ())
        for name, (size, _) in sizes.items()
    }
    only = next(iter(own)) if len(own) == 1 else ""
    id_ = StoreColumn("id", "other", columns["id"].some if "id" in columns else ())
    metric = sizes[only][1] if only else ""
    return replace(table, columns={**columns, "id": id_, **own}, id="id", vector=only, metric=metric)


@contextmanager
def _connected(place: StorePlace, file: Path) -> Iterator[sqlite3.Connection]:
    """The database of a collection, which cannot be written to; an empty one where none was written yet."""
    if file.exists():
        with connected(place, file, CHECK) as connection:
            yield connection
        return
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE points (id TEXT, point BLOB)")
        yield connection


def open_server(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A collection of a server; its key is read from the environment."""
    address = address_of(place, "qdrant")
    with quiet("qdrant_client", "httpx", "httpcore"):
        library = needed("qdrant_client", "qdrant", place.shown)
        key = os.environ.get(KEY) or address.password
        keep_secret(key)
        client = library.QdrantClient(
            url=without_user(address),
            port=address.port or (443 if address.scheme == "https" else 6333),
            api_key=key,
            timeout=SECONDS,
            check_compatibility=False,
        )
    return table_of_client(client, place, asked)


def _asked(place: StorePlace, call: Callable[..., Any], /, *args: Any, **given: Any) -> Any:
    """What a client answers, for whose server one waits."""
    with quiet("qdrant_client", "httpx", "httpcore"):
        return patiently(partial(call, *args, **given), place.shown, KEY)


def table_of_client(client: Any, place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A collection that a connected client reads, by scrolling."""

    ask = partial(_asked, place)
    names = sorted(one.name for one in ask(client.get_collections).collections)
    aliases = {one.alias_name: one.collection_name for one in ask(client.get_aliases).aliases}
    asked_for = aliases.get(asked.part, asked.part) if asked.part else None
    name = part_meant(names, asked_for, place.shown)
    configured = ask(client.get_collection, name).config.params.model_dump(mode="json").get("vectors") or {}
    sizes = _sizes(configured)
    rows = ask(client.count, name, exact=True).count

    def pages(names: Sequence[str]) -> Iterator[list[Record]]:
        vectors = [one.removeprefix(f"{VECTOR}.") for one in names if one.startswith(f"{VECTOR}.")]
        offset = None
        while True:
            points, offset = ask(
                client.scroll,
                name,
                limit=POINTS_AT_ONCE,
                offset=offset,
                with_vectors=VECTOR in names or vectors,
                with_payload=any(one.startswith("payload.") for one in names),
            )
            yield [_record(point) for point in points]
            if offset is None:
                return

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for page in pages(names):
            yield {one: [at(row, one) for row in page] for one in names}

    shown = f"{place.shown}, collection {name}"
    first = next(pages([*sizes, "payload."]))
    found = table_of_records(shown, lambda: iter(first), rows=rows)
    search = search_of_client(client, name, sizes, rows, ask)
    return _with_vectors(replace(found, read=counted(read, rows, shown), search=search), sizes)


def is_folder(place: StorePlace) -> bool:
    return place.holds(META, FOLDER)


KINDS = (
    StoreKind(
        name="Qdrant",
        recognises=is_folder,
        open=open_folder,
        looks="a folder of Qdrant's client (meta.json)",
        tried="folders of qdrant-client 1.20",
        extra="",
    ),
    StoreKind(
        name="Qdrant",
        recognises=lambda place: (
            place.scheme == "qdrant" or answers(place, "/", lambda found: found.get("title") == TITLE)
        ),
        open=open_server,
        looks="qdrant:http://HOST:6333",
        tried="no server: its client's embedded engine in place of the connection, and answers in the documented form",
        extra="qdrant",
    ),
)
