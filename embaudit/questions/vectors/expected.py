"""What should be in an index: rows that never came, rows that nobody expects, texts that changed since.

An index that lacks most of its documents looks sound by every row that it has. So it is compared with a list of what it
should hold: ids, or the names of documents, with their texts if the list has them.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from embaudit.declared.finding import Finding
from embaudit.declared.rule import Rule
from embaudit.stores.store import Store
from embaudit.words.errors import CorpusError, UsageError
from embaudit.words.shown import quoted

# Names that are told; --json has ``KEPT`` of them.
TOLD, KEPT = 3, 1_000
IDS, TEXTS = ("id", "_id", "doc_id", "document_id", "name", "file"), ("text", "content", "body", "passage", "chunk")
FORM = "Write an id a line (.txt), a column id (CSV, TSV), or lines with id (.jsonl); or name the folder of documents."

ABSENT = Rule(
    "absent_rows",
    "`--expected`: ids, or documents, that are in no row",
    problem_if="any is absent",
    reason="what never came is found by no search, and no row that is there shows it",
)
CHANGED = Rule(
    "changed_texts",
    "texts of the list and of the rows, by hash",
    problem_if="a row has another text than the list",
    reason="its vector is of a text that is no longer there",
)
UNEXPECTED = Rule(
    "unexpected_rows",
    "ids of rows that the list has not",
    look_if="there is any",
    reason="a list may be of a part; what was deleted at its source should be gone",
)
FEWEST = Rule(
    "fewest_rows",
    "rows, and `--fewest-rows`",
    problem_if="there are fewer",
    reason="the number is the user's; where there is no list, it is all that tells a run that stopped",
)


@dataclass(frozen=True)
class ExpectedRows:
    """What an index should hold.

    Attributes:
        texts: by id, the hash of its text; empty if the list has none.
        source: as the user named it.
        are_files: whether ids are names of files, of which the index may have many rows each.
    """

    texts: Mapping[str, str]
    source: str
    are_files: bool = False


@dataclass(frozen=True)
class Completeness:
    """An index beside what it should hold.

    Attributes:
        field: which field of a row has the expected id.
        absent, unexpected, changed: ids of the list, of rows, and of rows with another text than the list's.
    """

    expected: int
    field: str
    absent: tuple[str, ...]
    unexpected: tuple[str, ...]
    changed: tuple[str, ...]
    source: str

    def findings(self) -> Iterator[Finding]:
        if self.absent:
            yield ABSENT.finding(
                "problem",
                f"{len(self.absent):,} of {self.expected:,} that {self.source} expects are not in the index: "
                f"{_some(self.absent)}.",
                "No search finds them, whatever the indexing run said.",
                "Put them in again, and look whether the run that should have done so counts what it writes.",
                len(self.absent) / self.expected,
            )
        else:
            yield ABSENT.finding("ok", f"All {self.expected:,} that {self.source} expects are in the index.")
        if self.changed:
            yield CHANGED.finding(
                "problem",
                f"{len(self.changed):,} rows have another text than {self.source}: {_some(self.changed)}.",
                "Their vectors are of a text that is no longer there.",
                "Encode these again.",
                len(self.changed) / self.expected,
            )
        if self.unexpected:
            yield UNEXPECTED.finding(
                "look",
                f"{len(self.unexpected):,} rows are nothing that {self.source} expects: {_some(self.unexpected)}.",
                "What was deleted at its source may still be found here.",
                "Delete them, if they should be gone.",
                float(len(self.unexpected)),
            )


def read_expected(path: Path) -> ExpectedRows:
    """The ids of a list, with texts where it has them; or the documents of a folder, by their names below it.

    Raises:
        CorpusError: if it cannot be read.
        UsageError: if it has no ids.
    """
    try:
        if path.is_dir():
            names = {str(one.relative_to(path)): "" for one in sorted(path.rglob("*")) if _is_document(one, path)}
            found = ExpectedRows(names, str(path), are_files=True)
        else:
            found = ExpectedRows(dict(_of_file(path)), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path} cannot be read: {error}.", next_step=FORM) from error
    if not found.texts:
        raise UsageError(f"{path} expects nothing: it has no ids.", next_step=FORM)
    return found


def compare_expected(store: Store, expected: ExpectedRows) -> Completeness:
    """One pass over the ids of a store, and over its other fields if ids are not what the list has."""
    ids: Counter[str] = Counter()
    hashes: dict[str, str] = {}
    others: dict[str, Counter[str]] = {name: Counter() for name in store.fields}
    for batch in store.batches(list(store.fields)):
        for place, name in enumerate(map(str, batch.ids or ())):
            ids[name] += 1
            text = batch.texts[place] if batch.texts is not None else None
            if text is not None and name in expected.texts:
                hashes[name] = _hash(text)
        for field, values in batch.fields.items():
            others[field].update(_plain(value, expected) for value in values if value is not None)
    by_field = {store.columns.get("id", "id"): ids, **others}
    field = max(by_field, key=lambda name: len(by_field[name].keys() & expected.texts.keys()))
    there = by_field[field]
    changed = [name for name, said in expected.texts.items() if said and name in hashes and hashes[name] != said]
    return Completeness(
        len(expected.texts),
        field,
        tuple(name for name in expected.texts if name not in there),
        tuple(name for name in there if name not in expected.texts),
        tuple(changed),
        expected.source,
    )


def fewest_rows_finding(rows: int, fewest: int) -> Finding:
    """Whether an index has as many rows as it should at least."""
    if rows >= fewest:
        return FEWEST.finding("ok", f"It has {rows:,} rows, at least the {fewest:,} that are wanted.")
    return FEWEST.finding(
        "problem",
        f"It has {rows:,} rows, and should have at least {fewest:,}.",
        "What is missing is found by no search.",
        "Look whether the last indexing run was whole; --expected LIST says which rows are missing.",
        float(rows),
    )


def _of_file(path: Path) -> Iterator[tuple[str, str]]:
    text = path.read_text(encoding="utf-8-sig")
    match path.suffix.lower():
        case ".csv" | ".tsv":
            rows = csv.DictReader(text.splitlines(), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            yield from _of_records(path, rows)
        case ".jsonl" | ".ndjson":
            yield from _of_records(path, (json.loads(line) for line in text.splitlines() if line.strip()))
        case _:
            yield from ((line.strip(), "") for line in text.splitlines() if line.strip())


def _of_records(path: Path, records: Iterator[Mapping[str, object]] | csv.DictReader[str]) -> Iterator[tuple[str, str]]:
    for line, record in enumerate(records, 1):
        if not isinstance(record, dict) or (key := next((name for name in IDS if name in record), None)) is None:
            raise UsageError(f"Line {line:,} of {path} has no id.", next_step=FORM)
        text = next((record[name] for name in TEXTS if record.get(name)), "")
        yield str(record[key]), _hash(str(text)) if text else ""


def _is_document(path: Path, folder: Path) -> bool:
    return path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)


def _plain(value: object, expected: ExpectedRows) -> str:
    """A field's value as the list would have it: a path by as much of its end as names a document of the folder."""
    name = str(value)
    if expected.are_files and name not in expected.texts:
        parts = Path(name).parts
        for start in range(1, len(parts)):
            if (end := str(Path(*parts[start:]))) in expected.texts:
                return end
    return name


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _some(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - TOLD:,} more" if len(names) > TOLD else ""
    return ", ".join(quoted(name) for name in names[:TOLD]) + more
