"""Parquet: a file, or a folder of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from embaudit.stores.arrow_table import table_of_arrow
from embaudit.stores.columns import listed
from embaudit.stores.damage import reported
from embaudit.stores.drawn import drawn_groups
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.table import BATCH_ROWS, StoreColumn, StoreKind, StoreTable
from embaudit.words.errors import CorpusError

SUFFIXES = (".parquet", ".pq")
MAGIC = b"PAR1"
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
        return any(file.suffix.lower() in SUFFIXES for file in place.path.rglob("*"))
    return place.suffix in SUFFIXES or place.head.startswith(MAGIC)


def open_parquet(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of a Parquet file, or of a folder of them in the order of their names."""
    files = [place.path]
    if place.is_folder:
        files = sorted(file for file in place.path.rglob("*") if file.suffix.lower() in SUFFIXES)
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


KINDS = (
    StoreKind(
        name="Parquet",
        recognises=is_parquet,
        open=open_parquet,
        looks=".parquet (a file or a folder of them)",
        tried="pyarrow's files",
    ),
)
