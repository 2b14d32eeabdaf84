"""What should be in an index: rows that never came, rows that nobody expects, texts that changed since.

An index that lacks most of its documents looks sound by every row that it has. So it is compared with a list of what it
should hold: ids, or the names of documents, with their texts if the list has them.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from embaudit.declared.rule import Finding, Rule
from embaudit.stores.store import Store
from embaudit.words.errors import CorpusError, UsageError, one_line
from embaudit.words.sentences import first_of, quoted

# Names that are told.
TOLD = 3
IDS, TEXTS = ("id", "_id", "doc_id", "document_id", "name", "file"), ("text", "content", "body", "passage", "chunk")
# Of the list, what a field that is not the id has to hold; and the longest text of a table.
MOSTLY, MOST_CHARACTERS = 0.5, 2**30
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

    @property
    def counts(self) -> dict[str, int]:
        return {name: len(getattr(self, name)) for name in ("absent", "unexpected", "changed")}

    def findings(self) -> Iterator[Finding]:
        if self.absent:
            yield ABSENT.finding(
                "problem",
                f"{len(self.absent):,} of {self.expected:,} that {self.source} expects are not in the index "
                f"({len(self.absent) / self.expected:.1%}, by {self.field}): {_some(self.absent)}.",
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
    except (OSError, ValueError, csv.Error) as error:
        raise CorpusError(f"{path} cannot be read: {one_line(error)}", next_step=FORM) from error
    if not found.texts:
        raise UsageError(f"{path} expects nothing: it has no ids.", next_step=FORM)
    return found


def compare_expected(store: Store, expected: ExpectedRows) -> Completeness | None:
    """One pass over the ids and other fields of a store; None if its rows have neither."""
    ids: Counter[str] = Counter()
    hashes: dict[str, set[str]] = {}
    others: dict[str, Counter[str]] = {name: Counter() for name in store.fields}
    # A text that a template makes of several fields is not the list's.
    has_texts = store.template is None
    for batch in store.batches(list(store.fields)):
        for place, name in enumerate(map(_name, batch.ids or ())):
            ids[name] += 1
            text = batch.texts[place] if batch.texts is not None and has_texts else None
            if text is not None and name in expected.texts:
                hashes.setdefault(name, set()).add(_hash(text))
        for field, values in batch.fields.items():
            others[field].update(_plain(value, expected) for value in values if value is not None)
    own = store.columns.get("id", "")
    by_field = {**({own: ids} if own else {}), **others}
    if not by_field:
        return None
    found = {name: len(values.keys() & expected.texts.keys()) for name, values in by_field.items()}
    field = max(found, key=found.__getitem__)
    # Some numbers stand in many fields: another than the ids has to hold most of the list.
    if own and field != own and found[field] < MOSTLY * len(expected.texts):
        field = own
    there = by_field[field]
    changed = [
        name for name, said in expected.texts.items() if field == own and said and said not in hashes.get(name, {said})
    ]
    return Completeness(
        len(expected.texts),
        field,
        tuple(name for name in expected.texts if name not in there),
        tuple(name for name in there if name not in expected.texts),
        tuple(changed),
        expected.source,
    )


def without_ids(store: Store) -> Finding:
    """Nobody can say what is there of rows that have no names."""
    return ABSENT.finding(
        "not measured",
        f"Rows of {store.shown} have no ids and no other fields, so nobody can say which are there.",
        "What never came is unknown.",
        "Name the column of their ids: --id COLUMN; or count them: --fewest-rows N",
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
    # Ends of lines as they are: they may be within a text.
    text = path.read_bytes().decode("utf-8-sig")
    match path.suffix.lower():
        case ".csv" | ".tsv":
            delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
            # Texts may have lines of their own.
            csv.field_size_limit(MOST_CHARACTERS)
            yield from _of_records(path, csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter))
        case ".jsonl" | ".ndjson":
            # Not by splitlines(), which knows ends of lines that JSON leaves as they are.
            yield from _of_records(path, (json.loads(line) for line in text.split("\n") if line.strip()))
        case ".json":
            records = json.loads(text)
            listed = records if isinstance(records, list) else [records]
            yield from _of_records(path, (one if isinstance(one, dict) else {"id": one} for one in listed))
        case _:
            yield from ((line, "") for line in text.splitlines() if line.strip())


def _of_records(path: Path, records: Iterable[object]) -> Iterator[tuple[str, str]]:
    for line, record in enumerate(records, 1):
        if not isinstance(record, dict) or (key := next((name for name in IDS if name in record), None)) is None:
            raise UsageError(f"Line {line:,} of {path} has no id.", next_step=FORM)
        text = next((record[name] for name in TEXTS if record.get(name)), "")
        if (name := _name(record[key])) != "":
            yield name, _hash(str(text)) if text else ""


def _name(value: object) -> str:
    """An id as text. What pandas makes of whole numbers beside a missing one, 7.0, is 7."""
    if value is None:
        return ""
    whole = str(value).strip()
    return whole.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", whole) else whole


def _is_document(path: Path, folder: Path) -> bool:
    return path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)


def _plain(value: object, expected: ExpectedRows) -> str:
    """A field's value as the list would have it: a path by as much of its end as names a document of the folder."""
    name = _name(value)
    if expected.are_files and name not in expected.texts:
        parts = Path(name).parts
        for start in range(1, len(parts)):
            if (end := str(Path(*parts[start:]))) in expected.texts:
                return end
    return name


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _some(names: tuple[str, ...]) -> str:
    return first_of([quoted(name) for name in names], TOLD)
