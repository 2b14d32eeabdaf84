"""A store as questions about its vectors open it: before a function is, by its function, and each of its parts.

Which column of texts was embedded, where several may have been or none is called so, the function tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from embaudit.declared.document import Page
from embaudit.declared.rule import Finding, Level, Rule
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.report import Report
from embaudit.questions.vectors.forms import encode_rows, form_of_index
from embaudit.questions.vectors.report import StoredReport, dimension_of
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions, SeveralFit, SeveralTexts
from embaudit.stores.store import RowBatch, Store
from embaudit.words.errors import EmbauditError

# Rows that each column is tried on, and columns that are; of a function that may cost money, fewer rows.
ROWS, MOST_COLUMNS, PAID_ROWS = 24, 8, 6
# A column is the one if so many rows, or all there are, are the function's by it, and more than by any other.
FEWEST = 2


def text_column(store: Store, function: EmbeddingFunction, names: Sequence[str] = ()) -> str | None:
    """The column by whose texts most of a few rows are the function's; None if there is none.

    Args:
        store: whose text column is unknown.
        names: of the columns that may be meant; by default, all that hold texts.
    """
    if not names and not store.fields:
        return None
    asked = list(names or store.fields)
    batch = next(iter(store.batches(asked)), None)
    if batch is None or not batch.vectors:
        return None
    texts = _texts(batch, asked)[:MOST_COLUMNS]
    places, vectors = max(batch.vectors.values(), key=lambda own: len(own[0]))
    found: dict[str, tuple[int, tuple[str, ...]]] = {}
    for name in texts:
        own = [place for place, row in enumerate(places) if isinstance(batch.fields[name][int(row)], str)]
        most = ROWS if function.checkpoint is not None else PAID_ROWS
        own = [own[int(one)] for one in np.linspace(0, len(own) - 1, min(most, len(own)))]
        tried = tuple(str(batch.fields[name][int(places[place])]) for place in own)
        found[name] = _own(function, tried, vectors[own]), tried
    best = max(found, key=lambda name: found[name][0], default=None)
    if best is None or found[best][0] < min(FEWEST, len(found[best][1])) or not found[best][0]:
        return None
    count, tried = found[best]
    alike = [name for name, (own, others) in found.items() if name != best and own == count and others != tried]
    return None if alike else best


def _texts(batch: RowBatch, names: Sequence[str]) -> list[str]:
    """Those that hold texts of several words in most rows that have any, the longest first."""
    length = {}
    for name in names:
        own = [one for one in batch.fields.get(name, ()) if isinstance(one, str) and one.strip()]
        if own and sum(" " in one.strip() for one in own) * 2 >= len(own):
            length[name] = float(np.mean([len(one) for one in own]))
    return sorted(length, key=lambda name: -length[name])


def _own(function: EmbeddingFunction, texts: Sequence[str], stored: np.ndarray) -> int:
    """How many of these rows have the function's vector."""
    if not texts:
        return 0
    try:
        ours = encode_rows(function, texts)
    except EmbauditError:
        return 0
    form = form_of_index(ours, stored)
    if form is None:
        return 0
    distances = form.distance(ours, stored)
    return int((distances <= form.tolerance(distances)).sum())


def opened_first(named: str, asked: ReadOptions) -> Store | None:
    """A store, so that a place that is wrong is told before a function is opened, which may take a while.

    None if several columns or types of numbers may be meant, of which a function's dimension may tell the right one.
    """
    with suppress(SeveralFit):
        return open_store(named, asked)
    return None


def opened_for(function: EmbeddingFunction | None, named: str, asked: ReadOptions, first: Store | None = None) -> Store:
    """The store as it was opened first, or by the dimension of a function, and by the texts whose vectors it gives."""
    if function is None:
        return first or open_store(named, asked)
    asked = replace(asked, dimension=dimension_of(function))
    try:
        store = first or open_store(named, asked)
    except SeveralTexts as several:
        # Read by the first of them, the others are fields.
        store = open_store(named, replace(asked, text=several.names[0]))
        found = text_column(store, function, several.names)
        if found is None:
            raise
        return open_store(named, replace(asked, text=found))
    if store.has_texts or asked.text is not None or asked.texts is not None:
        return store
    found = text_column(store, function)
    return store if found is None else open_store(named, replace(asked, text=found))


def with_filter(
    function: EmbeddingFunction | None, named: str, asked: ReadOptions, first: Store | None
) -> tuple[Store, Store | None]:
    """The whole store, and the same with the filter that was asked for; None without one.

    Args:
        first: the whole one, if it was opened first.
    """
    filtered = opened_for(function, named, asked) if asked.where else None
    return opened_for(function, named, replace(asked, where=()), first), filtered


COLLECTION = Rule(
    "collection",
    look_if="the verdict on one of several collections",
    problem_if="the same",
    reason="each is looked at by itself; `not measured` if it cannot be",
)


class PartsCalled(NamedTuple):
    """What the parts of a store are called, and how a user names one."""

    many: str
    option: str


COLLECTIONS = PartsCalled("collections", "--from")
COLUMNS = PartsCalled("columns of vectors", "--vector")


@dataclass(frozen=True)
class PartsReport(Report):
    """What came of looking at each part of a store.

    Attributes:
        shown: the store, as the user named it.
        parts: by name: its report, or why there is none.
    """

    levels: ClassVar[Mapping[str, Level]] = {
        "nothing wrong": "ok",
        "not all in order": "problem",
        "could not be told": "not measured",
    }

    shown: str
    parts: Mapping[str, StoredReport | EmbauditError]
    called: PartsCalled = COLLECTIONS

    @property
    def findings(self) -> tuple[Finding, ...]:  # type: ignore[override]
        return tuple(_finding(name, part, self.called.option) for name, part in self.parts.items())

    @property
    def seconds(self) -> float:  # type: ignore[override]
        return sum(part.seconds for part in self.parts.values() if isinstance(part, StoredReport))

    @property
    def verdict(self) -> str:
        levels = {finding.level for finding in self.findings}
        return "not all in order" if "problem" in levels else "nothing wrong" if "ok" in levels else "could not be told"

    @property
    def line(self) -> str:
        counts = Counter(one.level for one in self.findings)
        own, wrong = counts["ok"], counts["problem"]
        untold = len(self.parts) - own - wrong
        if own == len(self.parts):
            return f"All {own:,} {self.called.many} are in order."
        told = [
            f"{wrong:,} {'is' if wrong == 1 else 'are'} not in order" if wrong else "",
            f"{own:,} {'is' if own == 1 else 'are'}" + ("" if wrong else " in order") if own else "",
            f"{untold:,} could not be told" if untold else "",
        ]
        return f"Of {len(self.parts):,} {self.called.many}, {', '.join(filter(None, told))}."

    @property
    def cause(self) -> Finding | None:
        return None

    def page(self) -> Page:
        identity = [(self.called.many, f"{len(self.parts):,}"), ("took", f"{self.seconds:.0f} s")]
        return Page(self.shown, identity, self.told(), [], kind="Vectors of")

    def content(self) -> dict[str, Any]:
        return {
            "index": self.shown,
            "collections": {
                name: part.as_json() if isinstance(part, StoredReport) else {"error": str(part)}
                for name, part in self.parts.items()
            },
        }


def look_at_each(
    shown: str, names: Sequence[str], look: Callable[[str], StoredReport], called: PartsCalled = COLLECTIONS
) -> PartsReport:
    """Look at each of these parts; what cannot be read stops no other."""
    parts: dict[str, StoredReport | EmbauditError] = {}
    for name in names:
        try:
            parts[name] = look(name)
        except EmbauditError as error:
            parts[name] = error
    return PartsReport(shown, parts, called)


def _finding(name: str, part: StoredReport | EmbauditError, option: str) -> Finding:
    advice = f"To see all of it: {option} {name}"
    if isinstance(part, EmbauditError):
        return COLLECTION.finding("not measured", f"{name}: {part.happened}", "Nothing is said of it.", advice)
    meaning = part.cause.meaning if part.cause is not None else ""
    meaning = meaning or ("Nothing is said of it." if part.level == "not measured" else "")
    return COLLECTION.finding(part.level, f"{name}: {part.line}", meaning, "" if part.level == "ok" else advice)
