"""Files of vectors: Parquet, Feather and Arrow streams, JSON lines, .npy beside a file of texts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.comparisons.stored.rows import RowBatch, StoredIndex
from embaudit.corpora.fields import TEXT_FIELDS
from embaudit.corpora.openers import ByteSource, local_file, os_failure, reading
from embaudit.corpora.records import read_records
from embaudit.corpora.tabular import report_damage
from embaudit.corpora.tally import Flaw
from embaudit.errors import CorpusError, UsageError
from embaudit.vector_files.columns import TEXTS, AskedColumns, find_columns, listed
from embaudit.vector_files.decode import BATCH_ROWS, of_lists, parsed, row_batches

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
JSON = (".jsonl", ".ndjson", ".json")
# Bytes that are read of a column at a time.
BUFFER = 1 << 20
# Rows of a JSON file that are looked at to find its columns.
LOOKED_AT = 200
FETCH = "Export it again, or fetch it again."
IS_TEXT_FILE = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow")


@contextmanager
def reported(shown: str) -> Iterator[None]:
    """Damage and errors of the system as a CorpusError that names the file."""
    try:
        with report_damage(shown, FETCH):
            yield
    except FileNotFoundError as error:
        raise CorpusError(f"There is no file {shown}.", next_step="Check the path.") from error
    except OSError as error:
        raise os_failure(shown, error) from error


def open_parquet(path: Path, asked: AskedColumns, shown: str = "") -> StoredIndex:
    """A Parquet file, or a folder of them in the order of their names."""
    import pyarrow.parquet as pq

    shown = shown or str(path)
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in PARQUET)
        if not files:
            raise CorpusError(f"{shown} is a folder without Parquet files.", next_step="Name a file, or their folder.")
    with reported(shown):
        opened = [pq.ParquetFile(file) for file in files]
        schema, rows = opened[0].schema_arrow, sum(file.metadata.num_rows for file in opened)

    def of(names: Sequence[str]) -> Iterator[Any]:
        for file in files:
            with reported(str(file)):
                part = pq.ParquetFile(file, buffer_size=BUFFER, pre_buffer=False)
                if lacking := [name for name in names if name not in part.schema_arrow.names]:
                    raise CorpusError(
                        f"{file} has no column {lacking[0]!r}: it has {listed(part.schema_arrow)}.",
                        next_step="All files of a folder must have the same columns.",
                    )
                # With threads, the column of a whole row group is read at once: of up to a million rows.
                yield from part.iter_batches(batch_size=BATCH_ROWS, columns=list(names), use_threads=False)

    return indexed(shown, schema, asked, of, rows)


def open_arrow(path: Path, asked: AskedColumns) -> StoredIndex:
    """A Feather or Arrow file, or an Arrow stream."""
    import pyarrow as pa

    def reader() -> Any:
        source = pa.memory_map(str(path))
        try:
            return pa.ipc.open_file(source)
        except pa.ArrowInvalid:
            source.seek(0)
            return pa.ipc.open_stream(source)

    def of(names: Sequence[str]) -> Iterator[Any]:
        with reported(str(path)):
            opened = reader()
            parts = (
                (opened.get_batch(place) for place in range(opened.num_record_batches))
                if hasattr(opened, "num_record_batches")
                else opened
            )
            yield from (part.select(list(names)) for part in parts)

    with reported(str(path)):
        schema = reader().schema
    return indexed(str(path), schema, asked, of)


def indexed(
    shown: str,
    schema: Any,
    asked: AskedColumns,
    batches_of: Callable[[Sequence[str]], Iterator[Any]],
    rows: int | None = None,
) -> StoredIndex:
    """An index whose Arrow batches can be read by column."""

    def first_of(name: str) -> object:
        for batch in batches_of([name]):
            values = batch.column(0).drop_null()
            if len(values):
                return values[0].as_py()
        return None

    columns = find_columns(schema, asked, shown, first_of)
    kind = schema.field(columns["vector"]).type
    numbers = str(kind.value_type) if hasattr(kind, "value_type") else "text" if "string" in str(kind) else "uint8"
    names = list(dict.fromkeys(columns.values()))
    return StoredIndex(
        shown,
        columns,
        {"halffloat": "float16", "float": "float32", "double": "float64"}.get(numbers, numbers),
        lambda: row_batches(batches_of(names), columns),
        rows,
    )


def open_json_lines(path: Path, asked: AskedColumns) -> StoredIndex:
    """JSON lines, or a JSON list, of objects; names of fields are read in lower case."""
    import pyarrow as pa

    if not path.is_file():
        raise CorpusError(f"There is no file {path}.", next_step="Check the path.")
    source = local_file(path)
    lower = AskedColumns(*(name and name.strip().lower() for name in (asked.vector, asked.text, asked.id)))
    some = [row for row in itertools.islice(read_records(source, "texts"), LOOKED_AT) if isinstance(row, dict)]
    firsts: dict[str, Any] = {}
    for row in some:
        for name, value in row.items():
            if value is not None:
                firsts.setdefault(name, value)
    schema = pa.schema([(name, _type_of(value)) for name, value in firsts.items()])
    columns = find_columns(schema, lower, str(path), firsts.get)

    def batches() -> Iterator[RowBatch]:
        records = enumerate(read_records(source, "texts"))
        start = 0
        while part := list(itertools.islice(records, BATCH_ROWS)):
            rows = [_whole(row, number + 1, str(path)) for number, row in part]
            vectors = of_lists([_as_list(row.get(columns["vector"])) for row in rows])
            texts = [_as_text(row.get(columns["text"])) for row in rows] if "text" in columns else None
            ids = [row.get(columns["id"]) for row in rows] if "id" in columns else None
            yield RowBatch(start, len(rows), vectors, texts, ids)
            start += len(rows)

    return StoredIndex(str(path), columns, "decimals", batches)


def _type_of(value: Any) -> Any:
    import pyarrow as pa

    if isinstance(value, list):
        numbers = [one for one in value if one is not None]
        if numbers and all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers):
            return pa.list_(pa.int64() if all(isinstance(one, int) for one in numbers) else pa.float64())
        return pa.list_(pa.string())
    for kind, name in ((bool, pa.bool_()), (str, pa.string()), (int, pa.int64()), (float, pa.float64())):
        if isinstance(value, kind):
            return name
    return pa.struct([])


def _whole(row: dict[str, Any] | Flaw, number: int, shown: str) -> dict[str, Any]:
    """A row; a blank line is a row without anything, so that rows keep their numbers."""
    if isinstance(row, dict):
        return row
    if row.counted_as == "blank":
        return {}
    raise CorpusError(
        f"Row {number:,} of {shown} cannot be read: {row.reason or 'it is not UTF-8'}.",
        kept="Nothing was measured: rows that are left out would be missing from every count.",
        next_step="Correct that line, or export the file again.",
    )


def _as_list(value: Any) -> list[Any] | None:
    return value if isinstance(value, list) else parsed(value) if isinstance(value, str) else None


def _as_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def open_npy(path: Path, texts: Path | None) -> StoredIndex:
    """A matrix in a .npy file, with the text of each row in a file beside it."""
    with reported(str(path)):
        try:
            vectors = np.load(path, mmap_mode="r", allow_pickle=False)
        except (EOFError, ValueError) as error:
            raise CorpusError(f"{path} cannot be read: {error}.", next_step=FETCH) from error
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind not in "iuf":
        raise UsageError(
            f"{path} holds {getattr(vectors, 'dtype', 'no array')} of shape {getattr(vectors, 'shape', '?')}, not one "
            "row of numbers for each text.",
            next_step="Save a matrix (rows, dimensions): numpy.save(FILE, vectors)",
        )
    if texts is not None:
        lines = sum(1 for _ in _texts(texts))
        if lines != len(vectors):
            raise UsageError(
                f"{path} has {len(vectors):,} vectors, and {texts} has {lines:,} texts.",
                kept="Nothing was compared: which text belongs to which vector is unknown.",
                next_step="Write one text a line for every vector; in .jsonl a text may hold newlines.",
            )

    def batches() -> Iterator[RowBatch]:
        lines: Iterable[str | None] = _texts(texts) if texts is not None else ()
        given = iter(lines)
        for start in range(0, len(vectors), BATCH_ROWS):
            part = np.array(vectors[start : start + BATCH_ROWS])
            own = list(itertools.islice(given, len(part))) if texts is not None else None
            yield RowBatch(start, len(part), {part.shape[1]: (np.arange(len(part)), part)}, own)

    columns = {"vector": path.name} | ({"text": texts.name} if texts is not None else {})
    return StoredIndex(str(path), columns, str(vectors.dtype), batches, len(vectors))


def _texts(path: Path) -> Iterator[str | None]:
    """The texts of a file, a row each: lines of a .txt file, the text field of .jsonl, else of a known format."""
    source = local_file(path)
    if source.suffix not in IS_TEXT_FILE:
        yield from _lines(source)
        return
    for number, row in enumerate(read_records(source, "texts")):
        record = _whole(row, number + 1, str(path))
        name = next((name for name in (*TEXTS, *TEXT_FIELDS) if name in record), None)
        yield _as_text(record[name]) if name else None


def _lines(source: ByteSource) -> Iterator[str]:
    with reading(source) as stream:
        for number, line in enumerate(stream):
            try:
                yield line.decode("utf-8").removesuffix("\n").removesuffix("\r")
            except UnicodeDecodeError as error:
                raise CorpusError(f"Line {number + 1:,} of {source.shown} is not UTF-8.", next_step=FETCH) from error
