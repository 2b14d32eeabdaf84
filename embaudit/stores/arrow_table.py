"""A table of Arrow batches, whose structs are opened: what Parquet, Arrow, DuckDB, LanceDB and saved data sets give."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from embaudit.stores.table import BATCH_ROWS, LOOKED_AT, StoreColumn, StoreTable, Values, What

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
