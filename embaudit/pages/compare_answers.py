"""A page comparing answers with earlier ones, or those about one store with those about another.

Two answers are compared where the same was asked; where something was asked otherwise, that is said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from embaudit.declared.document import Column, Page, Part, Section, Table, count
from embaudit.declared.rule import LEVELS, Finding, Level
from embaudit.pages.compare import FIGURES
from embaudit.pages.sides import difference_interval
from embaudit.questions.names import model_of
from embaudit.questions.report import WORSE_WHEN, AnswerFigure
from embaudit.system.settings import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.named import PREVIOUS, KeptAnswer, figures_of, find_answers, find_answers_before

LEVEL: dict[str, Level] = {level: level for level in LEVELS}
FINDINGS = {
    **{"asks": Column("question"), "name": Column("finding"), "before": Column("before", levels=LEVEL)},
    **{"now": Column("now", levels=LEVEL), "sentence": Column("what was found", is_prose=True)},
}
CASES = {
    **{"query": Column("query", is_prose=True), "expected": Column("expected"), "before": Column("before")},
    **{"now": Column("now"), "sentence": Column("where it is lost", is_prose=True)},
}
# What the search finds, and the application loses after it, is lost at that stage.
LOST = "CASE WHEN lost = 'found' THEN coalesce(stage, lost) ELSE lost END"


@dataclass(frozen=True)
class AnswerSide:
    """One answer with all that is compared of it."""

    answer: KeptAnswer
    asked: Mapping[str, Any]
    figures: Mapping[tuple[str, str], AnswerFigure]
    findings: Mapping[str, Mapping[str, Any]]
    cases: Mapping[tuple[str, str], Mapping[str, Any]]

    @property
    def name(self) -> str:
        return f"{self.answer.asks} {self.answer.subject}, {self.answer.asked:%Y-%m-%d %H:%M}"


@dataclass(frozen=True)
class AnswersCompared:
    """An answer beside an earlier one.

    Attributes:
        otherwise: parameters that were others, beside what was asked about.
        figures: of both, with the change and its interval.
        findings: whose level is another, or that only one has.
        cases: searches that were found, or lost, only once; or lost elsewhere.
    """

    before: AnswerSide
    now: AnswerSide
    otherwise: list[str]
    figures: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    cases: list[dict[str, Any]]


Compared = tuple[list[AnswersCompared], list[AnswerSide]]


def compare_answers(warehouse: Warehouse | str, names: Sequence[str], wait_seconds: float = 5.0) -> Compared | None:
    """Pairs of answers to compare, and those that nothing is there to compare with; None if a name has no answer.

    Args:
        names: what each later one is compared with, first: a store, an endpoint or a checkpoint stands for its newest
            answers, an id or its first digits for one; as the first, ``previous`` for the answers before.

    Raises:
        UsageError: if digits are of several answers.
        WarehouseError: if the warehouse does not exist or is locked.
    """
    with open_reader(warehouse_at(warehouse), wait_seconds) as connection:
        if not connection.execute("FROM duckdb_tables() WHERE table_name = 'answer'").fetchall():
            return None
        first, *others = names
        later = [find_answers(connection, name) for name in others]
        earlier = [] if first == PREVIOUS else find_answers(connection, first)
        if not all(later) or not (earlier or first == PREVIOUS):
            return None
        pairs: list[AnswersCompared] = []
        alone: list[AnswerSide] = []
        for some in later:
            given = find_answers_before(connection, some, PREVIOUS) if first == PREVIOUS else earlier
            before = [_read(connection, one) for one in given]
            for now in (_read(connection, one) for one in some):
                match = _alike(now, before)
                if match is None:
                    alone.append(now)
                else:
                    pairs.append(_compared(match, now))
    return pairs, alone


def answers_page(compared: Compared) -> Page:
    """The page of a comparison."""
    pairs, alone = compared
    sides = [one.before for one in pairs] or alone
    title = " and ".join(dict.fromkeys(side.answer.subject for side in sides))
    return Page(
        kind="Compared with",
        title=title,
        identity=[
            (name, f"{side.name}, answer {side.answer.answer_id}")
            for one in pairs
            for name, side in (("first", one.before), ("then", one.now))
        ],
        findings=[*(finding for one in pairs for finding in _told(one)), *map(_alone, alone)],
        sections=[Section(one.now.name, list(_parts(one))) for one in pairs],
    )


def as_json(compared: Compared) -> dict[str, Any]:
    """The comparison as plain values."""
    pairs, alone = compared
    return {
        "answers": [
            {
                "asks": one.now.answer.asks,
                **{name: _identity(side) for name, side in (("before", one.before), ("now", one.now))},
                **{name: getattr(one, name) for name in ("otherwise", "figures", "findings", "cases")},
            }
            for one in pairs
        ],
        "not_compared": [_identity(side) for side in alone],
    }


def _identity(side: AnswerSide) -> dict[str, Any]:
    names = ("answer_id", "asks", "subject", "verdict", "level", "line")
    return {name: getattr(side.answer, name) for name in names} | {"asked": side.answer.asked.isoformat()}


def _read(connection: duckdb.DuckDBPyConnection, answer: KeptAnswer) -> AnswerSide:
    def rows(columns: str, table: str) -> list[tuple[Any, ...]]:
        sql = f"SELECT {columns} FROM {table} WHERE answer_id = ? ORDER BY ALL"
        return connection.execute(sql, [answer.computed_id]).fetchall()

    ((asked,),) = connection.execute("SELECT question FROM answer WHERE answer_id = ?", [answer.answer_id]).fetchall()
    about = model_of(answer.asks).arguments()
    return AnswerSide(
        answer,
        {name: value for name, value in json.loads(asked).items() if name not in about},
        {(one.figure, one.item): one for one in figures_of(connection, answer)},
        {
            name: {"level": level, "sentence": sentence}
            for _, name, level, sentence in reversed(rows("place, name, level, sentence", "answer_finding"))
        },
        {
            (query, expected): {"lost": lost, "sentence": sentence}
            for _, query, expected, lost, sentence in rows(f"place, query, expected, {LOST}, sentence", "why_case")
        },
    )


def _alike(now: AnswerSide, before: Sequence[AnswerSide]) -> AnswerSide | None:
    """The answer to the same question; of several about something else, the one that was asked most alike."""
    same = [one for one in before if one.answer.asks == now.answer.asks and one.answer is not now.answer]
    return min(
        same,
        key=lambda one: (one.answer.question_key != now.answer.question_key, len(_otherwise(one, now))),
        default=None,
    )


def _otherwise(before: AnswerSide, now: AnswerSide) -> list[str]:
    names = sorted({*before.asked, *now.asked})
    return [name for name in names if before.asked.get(name) != now.asked.get(name)]


def _compared(before: AnswerSide, now: AnswerSide) -> AnswersCompared:
    figures = [_figure(before.figures[key], one) for key, one in now.figures.items() if key in before.figures]
    order = ["worse", "better", ""]
    findings = [
        {
            "asks": now.answer.asks,
            "name": name,
            "before": before.findings.get(name, {}).get("level", ""),
            "now": now.findings.get(name, {}).get("level", ""),
            "sentence": now.findings.get(name, before.findings.get(name, {})).get("sentence", ""),
        }
        for name in dict.fromkeys((*now.findings, *before.findings))
        if now.findings.get(name, {}).get("level") != before.findings.get(name, {}).get("level")
    ]
    cases = [
        {
            "query": key[0],
            "expected": key[1],
            "before": before.cases[key]["lost"],
            "now": one["lost"],
            "sentence": "" if one["lost"] == "found" else one["sentence"],
        }
        for key, one in now.cases.items()
        if key in before.cases and before.cases[key]["lost"] != one["lost"]
    ]
    return AnswersCompared(
        before,
        now,
        _otherwise(before, now),
        sorted(figures, key=lambda row: (order.index(row["change"]), row["figure"], row["item"])),
        findings,
        sorted(cases, key=lambda row: row["now"] == "found"),
    )


def _figure(before: AnswerFigure, now: AnswerFigure) -> dict[str, Any]:
    delta, worse_when = now.value - before.value, WORSE_WHEN.get(now.figure)
    low, high = difference_interval(before, now)
    # A count without an interval is one of so many: two of two hundred are no more than one of a hundred.
    moved = _share(now) - _share(before) if low is None or high is None else delta if low > 0 or high < 0 else 0.0
    change = ""
    if worse_when is not None and moved:
        change = "worse" if (moved > 0) == (worse_when == "higher") else "better"
    return {
        **{"figure": now.figure, "item": now.item, "predecessor_value": before.value, "value": now.value},
        **{"delta": delta, "low": low, "high": high, "change": change},
    }


def _share(figure: AnswerFigure) -> float:
    return figure.value / figure.of if figure.of else figure.value


def _told(one: AnswersCompared) -> Iterator[Finding]:
    """The verdict, and what it was; how it was asked otherwise."""
    was, now = one.before.answer, one.now.answer
    verdict = f"{now.verdict}, as before" if now.verdict == was.verdict else f"{now.verdict}; it was: {was.verdict}"
    changes = [row["change"] for row in one.figures]
    lost = sum(row["before"] == "found" for row in one.cases)
    found = sum(row["now"] == "found" for row in one.cases)
    worse, better = changes.count("worse"), changes.count("better")
    said = f"{one.now.name}: {verdict}. Of {count(len(changes), 'figure')}, {worse} got worse, {better} better."
    if one.now.cases:
        said += f" {lost} of its searches are lost that were found, and {found} found that were lost."
    is_worse = LEVELS.index(now.level) < LEVELS.index(was.level)
    yield Finding(now.level if is_worse else "look" if lost or worse else "ok", said)
    if one.otherwise:
        yield Finding("look", f"{one.now.name}: it was asked otherwise: {', '.join(one.otherwise)}.")


def _alone(side: AnswerSide) -> Finding:
    return Finding(
        "not measured", f"{side.name}: no other answer to this question is there to compare it with, of other content."
    )


def _parts(one: AnswersCompared) -> Iterator[Part]:
    yield Table.of(CASES, one.cases, "Searches, those that are lost first", more="--json")
    yield Table.of(FINDINGS, one.findings, "Findings whose level is another", more="--json")
    yield Table.of(FIGURES, one.figures, "Figures, those that got worse first", brief=15, more="--json")
