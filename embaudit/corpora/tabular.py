"""Tables that ``datasets`` reads, as records: files of a hub repository, Parquet and Arrow files, saved data sets.

Read by ``hub``, ``records`` and ``load``. Rows are streamed: no more than a batch of them is in memory, and nothing is
written to a cache of ``datasets``. A file that breaks off is an error, since nobody can say what it would have held.
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
from embaudit.errors import CorpusError, one_line
from embaudit.hub import datasets_library

# The schema of a table -> the columns to read, and the fields that they are read as.
Choose = Callable[[Any], dict[str, str]]
BATCH_ROWS = 1000
# A damaged length makes Arrow ask for more memory than there is.
DAMAGE = (ValueError, TypeError, EOFError, MemoryError, ImportError, NotImplementedError, zlib.error, gzip.BadGzipFile)
SAVED = (("state.json", "dataset_info.json"), ("dataset_dict.json",))


def file_records(path: Path, shown: str, choose: Choose) -> Iterator[Record | Flaw]:
    """Rows of a local Parquet or Arrow file.

    Raises:
        CorpusError: if it is damaged or cannot be read.
    """
    with _local(shown, "Fetch it again."):
        # The library takes a relative path for one inside a data set.
        yield from stream_records(builder_of_files([path.name]), str(path.absolute()), choose)


def stream_records(builder: Any, address: str, choose: Choose) -> Iterator[Record | Flaw]:
    """Rows of one file, local or on the hub, that ``builder`` can read."""
    config = builder.config
    config.data_files = {"rows": [address]}
    for name, value in {"parse_agent_traces": False, "keep_default_na": False}.items():
        if hasattr(config, name):  # of JSON; of CSV, where "NA" and "null" are texts like any other
            setattr(config, name, value)
    try:
        rows = builder.as_streaming_dataset(split="rows")
    except StopIteration:  # an empty JSON file has no first row to tell the columns from
        return
    if rows.features is not None and hasattr(config, "columns"):
        config.columns = list(choose(rows.features.arrow_schema))  # no other column of a Parquet file is fetched
        rows = builder.as_streaming_dataset(split="rows")
    yield from table_records(rows.with_format("arrow").iter(BATCH_ROWS), choose)


def is_saved(folder: Path) -> bool:
    """Whether ``save_to_disk`` wrote this folder."""
    return any(all((folder / name).is_file() for name in names) for names in SAVED)


def saved_records(folder: Path, choose: Choose) -> Iterator[Record | Flaw]:
    """Rows of a folder that ``save_to_disk`` wrote; of several splits, test or the only one.

    Raises:
        CorpusError: if it is damaged, or none of its splits is meant.
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
def undamaged(shown: str, next_step: str) -> Iterator[None]:
    """Says of a file that it is damaged, as pyarrow, pandas and ``datasets`` report that.

    One of pyarrow's words for damage is a plain error of the operating system, which has no number then.
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
        with undamaged(shown, next_step):
            yield
    except OSError as error:
        raise os_failure(shown, error) from error


def table_records(tables: Iterable[Any], choose: Choose) -> Iterator[Record | Flaw]:
    """Rows of the Arrow tables of one file."""
    fields: dict[str, str] = {}
    for table in tables:
        fields = fields or choose(table.schema)
        # A later part of a JSON file may lack a column that its first part had.
        names = [name for name in fields if name in table.column_names]
        yield from _rows(table.select(names).rename_columns([fields[name] for name in names]))


def _rows(table: Any) -> Iterator[Record | Flaw]:
    """One record a row. Parquet promises UTF-8, but nothing checks that its writer kept the promise."""
    try:
        yield from table.to_pylist()
    except UnicodeDecodeError:
        for index in range(table.num_rows):
            try:
                yield from table.slice(index, 1).to_pylist()
            except UnicodeDecodeError:
                yield UNDECODABLE
