"""Reads and writes staged results: immutable Parquet files, each complete or absent.

``STAGING/<measure>/<key>/<table>-<shard>.parquet``, where the key is the content key of the rows. A file is written to
a temporary path and renamed (``embaudit.system.files``), so that a kill or full disk never leaves a partial one under
its name; for a remote store (``embaudit.steps.staging.files``) it is written locally and uploaded as a whole. A file
can also contain a record of how it was made: ``read_record``.
"""

from __future__ import annotations

import errno
import hashlib
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

from embaudit.steps.staging.files import is_file, is_remote, mark_used, name_within, readable, upload, within
from embaudit.system.files import replace_atomically
from embaudit.words.errors import MeasureError, StorageError, UsageError
from embaudit.words.masking import without_credentials

ROWS_PER_GROUP = 262_144
# Key of the record in Parquet's metadata.
RECORD = "embaudit"
RECORD_CHECKSUM = "embaudit-sha256"
# Returns a file's record; called after all rows are written.
Record = Callable[[], Mapping[str, Any]]


def staged_path(staging: str | Path, measure: str, key: str, table: str, shard: int = 0) -> str:
    """The place of a measure's staged rows for one table and shard."""
    return within(staging, measure, key, f"{table}-{shard:05d}.parquet")


def write_rows(
    path: str | Path, rows: Iterable[Any], schema: Mapping[str, str] | None = None, record: Record | None = None
) -> int:
    """Stage dataclass instances or mappings, one per row; returns the row count.

    Args:
        schema: column -> pyarrow type name (or ``instant``), required if a column may be all null or there may be no
            rows.
        record: JSON values to be returned by ``read_record``.

    Raises:
        MeasureError: if a number is NaN or infinite; undefined values are None.
        StorageError: if the file cannot be written.
        ValueError: if the rows' columns differ from the schema, or there are neither rows nor a schema.
    """
    dicts = [asdict(row) if is_dataclass(row) and not isinstance(row, type) else dict(row) for row in rows]
    if not dicts and not schema:
        raise ValueError(f"{name_within(path)}: its columns are unknown without rows or a schema")
    # pyarrow silently drops columns not in the schema and fills missing ones with null.
    columns = set(schema or dicts[0])
    stray = next((columns ^ set(row) for row in dicts if set(row) != columns), None)
    if stray:
        raise ValueError(f"{name_within(path)}: columns of the rows and the schema differ: {sorted(stray)}")
    table = pa.Table.from_pylist(dicts, schema=_arrow_schema(schema) if schema else None)
    with _writing(path, table.schema, record) as writer:
        _write(writer, table, path)
    return int(table.num_rows)


def write_columns(
    path: str | Path, blocks: Iterable[Mapping[str, Any]], schema: Mapping[str, str], record: Record | None = None
) -> int:
    """Stage arrays block by block, for tables larger than memory; returns the row count.

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
            # The schema's types, not inferred ones: an all-null column of a block would get a different type.
            arrays = [pa.array(block[field.name], type=field.type) for field in arrow_schema]
            waiting.append(pa.record_batch(arrays, schema=arrow_schema))
            rows += waiting[-1].num_rows
            # Small row groups are slow to read: collect blocks into larger groups.
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
    return [row for path in paths for row in read_table(path).to_pylist()]


def read_table(
    path: str | Path, columns: Sequence[str] | None = None, read_dictionary: Sequence[str] | None = None
) -> pa.Table:
    """A staged file as a table; whatever reads staged rows does so here or in ``read_batches``.

    A flipped bit in a number is still a number: only the checksums show it, and whatever is computed from it would be
    staged under a sound checksum of its own.

    Args:
        columns: those to read; None for all.
        read_dictionary: columns of few distinct strings, to be read as categories.

    Raises:
        StorageError: if the file is missing or broken.
    """
    with opened(path) as source:
        return pq.read_table(
            source,
            columns=None if columns is None else list(columns),
            partitioning=None,
            read_dictionary=None if read_dictionary is None else list(read_dictionary),
            page_checksum_verification=True,
        )


def is_staged(path: str | Path) -> bool:
    """Whether a staged file exists, to be used instead of making it again; marks it as used, so that it stays.

    Raises:
        StorageError: if the store does not answer.
    """
    if not is_file(path):
        return False
    mark_used([str(path)])
    return True


def read_batches(path: str | Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """A staged file's columns, one row group at a time.

    Raises:
        StorageError: if the file is missing or broken.
    """
    with opened(path) as source, pq.ParquetFile(source, page_checksum_verification=True) as file:
        yield from file.iter_batches(batch_size=ROWS_PER_GROUP, columns=list(columns))


def read_record(path: str | Path) -> tuple[int, list[str], dict[str, Any]]:
    """A staged file's row count, columns and record.

    Raises:
        StorageError: if the file is missing or broken, or has no record.
    """
    with opened(path) as source:
        metadata = pq.read_metadata(source)
        stored = (metadata.metadata or {}).get(RECORD.encode())
        if stored is None:
            raise pa.ArrowInvalid("it has no record of how it was made")
        # Pages have checksums of their own; the record is in the footer, which has none.
        checksum = metadata.metadata.get(RECORD_CHECKSUM.encode())
        if checksum is not None and checksum.decode() != _sha256(stored):
            raise pa.ArrowInvalid("its record of how it was made does not match its checksum")
        try:
            return metadata.num_rows, metadata.schema.to_arrow_schema().names, json.loads(stored)
        except ValueError as error:
            raise pa.ArrowInvalid(f"its record of how it was made is unreadable: {error}") from error


@contextmanager
def opened(path: str | Path) -> Iterator[Any]:
    """A source for pyarrow to read a staged file, local or remote.

    Raises:
        StorageError: if the file is missing or broken, naming it and what to do.
    """
    with reading(path), readable(path) as source:
        yield source


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turn errors of a missing or broken staged file into one that names it and says what to do."""
    # Stores raise classes of their own; on disk, anything but these is a bug.
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
        action = "Delete that file and run" if is_broken else "Check that the store is reachable and run"
        raise StorageError(
            f"The staged file {without_credentials(str(path))} {reason}.",
            kept="Nothing was published, and the other staged files are kept.",
            next_step=f"{'Run' if is_missing else action} the same command again: only that file is recomputed."
            if is_missing or is_broken
            else f"{action} the same command again; it continues here.",
        ) from error


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _arrow_schema(schema: Mapping[str, str]) -> pa.Schema:
    own = {"instant": pa.timestamp("us", tz="UTC")}
    return pa.schema([(name, own[kind] if kind in own else pa.type_for_alias(kind)) for name, kind in schema.items()])


@contextmanager
def _writing(path: str | Path, schema: pa.Schema, record: Record | None) -> Iterator[Any]:
    """A Parquet writer whose file appears under its name only when complete."""
    place = _uploaded(path) if is_remote(path) else _on_disk(path)
    with place as partial, pq.ParquetWriter(partial, schema, compression="zstd", write_page_checksum=True) as writer:
        yield writer
        if record is not None:
            stored = json.dumps(record())
            writer.add_key_value_metadata({RECORD: stored, RECORD_CHECKSUM: _sha256(stored.encode())})


@contextmanager
def _on_disk(path: str | Path) -> Iterator[Path]:
    try:
        with replace_atomically(Path(path)) as partial:
            yield partial
    except OSError as error:
        raise _storage_error(Path(path), error) from error


@contextmanager
def _uploaded(path: str | Path) -> Iterator[Path]:
    """A local temporary file, uploaded when complete."""
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
            # Keys are not floats, so the other columns identify the row without hundreds of figures.
            keys = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
            row = table.select(keys).slice(bad, 1).to_pylist()[0] if keys else bad
            raise MeasureError(
                f"{name_within(path)}: {name} is {column[bad].as_py()} in the row {row}.",
                kept="Nothing of this file was staged; the other measures' results are kept.",
                next_step="Please report this: embaudit should have named the text or token earlier.",
            )
    writer.write_table(table)


def _storage_error(path: Path, error: OSError) -> StorageError:
    reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error)
    return StorageError(
        f"Cannot write {path}: {reason}.",
        kept="Everything staged before is kept, and the published tables are unchanged.",
        next_step="Free some space (or point EMBAUDIT_HOME to another disk) and run the same command again; "
        "it continues here.",
    )
