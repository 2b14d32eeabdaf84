"""A folder of Chroma 0.3 and before: two Parquet files, read as they are, since no later version opens them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from embaudit.stores.damage import FETCH, reported
from embaudit.stores.nested import listed
from embaudit.stores.parquet import ParquetPart, table_of_parts
from embaudit.stores.parts import part_meant
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.table import StoreKind, StoreTable, Values
from embaudit.words.errors import CorpusError

DATABASE = "chroma.sqlite3"
COLLECTIONS, ROWS = "chroma-collections.parquet", "chroma-embeddings.parquet"
COLLECTION, VECTOR, TEXT, ID = "collection_uuid", "embedding", "document", "id"
UUID, NAME = "uuid", "name"


def is_old_chroma(place: StorePlace) -> bool:
    return place.holds(COLLECTIONS, ROWS) and not place.holds(DATABASE)


def open_old_chroma(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A collection: its rows are those with its number, in one file with all others'."""
    uuid_of = _collections(place.path / COLLECTIONS)
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
        name="Chroma 0.3",
        recognises=is_old_chroma,
        open=open_old_chroma,
        looks="a folder of Chroma 0.3 or before (chroma-embeddings.parquet)",
        tried="folders as it wrote them (by hand)",
    ),
)
