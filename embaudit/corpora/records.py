"""Reads a file as records (field name -> value) or flaws, by the format that its name indicates.

A row that cannot be read becomes a flaw and is counted; a file that cannot be read at all is a CorpusError.

The user's own sentence pairs (``--pairs FILE``): all kept in order, including repeats.

A corpus drops duplicates because it is a pool to draw from; a chosen list is itself the sample, and the pairs published
with the sticky-token paper contain repeats.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from embaudit.corpora.catalog import CORPORA
from embaudit.corpora.draw import UNDECODABLE, Flaw, Kind
from embaudit.corpora.fields import choose_columns, pairs_of
from embaudit.corpora.openers import ByteSource, local_file, reading
from embaudit.corpora.tables import Record, file_records, named_rows, separated_rows
from embaudit.words.errors import CorpusError

SUFFIXES = (".txt", ".csv", ".tsv", ".jsonl", ".json", ".parquet", ".arrow")
RENAME = "Rename the text column to 'text', or a pair's to 'sentence1' and 'sentence2'."


def read_records(source: ByteSource, kind: Kind) -> Iterator[Record | Flaw]:
    """Yield the records of one file, each with lower-case field names.

    Raises:
        CorpusError: if the suffix is not supported, the file is damaged, or a table fits no layout.
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
        case ".parquet" | ".arrow":
            return file_records(
                source.path, source.shown, partial(choose_columns, shown=source.shown, next_step=RENAME)
            )
    raise CorpusError(
        f"{source.shown} is not in a supported corpus format.",
        next_step=f"Give a file ending in {', '.join(SUFFIXES)} (text formats also with .gz).",
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
        yield from named_rows(separated_rows(stream, source.suffix, kind, source.shown), kind, source.shown)


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
            yield Flaw("broken", f"a line that is not JSON: {error}")


def _as_record(value: Any) -> Record | Flaw:
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, dict):
        return {str(name).strip().lower(): field for name, field in value.items()}
    return Flaw("broken", f"a JSON {type(value).__name__} where an object was expected")


def _json(source: ByteSource) -> Iterator[Record | Flaw]:
    with reading(source) as stream:
        content = stream.read()
    # Hub data sets often use ".json" for JSON Lines.
    if not content.lstrip().startswith(b"["):
        yield from _json_line_records(io.BytesIO(content))
        return
    try:
        values = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise CorpusError(
            f"{source.shown} is not a JSON list: {error}.",
            next_step="Write a list of objects or strings, or one object per line in a .jsonl file.",
        ) from error
    for value in values:
        yield _as_record(value)


@dataclass(frozen=True)
class ChosenPairs:
    """The pairs of a file, and a hash of everything a measure uses of them."""

    pairs: tuple[tuple[str, str], ...]
    content: str


def read_chosen_pairs(path: Path) -> ChosenPairs:
    """Read csv, tsv, json, jsonl or Parquet with sentence1 and sentence2 (or s1,s2 without a header).

    Raises:
        CorpusError: if the file cannot be read, is empty, or has an invalid row: nothing is dropped silently.
    """
    pairs: list[tuple[str, str]] = []
    for row, record in enumerate(read_records(local_file(path.expanduser()), "pairs"), start=1):
        found = [record] if isinstance(record, Flaw) else list(pairs_of(record, CORPORA["sts"]))
        for pair in found:
            if isinstance(pair, Flaw) or not (pair.first and pair.second):
                reason = pair.reason if isinstance(pair, Flaw) and pair.reason else "a side is blank"
                raise CorpusError(
                    f"Row {row} of {path} is not a sentence pair: {reason}.",
                    next_step="Give every row a sentence1 and a sentence2.",
                )
            pairs.append((pair.first, pair.second))
    if not pairs:
        raise CorpusError(f"{path} contains no pairs.", next_step="Give rows with sentence1 and sentence2.")
    content = hashlib.sha256(json.dumps(pairs, ensure_ascii=False).encode()).hexdigest()[:16]
    return ChosenPairs(tuple(pairs), content)
