"""Looks at some rows of an index as it is now, and says which are wrong, so that they are known again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from embaudit.declared.rule import Finding, Rule
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.vectors.crowding import CROWDING, Crowding
from embaudit.questions.vectors.since.rows import MOST_ID, ROW_NUMBER, KnownRow, RowMarks, only
from embaudit.stores.opened import embedding
from embaudit.stores.store import Store
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import cut, first_of, visible

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind
    from embaudit.questions.vectors.report import StoredReport

# The finding of rows that are not the function's.
FOREIGN = "other_vectors"
ANOTHER_DIMENSION = Rule(
    "another_dimension_than_before",
    problem_if="rows have another number of dimensions than most that were there (`--since-last`)",
    reason="another function wrote them",
)
# Ids that a sentence names.
NAMED = 5
# Rows of which it is kept that something is wrong with them; of more, they are looked at again.
MOST_KNOWN = 20_000
# What is told row by row: of one row, and of several.
BY_ROW = {
    FOREIGN: ("is not the {kind}'s", "are not the {kind}'s"),
    CROWDING.name: ("comes up for many unrelated queries", "come up for many unrelated queries"),
    "zeros": ("holds zeros only", "hold zeros only"),
    "not_finite": ("holds NaN or infinity", "hold NaN or infinity"),
    "no_vector": ("has no vector", "have no vector"),
    ANOTHER_DIMENSION.name: ("has another number of dimensions", "have another number of dimensions"),
}


@dataclass(frozen=True)
class IndexInspection:
    """What came of looking at some rows.

    Attributes:
        rows: how many these are.
        report: as ``embaudit vectors`` would have it of them.
        said: of each problem, by the finding's name, a sentence.
        bad: of those that are told row by row, the rows; of vectors that are not the function's, those encoded again.
    """

    rows: int
    report: StoredReport
    said: dict[str, str]
    bad: dict[str, list[KnownRow]]

    @property
    def share(self) -> tuple[float, float, float] | None:
        return None if self.report.against is None else self.report.against.share

    @property
    def encoded(self) -> int:
        return 0 if self.report.against is None else int(self.report.against.compared.sum())

    @property
    def foreign(self) -> list[KnownRow]:
        return self.bad.get(FOREIGN, [])

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong with any of these rows but with those that are known."""
        against = self.report.against
        is_encoded = against is None or self.encoded >= against.population
        return is_encoded and self.said.keys() <= {name for name, rows in self.bad.items() if len(rows) <= MOST_KNOWN}

    @property
    def kind(self) -> str:
        """What it was held against: a checkpoint, an endpoint …"""
        return "function" if self.report.against is None else self.report.against.kind


@dataclass(frozen=True)
class IndexNow:
    """An index as it is now, of which some rows at a time are looked at.

    Attributes:
        dimension: that most rows had before.
        rows: how many are encoded again.
        seed: of their draw: another one at every look, so that in time every old row has its turn.
        role: what rows were encoded as, where old ones have told: new ones must be, too.
        crowding: which of all rows crowd; a row is told among all others, whenever it came.
    """

    store: Store
    marks: RowMarks
    function: EmbeddingFunction
    load: Callable[[str], EmbeddingFunction]
    dimension: int
    rows: int
    also: Sequence[str]
    seed: int
    role: TextKind | None = None
    crowding: Crowding | None = None

    def look(self, chosen: np.ndarray, what: str) -> IndexInspection:
        """Look at the chosen rows.

        Args:
            what: these are, as in "of 20 rows added".
        """
        from embaudit.questions.vectors.report import look_at

        part = only(self.store, chosen, self.marks)
        report = look_at(
            part,
            self.function,
            rows=self.rows,
            seed=self.seed,
            also=self.also,
            load=self.load,
            role=self.role,
            with_sentinels=False,
        )
        said = {one.name: _without_texts(one, what) for one in report.findings if one.level == "problem"}
        hashes, against = self.marks.rows[chosen], report.against
        numbers = {name: found for name, found in self._odd(report, chosen).items() if len(found)}
        if against is not None and against.share is not None and against.is_foreign.any():
            numbers[FOREIGN] = np.sort(against.rows.numbers[against.is_foreign])
            # Also said, if they are longer than the function's.
            said.pop("another_dimension", None)
        elif against is not None and against.share is not None and int(against.compared.sum()) >= against.population:
            # The function gives such vectors, and nothing went wrong when they were stored.
            said.pop("equal_vectors", None)
        if against is not None and against.share is not None:
            # Texts of one night may well be alike; whose vectors they have is what is asked.
            said.pop("collapse", None)
        said.pop("mixed_dimensions", None)
        bad = {name: _rows(part, hashes, found[: MOST_KNOWN + 1]) for name, found in numbers.items()}
        for name, rows in bad.items():
            count = len(numbers[name])
            said[name] = _foreign(report, rows, what) if name == FOREIGN else said_by_row(name, rows, what, count=count)
            if name == CROWDING.name and self.crowding is not None:
                said[name] += self.crowding.most_often(chosen)
        return IndexInspection(int(chosen.sum()), report, said, bad)

    def _odd(self, report: StoredReport, chosen: np.ndarray) -> dict[str, np.ndarray]:
        """Of what is wrong with vectors alone, the numbers of the rows among those that are looked at."""
        profile, dimensions = report.alone.profile, self.marks.dimensions[chosen]
        is_own = report.against is not None and report.against.is_mostly_own
        crowding = self.crowding.numbers if self.crowding is not None and is_own else ()
        return {
            CROWDING.name: np.flatnonzero(np.isin(np.flatnonzero(chosen), crowding)),
            "zeros": profile.zeros,
            "not_finite": profile.not_finite,
            "no_vector": np.flatnonzero(dimensions == 0),
            ANOTHER_DIMENSION.name: np.flatnonzero((dimensions > 0) & (dimensions != self.dimension)),
        }

    def as_embedded(self, old: IndexInspection) -> IndexNow:
        """The same, read by what was embedded, and as what, if that was found where most old rows were looked at."""
        found, template, store = old.report.embedded, old.report.index.template, self.store
        if found is not None and template is not None and store.template is None and ROW_NUMBER not in template.fields:
            store = embedding(store, template)
        return replace(self, store=store, role=old.report.role or self.role)


def _without_texts(finding: Finding, what: str) -> str:
    """What was found, in a sentence that may be kept: no text of a row is written anywhere."""
    if finding.name == "equal_vectors" and finding.value is not None:
        return f"{finding.value:,.0f} different texts of {what} have one and the same vector."
    return finding.sentence


def said_by_row(name: str, rows: Sequence[KnownRow], what: str, *, kind: str = "", count: int | None = None) -> str:
    """What is wrong with some rows, and which.

    Args:
        kind: what they were held against.
        count: of them, if there are more than are known.
    """
    count = len(rows) if count is None else count
    which = first_of([row.id for row in rows], NAMED, count)
    return f"{count:,} of {what} {BY_ROW[name][count > 1].format(kind=kind)}: {which}."


def _foreign(report: StoredReport, rows: Sequence[KnownRow], what: str) -> str:
    """The share of rows that are not the function's, which of them are known, and why."""
    against = report.against
    assert against is not None
    assert against.share is not None
    foreign = Estimate(*against.share)
    trials = int(against.compared.sum())
    if trials >= against.population:
        share = (
            f"{len(rows):,} of {what} {'are' if len(rows) > 1 else 'is'} not the {against.kind}'s ({foreign.value:.1%})"
        )
    else:
        share = (
            f"{foreign:.1%} of {what} are not the {against.kind}'s, {len(rows):,} of {trials:,} that were encoded again"
        )
    told = [reason for reason in against.reasons if not reason.is_rounding]
    because = "".join(f". {len(reason.places):,} of them {reason.said}" for reason in told)
    return f"{share}: {first_of([row.id for row in rows], NAMED)}{because}."


def _rows(part: Store, hashes: np.ndarray, numbers: np.ndarray) -> list[KnownRow]:
    """The rows of these numbers, sorted, with their ids."""
    found = []
    for batch in part.batches():
        inside = numbers[(numbers >= batch.start) & (numbers < batch.start + batch.rows)]
        ids = batch.ids or []
        found += [
            KnownRow(row=int(hashes[number]), id=cut(visible(ids[number - batch.start]), MOST_ID)) for number in inside
        ]
    return found
