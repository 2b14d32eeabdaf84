"""From a file to records (field name -> value) or flaws, by the format that its name promises.

Read by ``fields``, which turns records into texts and pairs. A row that cannot be read becomes a flaw and is
counted; a file that cannot be read at all is a CorpusError.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import IO, Any

from embaudit.corpora.fields import is_known_field
from embaudit.corpora.openers import ByteSource, os_failure, reading
from embaudit.corpora.shapes import Kind
from embaudit.corpora.tables import Record, named_rows, separated_rows
from embaudit.corpora.tally import UNDECODABLE, Flaw
from embaudit.errors import CorpusError

SUFFIXES = (".txt", ".csv", ".tsv", ".jsonl", ".json", ".parquet")
PARQUET_BATCH = 4096


def read_records(source: ByteSource, kind: Kind) -> Iterator[Record | Flaw]:
    """Yield the records of one file, each with lower-case field names.

    Raises:
        CorpusError: on a suffix that is not read, a damaged file, or a table that fits no layout.
    """
    match source.suffix:
        case ".txt" if kind == "texts":
            return _lines(source)
        case ".txt" | ".csv" | ".tsv":
            return _table(source, kind)
        case ".jsonl" | ".ndjson":
            return _json_lines(source)
        case ".json":
            return _json(source)
        case ".parquet":
            return _parquet(source)
    raise CorpusError(
        f"{source.shown} is of no format that corpora are read from.",
        next_step=f"Give a file that ends in {', '.join(SUFFIXES)} (text formats also with .gz).",
    )


def _lines(source: ByteSource) -> Iterator[Record | Flaw]:
    with reading(source) as stream:
        # Only \n ends a line: U+2028 and its like occur inside Wikipedia sentences.
        for line in stream:
            try:
                yield {"text": line.decode("utf-8")}
            except UnicodeDecodeError:
                yield UNDECODABLE


def _table(source: ByteSource, kind: Kind) -> Iterator[Record | Flaw]:
    with reading(source) as stream:
        yield from named_rows(separated_rows(stream, source.suffix), kind, source.shown)


def _json_lines(source: ByteSource) -> Iterator[Record | Flaw]:
    with reading(source) as stream:
        yield from _json_line_records(stream)


def _json_line_records(stream: IO[bytes]) -> Iterator[Record | Flaw]:
    for line in stream:
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            yield UNDECODABLE
            continue
        if not text.strip():
            yield Flaw("blank")
            continue
        try:
            yield _as_record(json.loads(text))
        except (ValueError, RecursionError) as error:
            yield Flaw("broken", f"a line that is no JSON: {error}")


def _as_record(value: Any) -> Record | Flaw:
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, dict):
        return {str(name).strip().lower(): field for name, field in value.items()}
    return Flaw("broken", f"a JSON {type(value).__name__} where an object was expected")


def _json(source: ByteSource) -> Iterator[Record | Flaw]:
    with reading(source) as stream:
        content = stream.read()
    # Hub data sets call JSON Lines ".json" as often as not.
    if not content.lstrip().startswith(b"["):
        yield from _json_line_records(io.BytesIO(content))
        return
    try:
        values = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CorpusError(
            f"{source.shown} is no JSON list: {error}.",
            next_step="Write a list of objects or strings, or one object a line in a .jsonl file.",
        ) from error
    for value in values:
        yield _as_record(value)


def _parquet(source: ByteSource) -> Iterator[Record | Flaw]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with source.open() as stream:
            table = pq.ParquetFile(stream)
            columns = [name for name in table.schema_arrow.names if is_known_field(name.lower())]
            if not columns:
                raise CorpusError(
                    f"{source.shown} has no column known here: {', '.join(table.schema_arrow.names)}.",
                    next_step="Rename the text column to 'text', or a pair's to 'sentence1' and 'sentence2'.",
                )
            for batch in table.iter_batches(batch_size=PARQUET_BATCH, columns=columns):
                yield from _batch_records(batch)
    except (pa.ArrowException, ValueError, OSError) as error:
        # pyarrow reports damage as any of the three; only the operating system's errors carry a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise os_failure(source.shown, error) from error
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CorpusError(
            f"{source.shown} is no readable Parquet file: {reason}.", next_step="Fetch it again."
        ) from error


def _batch_records(batch: Any) -> Iterator[Record | Flaw]:
    """One record a row. Parquet promises UTF-8, but nothing checks that its writer kept the promise."""
    try:
        rows = batch.to_pylist()
    except UnicodeDecodeError:
        rows = None
    if rows is not None:
        yield from ({str(name).lower(): value for name, value in row.items()} for row in rows)
        return
    for index in range(batch.num_rows):
        row = batch.slice(index, 1)
        try:
            yield {str(name).lower(): value for name, value in row.to_pylist()[0].items()}
        except UnicodeDecodeError:
            yield UNDECODABLE
