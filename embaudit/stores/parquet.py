"""Parquet: a file, or a folder of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from embaudit.errors import CorpusError
from embaudit.stores.arrow_table import table_of_arrow
from embaudit.stores.columns import listed
from embaudit.stores.damage import reported
from embaudit.stores.place import AskedRows, StorePlace
from embaudit.stores.table import BATCH_ROWS, StoreColumn, StoreKind, StoreTable

SUFFIXES = (".parquet", ".pq")
MAGIC = b"PAR1"
# Bytes that are read of a column at a time.
BUFFER = 1 << 20


def is_parquet(place: StorePlace) -> bool:
    if place.is_folder:
        return any(file.suffix.lower() in SUFFIXES for file in place.path.rglob("*"))
    return place.suffix in SUFFIXES or place.head.startswith(MAGIC)


def open_parquet(place: StorePlace, asked: AskedRows) -> StoreTable:
    """The rows of a Parquet file, or of a folder of them in the order of their names."""
    import pyarrow.parquet as pq

    files = [place.path]
    if place.is_folder:
        files = sorted(file for file in place.path.rglob("*") if file.suffix.lower() in SUFFIXES)
    with reported(place.shown):
        opened = [pq.ParquetFile(file) for file in files]
        schema, rows = opened[0].schema_arrow, sum(file.metadata.num_rows for file in opened)

    def batches(names: Sequence[str]) -> Iterator[Any]:
        for file in files:
            with reported(str(file)):
                part = pq.ParquetFile(file, buffer_size=BUFFER, pre_buffer=False)
                if lacking := [name for name in names if name not in part.schema_arrow.names]:
                    columns = {one.name: StoreColumn(str(one.type), "other") for one in part.schema_arrow}
                    raise CorpusError(
                        f"{file} has no column {lacking[0]!r}: it has {listed(columns)}.",
                        next_step="All files of a folder must have the same columns.",
                    )
                # With threads, the column of a whole row group is read at once: of up to a million rows.
                yield from part.iter_batches(batch_size=BATCH_ROWS, columns=list(names), use_threads=False)

    return table_of_arrow(place.shown, schema, batches, rows=rows)


KINDS = (
    StoreKind(
        name="Parquet",
        recognises=is_parquet,
        open=open_parquet,
        looks=".parquet (a file or a folder of them)",
        tried="pyarrow's files",
    ),
)
