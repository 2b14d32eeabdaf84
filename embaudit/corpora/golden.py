"""Golden queries: what people keep of their searches, a query and what it should find, in CSV or JSON.

With the texts that they should find they are a judged collection, in which a query's answers are relevant alike.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from embaudit.corpora.catalog import CorpusSpec
from embaudit.corpora.draw import Corpus, IngestCounts, Text, content_id
from embaudit.corpora.judged import JudgedCollection, label_of
from embaudit.corpora.load import load_corpus
from embaudit.corpora.openers import os_failure
from embaudit.words.errors import CorpusError, UsageError

# Names of the two corpora.
GOLDEN = "golden"
GOLDEN_QUERIES = "golden-queries"
DOCUMENT = CorpusSpec("texts", "texts", "texts of the index", "passages.jsonl", (), joins_title=True, beir="corpus")
QUERY = CorpusSpec(
    "queries", "texts", "queries", "queries.jsonl", (), text_fields=("query", "text", "question"), beir="queries"
)

FORM = 'Write columns query and expect (CSV), or lines {"query": "…", "expect": "ID or text"} (.jsonl).'
TABLES = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".ndjson", ".json")


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


def load_golden(golden: Path, corpus: str) -> JudgedCollection:
    """Golden queries with the texts that they should find, by id or by text.

    Args:
        corpus: the texts of the index: a file, a folder or a data set on the hub.

    Raises:
        CorpusError: if a file cannot be read.
        UsageError: if a query should find what is no text of the corpus.
    """
    cases = read_golden(golden)
    documents = replace(load_corpus(DOCUMENT, corpus), name=GOLDEN)
    places = {" ".join(text.text.split()): place for place, text in reversed(list(enumerate(documents.texts)))}
    places |= {text.external_id: place for place, text in enumerate(documents.texts) if text.external_id}
    own = {text.text: place for place, text in enumerate(documents.texts)}
    answers = [{places[name]: 1.0 for name in _names(case) if name in places} for case in cases]
    if lacking := [case for case, found in zip(cases, answers, strict=True) if not found]:
        raise UsageError(
            f"{len(lacking):,} of {len(cases):,} golden queries of {golden} expect no id or text of "
            f"{documents.source}: {lacking[0].expected[0]!r} first.",
            next_step="Give the texts of the index that they belong to, with their ids.",
        )
    asked = tuple(
        Text(case.query, None, None, label_of(found, {own[case.query]} - found.keys() if case.query in own else ()))
        for case, found in zip(cases, answers, strict=True)
    )
    counts = IngestCounts(read=len(asked), kept=len(asked), duplicate=0, blank=0, broken=0, undecodable=0)
    queries = Corpus(content_id("texts", asked), GOLDEN_QUERIES, "texts", str(golden), None, counts, asked, ())
    return JudgedCollection(documents, queries)


def load_golden_folder(folder: str) -> JudgedCollection:
    """The golden queries of a folder, golden.csv or another of their forms, with its texts.

    Raises:
        CorpusError: if there is no such file, or a file cannot be read.
        UsageError: if a query should find what is no text of the corpus.
    """
    names = [f"{GOLDEN}{suffix}" for suffix in (*TABLES, *LINES)]
    for file in (Path(folder).expanduser() / name for name in names):
        if file.is_file():
            return load_golden(file, folder)
    raise CorpusError(
        f"{folder} is no folder with golden queries: it has none of {', '.join(names)}.",
        next_step=f"Put them beside the texts that they should find (corpus.jsonl). {FORM}",
    )


def _names(case: GoldenQuery) -> list[str]:
    return [name for one in case.expected for name in (one, " ".join(one.split()))]


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
        # What a query expects may be a whole document.
        csv.field_size_limit(sys.maxsize)
        reader = csv.DictReader(io.StringIO(content), delimiter=TABLES[suffix])
        if not {"query", "expect"} <= {str(name).strip().lower() for name in reader.fieldnames or ()}:
            raise UsageError(f"{path} has no columns query and expect.", next_step=FORM)
        for row in reader:
            yield reader.line_num, {str(name).strip().lower(): value for name, value in row.items()}
        return
    if suffix not in LINES:
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
