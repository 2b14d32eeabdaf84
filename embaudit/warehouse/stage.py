"""Staged results: immutable Parquet files, each complete or absent.

``STAGING/<measure>/<key>/<table>-<shard>.parquet``, where the key is the content key of the rows. A file is
written next to its place and renamed (``embaudit.files``), so that a kill or a full disk never leaves half of one under
its name; for a store that is not on disk (``embaudit.warehouse.files``) it is written locally and uploaded as a whole.
A file may hold a record of how it was made, beside its rows: ``read_record``.
"""

from __future__ import annotations

import errno
import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from embaudit.errors import MeasureError, StorageError, UsageError
from embaudit.files import replace_atomically
from embaudit.masking import without_credentials
from embaudit.warehouse.files import is_remote, name_within, readable, upload, within

ROWS_PER_GROUP = 262_144
# Parquet's name for the record.
RECORD = "embaudit"
# What a file's record says, asked for when all of its rows are written.
Record = Callable[[], Mapping[str, Any]]


def staged_path(staging: str | Path, measure: str, key: str, table: str, shard: int = 0) -> str:
    """Where a measure's rows for one table and shard are staged."""
    return within(staging, measure, key, f"{table}-{shard:05d}.parquet")


def write_rows(
    path: str | Path, rows: Iterable[Any], schema: Mapping[str, str] | None = None, record: Record | None = None
) -> int:
    """Stage dataclass instances or mappings, one a row; returns how many.

    Args:
        schema: column -> pyarrow type name (or ``instant``), needed where a column may be all null or the rows
            may be none.
        record: what ``read_record`` is to give back, as JSON values.

    Raises:
        MeasureError: if a number is NaN or infinite; undefined values are None.
        StorageError: if the file cannot be written.
        ValueError: if the rows' columns are not the schema's, or there are neither rows nor a schema.
    """
    dicts = [asdict(row) if is_dataclass(row) and not isinstance(row, type) else dict(row) for row in rows]
    if not dicts and not schema:
        raise ValueError(f"{name_within(path)}: no rows and no schema say which columns it has")
    # pyarrow drops columns that the schema does not name, and fills missing ones with null, without a word.
    columns = set(schema or dicts[0])
    stray = next((columns ^ set(row) for row in dicts if set(row) != columns), None)
    if stray:
        raise ValueError(f"{name_within(path)}: columns that the rows and the schema do not share: {sorted(stray)}")
    table = pa.Table.from_pylist(dicts, schema=_arrow_schema(schema) if schema else None)
    with _writing(path, table.schema, record) as writer:
        _write(writer, table, path)
    return int(table.num_rows)


def write_columns(
    path: str | Path, blocks: Iterable[Mapping[str, Any]], schema: Mapping[str, str], record: Record | None = None
) -> int:
    """Stage arrays block by block, none of them kept: for tables larger than memory. Returns the row count.

    Args:
        schema, record: as for ``write_rows``.

    Raises:
        MeasureError, StorageError: as ``write_rows``.
    """
    arrow_schema = _arrow_schema(schema)
    rows = 0
    with _writing(path, arrow_schema, record) as writer:
        waiting: list[pa.RecordBatch] = []
        for block in blocks:
            # The schema's types, not guessed ones: a block whose column is all null would have a type of its own.
            arrays = [pa.array(block[field.name], type=field.type) for field in arrow_schema]
            waiting.append(pa.record_batch(arrays, schema=arrow_schema))
            rows += waiting[-1].num_rows
            # Small row groups are slow to read back: gather blocks to a group first.
            if sum(batch.num_rows for batch in waiting) >= ROWS_PER_GROUP:
                _write(writer, pa.Table.from_batches(waiting), path)
                waiting = []
        if waiting:
            _write(writer, pa.Table.from_batches(waiting), path)
    return rows


def read_rows(paths: Sequence[str | Path]) -> list[dict[str, Any]]:
    """All rows of staged files, in order, as plain Python values.

    Raises:
        StorageError: if one is missing or broken.
    """
    rows: list[dict[str, Any]] = []
    for path in paths:
        with opened(path) as source:
            rows += pq.read_table(source, partitioning=None, page_checksum_verification=True).to_pylist()
    return rows


def read_batches(path: str | Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """A staged file's columns a row group at a time.

    Raises:
        StorageError: if the file is missing or broken.
    """
    with opened(path) as source, pq.ParquetFile(source, page_checksum_verification=True) as file:
        yield from file.iter_batches(batch_size=ROWS_PER_GROUP, columns=list(columns))


def read_record(path: str | Path) -> tuple[int, dict[str, Any]]:
    """A staged file's number of rows, and the record that it was written with.

    Raises:
        StorageError: if the file is missing or broken, or has no record.
    """
    with opened(path) as source:
        metadata = pq.read_metadata(source)
        stored = (metadata.metadata or {}).get(RECORD.encode())
        if stored is None:
            raise pa.ArrowInvalid("it does not say how it was made")
        try:
            return metadata.num_rows, json.loads(stored)
        except ValueError as error:
            raise pa.ArrowInvalid(f"how it was made is unreadable: {error}") from error


@contextmanager
def opened(path: str | Path) -> Iterator[Any]:
    """What pyarrow reads a staged file from, wherever it lies.

    Raises:
        StorageError: if the file is missing or broken; it is named, with what to do.
    """
    with reading(path), readable(path) as source:
        yield source


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turns what a missing or broken staged file raises into an error that names it and says what to do."""
    # A store's package raises what it defines; on disk anything but these is a bug of ours.
    expected = Exception if is_remote(path) else (OSError, pa.ArrowException)
    try:
        yield
    except (StorageError, UsageError):
        raise
    except expected as error:
        is_missing = isinstance(error, FileNotFoundError)
        is_broken = isinstance(error, pa.ArrowException) or not is_remote(path)
        lines = without_credentials(str(error)).strip().splitlines() or [type(error).__name__]
        reason = "is missing" if is_missing else f"cannot be read ({lines[0]})"
        action = "Delete that file and run" if is_broken else "See that the store answers and run"
        raise StorageError(
            f"The staged file {without_credentials(str(path))} {reason}.",
            kept="Nothing was published, and the other staged files are kept.",
            next_step=f"{'Run' if is_missing else action} the same command again: only that file is computed anew."
            if is_missing or is_broken
            else f"{action} the same command again; it continues here.",
        ) from error


def _arrow_schema(schema: Mapping[str, str]) -> pa.Schema:
    own = {"instant": pa.timestamp("us", tz="UTC")}
    return pa.schema([(name, own[kind] if kind in own else pa.type_for_alias(kind)) for name, kind in schema.items()])


@contextmanager
def _writing(path: str | Path, schema: pa.Schema, record: Record | None) -> Iterator[Any]:
    """A Parquet writer whose file appears under its name only when it is complete and stored."""
    place = _uploaded(path) if is_remote(path) else _on_disk(path)
    with place as partial, pq.ParquetWriter(partial, schema, compression="zstd", write_page_checksum=True) as writer:
        yield writer
        if record is not None:
            writer.add_key_value_metadata({RECORD: json.dumps(record())})


@contextmanager
def _on_disk(path: str | Path) -> Iterator[Path]:
    try:
        with replace_atomically(Path(path)) as partial:
            yield partial
    except OSError as error:
        raise _storage_error(Path(path), error) from error


@contextmanager
def _uploaded(path: str | Path) -> Iterator[Path]:
    """A file in this machine's temporary folder, uploaded to its store when it is complete."""
    try:
        with tempfile.TemporaryDirectory(prefix="embaudit-") as folder:
            partial = Path(folder) / name_within(path)
            yield partial
            upload(partial, str(path))
    except OSError as error:
        raise _storage_error(Path(tempfile.gettempdir()), error) from error


def _write(writer: Any, table: pa.Table, path: str | Path) -> None:
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column.drop_null()), min_count=0).as_py():
            bad = pc.index(pc.fill_null(pc.invert(pc.is_finite(column)), False), True).as_py()
            # Keys are no floats: what is left names the row, without the hundreds of figures of a wide one.
            keys = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
            row = table.select(keys).slice(bad, 1).to_pylist()[0] if keys else bad
            raise MeasureError(
                f"{name_within(path)}: {name} is {column[bad].as_py()} in the row {row}.",
                kept="Nothing of this file was staged; the other measures' results are kept.",
                next_step="Please report it: embaudit should have named the text or token before this point.",
            )
    writer.write_table(table)


def _storage_error(path: Path, error: OSError) -> StorageError:
    reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)
    return StorageError(
        f"Cannot write {path}: {reason}.",
        kept="Everything staged before it is kept, and the published tables are untouched.",
        next_step="Make room (or point EMBAUDIT_HOME to another disk) and run the same command again; "
        "it continues here.",
    )
