"""Arrow: Feather and Arrow files, Arrow streams, and data sets saved by ``save_to_disk``.

A table of Arrow batches, whose structs are opened: what Parquet, Arrow, DuckDB, LanceDB and saved data sets give.

Parquet: a file, or a folder of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from embaudit.corpora.tables import is_saved
from embaudit.stores.columns import listed
from embaudit.stores.place import ReadOptions, StorePlace, part_meant
from embaudit.stores.store import (
    BATCH_ROWS,
    LOOKED_AT,
    StoreColumn,
    StoreKind,
    StoreTable,
    Values,
    What,
    drawn_groups,
    reported,
)
from embaudit.system.hub import datasets_library
from embaudit.words.errors import CorpusError

KEPT_VALUES = 20


def table_of_arrow(
    shown: str, schema: Any, batches_of: Callable[[Sequence[str]], Iterator[Any]], **declared: Any
) -> StoreTable:
    """A table of Arrow batches.

    Args:
        schema: of all columns.
        batches_of: reads these columns, by their whole names, from the start.
        declared: what else the table says of itself.
    """
    import pyarrow as pa

    paths = dict(_paths(schema))
    names = [name for name in dict.fromkeys(schema.names) if schema.names.count(name) == 1]
    first = next((batch for batch in batches_of(names) if batch.num_rows), None)

    def some(path: str) -> tuple[object, ...]:
        values = None if first is None else _at(first, path, schema)
        if values is None:
            return ()
        return tuple(values.slice(0, LOOKED_AT).drop_null().slice(0, KEPT_VALUES).to_pylist())

    def read(wanted: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        tops = list(dict.fromkeys(_top(path, schema) for path in wanted))
        for whole in batches_of(tops):
            for offset in range(0, whole.num_rows, BATCH_ROWS):
                batch = whole.slice(offset, BATCH_ROWS)
                yield {path: _at(batch, path, schema) for path in wanted}

    columns = {path: StoreColumn(str(kind), _what(kind, pa), some(path)) for path, kind in paths.items()}
    return StoreTable(shown, columns, read, **declared)


def _paths(fields: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    import pyarrow.types as types

    for field in fields:
        name = f"{path}{field.name}"
        if types.is_struct(field.type):
            yield from _paths(list(field.type), f"{name}.")
        else:
            yield name, field.type


def _top(path: str, schema: Any) -> str:
    """The column of the table that a path begins with; names may hold dots themselves."""
    return max((name for name in schema.names if path == name or path.startswith(f"{name}.")), key=len)


def _at(batch: Any, path: str, schema: Any) -> Any:
    import pyarrow.compute as pc

    top = _top(path, schema)
    values = batch.column(batch.schema.names.index(top))
    rest = path[len(top) + 1 :]
    while rest:
        name = max((one.name for one in values.type if rest == one.name or rest.startswith(f"{one.name}.")), key=len)
        # With the nulls of the struct itself; field() would show what lies beneath them.
        values = pc.struct_field(values, [values.type.get_field_index(name)])
        rest = rest[len(name) + 1 :]
    return values


def _what(kind: Any, pa: Any) -> What:
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        value = kind.value_type
        if types.is_floating(value) or types.is_decimal(value):
            return "vector"
        return "whole numbers" if types.is_integer(value) else "other"
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return "bytes"
    if types.is_dictionary(kind):
        kind = kind.value_type
    return "text" if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind) else "other"


PARQUET_SUFFIXES = (".parquet", ".pq")
PARQUET_MAGIC = b"PAR1"
# Bytes that are read of a column at a time.
BUFFER = 1 << 20


@dataclass(frozen=True)
class ParquetPart:
    """One file of a table.

    Attributes:
        shown: as messages call it.
        open: gives a path, or a file object.
        is_far: whether its column of a row group is fetched at once, since each request takes long.
    """

    shown: str
    open: Callable[[], Any]
    is_far: bool = False


def is_parquet(place: StorePlace) -> bool:
    if place.is_folder:
        return any(file.suffix.lower() in PARQUET_SUFFIXES for file in place.path.rglob("*"))
    return place.suffix in PARQUET_SUFFIXES or place.head.startswith(PARQUET_MAGIC)


def open_parquet(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of a Parquet file, or of a folder of them in the order of their names."""
    files = [place.path]
    if place.is_folder:
        files = sorted(file for file in place.path.rglob("*") if file.suffix.lower() in PARQUET_SUFFIXES)
    return table_of_parts(place.shown, [ParquetPart(str(file), lambda file=file: file) for file in files])  # type: ignore[misc]


def table_of_parts(shown: str, parts: Sequence[ParquetPart], **declared: Any) -> StoreTable:
    """The rows of Parquet files of the same columns, one after another."""
    import pyarrow.parquet as pq

    schema, sizes = None, []
    for part in parts:
        # Opened one at a time: a folder may have thousands.
        with reported(part.shown), pq.ParquetFile(part.open()) as file:
            schema = schema or file.schema_arrow
            sizes.append([file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)])

    def batches(names: Sequence[str], chosen: Sequence[Sequence[int]] | None = None) -> Iterator[Any]:
        for place, part in enumerate(parts):
            groups = None if chosen is None else list(chosen[place])
            if groups == []:
                continue
            with (
                reported(part.shown),
                pq.ParquetFile(part.open(), buffer_size=BUFFER, pre_buffer=part.is_far) as file,
            ):
                if lacking := [name for name in names if name not in file.schema_arrow.names]:
                    columns = {one.name: StoreColumn(str(one.type), "other") for one in file.schema_arrow}
                    raise CorpusError(
                        f"{part.shown} has no column {lacking[0]!r}: it has {listed(columns)}.",
                        next_step="All files of a folder must have the same columns.",
                    )
                # With threads, the column of a whole row group is read at once: of up to a million rows.
                yield from file.iter_batches(
                    batch_size=BATCH_ROWS, row_groups=groups, columns=list(names), use_threads=False
                )

    table = table_of_arrow(shown, schema, batches, rows=sum(map(sum, sizes)), **declared)

    def draw(least: int, seed: int) -> StoreTable:
        chosen, drawn = drawn_groups(sizes, least, seed)
        some = table_of_arrow(shown, schema, lambda names: batches(names, chosen), rows=drawn.read, **declared)
        return replace(some, drawn=drawn)

    return replace(table, draw=draw)


ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
ARROW_MAGIC, ORC = b"ARROW1", b"ORC"


def is_arrow(place: StorePlace) -> bool:
    return place.suffix in ARROW_SUFFIXES or place.head.startswith(ARROW_MAGIC)


def open_arrow(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of a Feather or Arrow file, or of an Arrow stream."""
    import pyarrow as pa

    def reader() -> Any:
        source = pa.memory_map(str(place.path))
        try:
            return pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source)

    def batches(names: Sequence[str]) -> Iterator[Any]:
        with reported(place.shown):
            opened = reader()
            parts = (
                (opened.get_batch(number) for number in range(opened.num_record_batches))
                if hasattr(opened, "num_record_batches")
                else opened
            )
            yield from (part.select(list(names)) for part in parts)

    with reported(place.shown):
        schema = reader().schema
    return table_of_arrow(place.shown, schema, batches)


def open_orc(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of an ORC file, a stripe at a time."""
    from pyarrow.orc import ORCFile

    def batches(names: Sequence[str]) -> Iterator[Any]:
        with reported(place.shown):
            opened = ORCFile(place.path)
            yield from (opened.read_stripe(number, list(names)) for number in range(opened.nstripes))

    with reported(place.shown):
        opened = ORCFile(place.path)
    return table_of_arrow(place.shown, opened.schema, batches, rows=opened.nrows)


def open_saved(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of a folder that ``datasets`` wrote; of the split that was named, or the only one."""
    with reported(place.shown):
        saved = datasets_library().load_from_disk(str(place.path))
    if isinstance(saved, dict):
        saved = saved[part_meant(list(saved), asked.part, place.shown, "split")]
    rows = saved.with_format("arrow")

    def batches(names: Sequence[str]) -> Iterator[Any]:
        with reported(place.shown):
            for table in rows.select_columns(list(names)).iter(BATCH_ROWS):
                yield from table.combine_chunks().to_batches()

    return table_of_arrow(place.shown, rows.features.arrow_schema, batches, rows=len(rows))


KINDS = (
    StoreKind(
        name="Parquet",
        recognises=is_parquet,
        open=open_parquet,
        looks=".parquet (a file or a folder of them)",
        tried="pyarrow's files",
    ),
    StoreKind(
        name="Arrow",
        recognises=is_arrow,
        open=open_arrow,
        looks=".arrow, .feather",
        tried="pyarrow's files and streams",
    ),
    StoreKind(
        name="ORC",
        recognises=lambda place: place.head.startswith(ORC),
        open=open_orc,
        looks=".orc",
        tried="pyarrow's files",
    ),
    StoreKind(
        name="a saved data set",
        recognises=lambda place: place.is_folder and is_saved(place.path),
        open=open_saved,
        looks="a folder of datasets.save_to_disk",
        tried="datasets' folders",
    ),
)
