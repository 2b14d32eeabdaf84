"""Golden queries: what people keep of their searches, a query and what it should find, in CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from embaudit.corpora.openers import os_failure
from embaudit.errors import CorpusError, UsageError

FORM = 'Write columns query and expect (CSV), or lines {"query": "…", "expect": "ID or text"} (.jsonl).'
TABLES = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True)
class GoldenQuery:
    """A query, and what it should find.

    Attributes:
        expected: ids or texts, one of which is enough.
    """

    query: str
    expected: tuple[str, ...]


def read_golden(path: Path) -> list[GoldenQuery]:
    """The queries of a file, in its order; lines with the same query are one, which any of their answers serves.

    Raises:
        CorpusError: if the file cannot be read.
        UsageError: if it has another form, or a query or an answer is empty.
    """
    found: dict[str, list[str]] = {}
    for line, record in _records(path):
        query, expected = _text(record.get("query")), record.get("expect")
        answers = [_text(one) for one in (expected if isinstance(expected, list) else [expected])]
        if not query or not any(answers):
            lacking = "query" if not query else "expect"
            raise UsageError(f"Line {line:,} of {path} has no {lacking}.", next_step=FORM)
        found.setdefault(query, []).extend(one for one in answers if one and one not in found.get(query, ()))
    if not found:
        raise UsageError(f"{path} has no queries.", next_step=FORM)
    return [GoldenQuery(query, tuple(expected)) for query, expected in found.items()]


def _text(value: Any) -> str:
    """Ids may be numbers."""
    return "" if value is None or isinstance(value, dict | bool) else str(value).strip()


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        content = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise os_failure(str(path), error) from error
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path} is not UTF-8: {error}.", next_step="Save it as UTF-8.") from error
    suffix = path.suffix.lower()
    if suffix in TABLES:
        reader = csv.DictReader(io.StringIO(content), delimiter=TABLES[suffix])
        if not {"query", "expect"} <= {str(name).strip().lower() for name in reader.fieldnames or ()}:
            raise UsageError(f"{path} has no columns query and expect.", next_step=FORM)
        for row in reader:
            yield reader.line_num, {str(name).strip().lower(): value for name, value in row.items()}
        return
    if suffix not in (".jsonl", ".ndjson", ".json"):
        raise UsageError(f"{path} is no .csv, .tsv, .jsonl or .json file.", next_step=FORM)
    try:
        if content.lstrip().startswith("["):
            values = list(enumerate(json.loads(content), 1))
        else:
            values = [(line, json.loads(one)) for line, one in enumerate(content.splitlines(), 1) if one.strip()]
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}.", next_step=FORM) from error
    for line, value in values:
        if not isinstance(value, dict):
            raise UsageError(f"Line {line:,} of {path} is no object.", next_step=FORM)
        yield line, {str(name).strip().lower(): one for name, one in value.items()}
