"""Rows in rows: documents with a list of chunks that have the vectors, or with a list each of texts and of vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any

from embaudit.corpora.fields import ID_FIELDS
from embaudit.stores.columns import is_vector as may_be_vectors
from embaudit.stores.nested import Record, flat, listed, table_of_records
from embaudit.stores.store import StoreTable

LOOKED_AT = 20
ID, IDS = "id", (*ID_FIELDS, "uuid", "chunk_id", "key")


def is_vector(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) > 1
        and all(isinstance(one, int | float) and not isinstance(one, bool) for one in value[:8])
    )


def is_column(value: Any) -> bool:
    """Whether it may be a column of texts or ids, of more than one row."""
    return isinstance(value, list) and len(value) > 1 and all(isinstance(one, str) for one in value)


def are_vectors(value: list[Any]) -> bool:
    present = [one for one in value if one is not None]
    return bool(present) and all(map(is_vector, present[:8]))


def vector_paths(record: Record) -> list[str]:
    return [path for path, value in flat(record) if is_vector(value)]


def piece_vectors(record: Record) -> Iterator[tuple[str, list[Any]]]:
    """The first vector in each list of objects, with the path of the list."""
    for path, value in flat(record):
        if isinstance(value, list) and value and isinstance(value[0], Mapping):
            for _, vector in ((name, one) for name, one in flat(value[0]) if is_vector(one)):
                yield path, vector


def pieces_path(record: Record) -> str:
    """The list in a record that has its vectors: objects with one each, or vectors beside as many texts."""
    inner = max(((len(vector), path) for path, vector in piece_vectors(record)), default=(0, ""))[1]
    if inner:
        return inner
    lists = [(path, value) for path, value in flat(record) if isinstance(value, list)]
    return next(
        (
            path
            for path, value in lists
            if are_vectors(value) and any(is_column(one) and len(one) == len(value) for _, one in lists)
        ),
        "",
    )


def pieces(record: Record, path: str) -> Iterator[dict[str, Any]]:
    """The pieces of a record at a path, each beside the record's other fields; one without any is a row itself."""
    fields = dict(flat(record))
    own = fields.pop(path, None) or [{}]
    if isinstance(own[0], Mapping):
        for piece in own:
            yield {**fields, **{f"{path}.{name}": value for name, value in flat(piece)}}
        return
    columns = {name: value for name, value in fields.items() if isinstance(value, list) and len(value) == len(own)}
    for number, vector in enumerate(own):
        yield {**fields, **{name: value[number] for name, value in columns.items()}, path: vector}


def in_pieces(
    records: Callable[[], Iterator[Record]], part: str | None = None
) -> tuple[Callable[[], Iterator[Record]], tuple[str, ...]]:
    """The records, or a row for each of their pieces where only these have vectors; and what is to be known of it.

    Args:
        part: where the pieces are, if they are meant though records have vectors, too.
    """
    some = list(islice(records(), LOOKED_AT))
    path = next(filter(None, map(pieces_path, some)), "")
    if not path:
        return records, ()
    if any(map(vector_paths, some)) and part != path:
        told = any(True for record in some for _ in piece_vectors(record))
        note = (
            f"Records have vectors of their own, which are read, and so have their pieces: --from {path} reads these."
        )
        return records, (note,) if told else ()

    def rows() -> Iterator[Record]:
        for record in records():
            whole = next((record[name] for name in IDS if record.get(name) is not None), None)
            for number, row in enumerate(pieces(record, path)):
                own = next((row[one] for name in IDS if row.get(one := f"{path}.{name}") is not None), None)
                named = own if own is not None or whole is None else f"{whole}[{number}]"
                yield row if named is None else {ID: named, **{name: row[name] for name in row if name != ID}}

    return rows, (f"Each record is a row for each of its pieces ({path}).",)


def with_pieces(table: StoreTable) -> StoreTable:
    """A row for each piece of a table's rows, where only these have vectors: a list of structs, as in Parquet."""
    if table.vector or any(map(may_be_vectors, table.columns.values())):
        return table
    names = list(table.columns)

    def records() -> Iterator[Record]:
        for batch in table.read(names):
            for row in zip(*(listed(batch[name]) for name in names), strict=True):
                yield dict(zip(names, row, strict=True))

    rows, notes = in_pieces(records) if names else (records, ())
    return table_of_records(table.shown, rows, notes=(*table.notes, *notes)) if notes else table
