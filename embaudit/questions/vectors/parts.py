"""All collections of a store, where none was named, or all its columns of vectors: a line each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from embaudit.declared.document import Page
from embaudit.declared.rule import Finding, Level, Rule
from embaudit.questions.report import Report
from embaudit.questions.vectors.report import StoredReport
from embaudit.words.errors import EmbauditError

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
