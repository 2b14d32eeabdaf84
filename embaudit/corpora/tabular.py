"""Reads tables through ``datasets`` as records: hub files, Parquet and Arrow files, saved data sets.

Rows are streamed: at most one batch is in memory, and nothing is written to the cache of ``datasets``. A truncated file
is an error.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from embaudit.corpora.openers import os_failure
from embaudit.corpora.splits import builder_of_files
from embaudit.corpora.tables import Record
from embaudit.corpora.tally import UNDECODABLE, Flaw
from embaudit.system.hub import datasets_library
from embaudit.words.errors import CorpusError, one_line

# Maps a table's schema to the columns to read and their field names.
Choose = Callable[[Any], dict[str, str]]
BATCH_ROWS = 1000
# A corrupt length makes Arrow request too much memory.
DAMAGE = (ValueError, TypeError, EOFError, MemoryError, ImportError, NotImplementedError, zlib.error, gzip.BadGzipFile)
SAVED = (("state.json", "dataset_info.json"), ("dataset_dict.json",))


def file_records(path: Path, shown: str, choose: Choose) -> Iterator[Record | Flaw]:
    """Rows of a local Parquet or Arrow file.

    Raises:
        CorpusError: if it is damaged or cannot be read.
    """
    with _local(shown, "Fetch it again."):
        # The library would resolve a relative path inside a data set.
        yield from stream_records(builder_of_files([path.name]), str(path.absolute()), choose)


def stream_records(builder: Any, address: str, choose: Choose) -> Iterator[Record | Flaw]:
    """Rows of one file, local or on the hub, read by ``builder``."""
    config = builder.config
    config.data_files = {"rows": [address]}
    for name, value in {"parse_agent_traces": False, "keep_default_na": False}.items():
        if hasattr(config, name):  # of JSON; of CSV, where "NA" and "null" are texts like any other
            setattr(config, name, value)
    try:
        rows = builder.as_streaming_dataset(split="rows")
    except StopIteration:  # an empty JSON file has no first row to get the columns from
        return
    if rows.features is not None and hasattr(config, "columns"):
        config.columns = list(choose(rows.features.arrow_schema))  # fetch only these columns of a Parquet file
        rows = builder.as_streaming_dataset(split="rows")
    yield from table_records(rows.with_format("arrow").iter(BATCH_ROWS), choose)


def is_saved(folder: Path) -> bool:
    """Whether ``save_to_disk`` wrote this folder."""
    return any(all((folder / name).is_file() for name in names) for names in SAVED)


def saved_records(folder: Path, choose: Choose) -> Iterator[Record | Flaw]:
    """Rows of a folder written by ``save_to_disk``; from its test split, or the only one.

    Raises:
        CorpusError: if it is damaged, or it is unclear which split to read.
    """
    with _local(str(folder), "Save it again with save_to_disk."):
        saved = datasets_library().load_from_disk(str(folder))
        if isinstance(saved, dict):
            split = "test" if "test" in saved else next(iter(saved)) if len(saved) == 1 else None
            if split is None:
                raise CorpusError(
                    f"{folder} has the splits {', '.join(saved)}.", next_step=f"Name one: {folder / next(iter(saved))}"
                )
            saved = saved[split]
        yield from table_records(saved.with_format("arrow").iter(BATCH_ROWS), choose)


@contextmanager
def report_damage(shown: str, next_step: str) -> Iterator[None]:
    """Turn errors of pyarrow, pandas and ``datasets`` about damaged files into a CorpusError.

    Pyarrow reports some damage as an OSError without errno.
    """
    try:
        yield
    except (*DAMAGE, OSError) as error:
        is_damage = isinstance(error, DAMAGE) or (type(error) is OSError and error.errno is None)
        if not is_damage:
            raise
        raise CorpusError(f"{shown} cannot be read: {one_line(error)}", next_step=next_step) from error


@contextmanager
def _local(shown: str, next_step: str) -> Iterator[None]:
    try:
        with report_damage(shown, next_step):
            yield
    except OSError as error:
        raise os_failure(shown, error) from error


def table_records(tables: Iterable[Any], choose: Choose) -> Iterator[Record | Flaw]:
    """Rows of the Arrow tables of one file."""
    fields: dict[str, str] = {}
    for table in tables:
        fields = fields or choose(table.schema)
        # A later part of a JSON file may lack a column of its first part.
        names = [name for name in fields if name in table.column_names]
        yield from _rows(table.select(names).rename_columns([fields[name] for name in names]))


def _rows(table: Any) -> Iterator[Record | Flaw]:
    """One record per row. Parquet strings should be UTF-8, but nothing enforces it."""
    try:
        yield from table.to_pylist()
    except UnicodeDecodeError:
        for index in range(table.num_rows):
            try:
                yield from table.slice(index, 1).to_pylist()
            except UnicodeDecodeError:
                yield UNDECODABLE
