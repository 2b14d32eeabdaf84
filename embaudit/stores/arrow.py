"""Arrow: Feather and Arrow files, Arrow streams, and data sets saved by ``save_to_disk``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from embaudit.corpora.tables import is_saved
from embaudit.stores.arrow_table import table_of_arrow
from embaudit.stores.damage import reported
from embaudit.stores.parts import part_meant
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.table import BATCH_ROWS, StoreKind, StoreTable
from embaudit.system.hub import datasets_library

SUFFIXES = (".arrow", ".feather", ".ipc")
MAGIC, ORC = b"ARROW1", b"ORC"


def is_arrow(place: StorePlace) -> bool:
    return place.suffix in SUFFIXES or place.head.startswith(MAGIC)


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
