"""Answers that are kept: found again for the same question about the same content, and beside those before them.

A report says what is worse than before: recall that fell, rows that are gone, whatever the question itself says of
tonight. A figure is compared with the newest one of the same question that had not fallen, or whose fall somebody
accepted: what fell once stays a problem, night after night, until it is back or accepted. Rows are compared with the
most that there were, so that an index from which a few are lost every night is found, too.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from embaudit.declared.document import Page
from embaudit.declared.rule import Finding, Level, Rule
from embaudit.declared.table import Row
from embaudit.questions.answered import question_key
from embaudit.questions.question import Question
from embaudit.questions.report import AnswerFigure, AnswerRow, Report
from embaudit.system.settings import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.named import FIGURES
from embaudit.words.estimate import Estimate

RECALL_FELL = Rule(
    "recall_fell",
    source="`recall_at_10`, with and without the filter, of two answers to one question",
    problem_if="its interval lies below that of the last answer that had not fallen",
    reason="two intervals of 95 % that do not meet are further apart than chance explains",
    worse="lower",
)
ROWS_GONE = Rule(
    "rows_gone",
    source="`rows` of two answers to one question",
    problem=0.1,
    problem_if="{problem} and more of the most rows that it had (`lost`), since somebody accepted fewer",
    reason="an indexing run that fails half way, or a clean-up that takes too much, leaves no error",
    is_share=True,
)
VERDICTS = {RECALL_FELL.name: "recall fell", ROWS_GONE.name: "rows lost"}
RECALL = "recall_at_10"
# Settings that are tried, and tenants, are many: one of them falls by chance.
ITEMS = {"": "", "filtered": " under its filter"}


@dataclass(frozen=True)
class EarlierFigure:
    """A figure of an earlier answer, and when that was."""

    value: float
    low: float | None
    high: float | None
    of: int | None
    asked: datetime


@dataclass(frozen=True)
class WorseReport(Report):
    """A report of which figures are worse than before; everything else is the report's own."""

    report: Report
    falls: tuple[Finding, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:  # type: ignore[override]
        return (*self.report.findings, *self.falls)

    @property
    def seconds(self) -> float:  # type: ignore[override]
        return self.report.seconds

    @property
    def level(self) -> Level:
        return "problem"

    @property
    def verdict(self) -> str:
        return self.report.verdict if self.report.level == "problem" else VERDICTS[self.falls[0].name]

    @property
    def line(self) -> str:
        return self.report.line if self.report.level == "problem" else self.falls[0].sentence

    def page(self) -> Page:
        return replace(self.report.page(), findings=self.told())

    def content(self) -> dict[str, Any]:
        return self.report.content()

    def answer_figures(self) -> Iterator[AnswerFigure]:
        return self.report.answer_figures()

    def rows(self) -> Mapping[type[Row], Sequence[dict[str, Any]]]:
        return self.report.rows()

    def causes(self) -> Sequence[str]:
        return self.report.causes()

    def remember(self) -> None:
        self.report.remember()


Earlier = Mapping[tuple[str, str], EarlierFigure]


def beside_earlier(report: Report, before: Earlier, lost: float = ROWS_GONE.problem) -> Report:
    """The report, which says what is worse than before.

    Args:
        before: by figure and item, those that it is compared with.
        lost: the share of rows which, once gone, is a problem.
    """
    found = tuple(falls(report.answer_figures(), before, lost))
    return WorseReport(report, found) if found else report


def falls(figures: Iterable[AnswerFigure], before: Earlier, lost: float = ROWS_GONE.problem) -> Iterator[Finding]:
    """What is worse than it was; see ``beside_earlier``."""
    for now in figures:
        was = before.get((now.figure, now.item))
        if was is None:
            continue
        if now.figure == RECALL and now.item in ITEMS:
            if _ends(now)[1] < _ends(was)[0]:
                yield _recall_fell(now, was)
        elif now.figure == "rows" and was.value > now.value:
            share = (was.value - now.value) / was.value
            if share >= lost:
                yield _rows_gone(now, was, share)


def _ends(figure: AnswerFigure | EarlierFigure) -> tuple[float, float]:
    """The interval. Where all n queries agree there is none: 3 / n is what the "rule of three" leaves open.

    Source: Hanley and Lippman-Hand, *If nothing goes wrong, is everything all right?*, JAMA 249 (1983).
    """
    if figure.low is not None and figure.high is not None:
        return figure.low, figure.high
    margin = 3 / figure.of if figure.of else 1.0
    return figure.value - margin, figure.value + margin


def _recall_fell(now: AnswerFigure, was: EarlierFigure) -> Finding:
    estimate, earlier = Estimate(now.value, now.low, now.high), Estimate(was.value, was.low, was.high)
    return RECALL_FELL.finding(
        "problem",
        f"Recall@10{ITEMS[now.item]} is {estimate:.2f}; on {was.asked:%Y-%m-%d} it was {earlier:.2f}.",
        "Rows that were found then are not found now, with nothing else asked.",
        "See what came into the index since, and whether its graph was built again; the settings that were tried say "
        "what finds them.",
        now.value,
        now.low,
        now.high,
    )


def _rows_gone(now: AnswerFigure, was: EarlierFigure, share: float) -> Finding:
    return ROWS_GONE.finding(
        "problem",
        f"{was.value - now.value:,.0f} of {was.value:,.0f} rows are gone ({share:.1%}) since {was.asked:%Y-%m-%d}: "
        f"it has {now.value:,.0f}.",
        "What they held is not found any more.",
        "Look what deleted them, or whether an indexing run ended early; what should be there by id: --expected LIST.",
        share,
    )


def find_answer(warehouse: Warehouse | str, content_key: str, wait_seconds: float) -> dict[str, Any] | None:
    """The last answer to a question about this content; None if there is none."""
    return _newest(warehouse, "content_key", content_key, wait_seconds)


def latest_answer(warehouse: Warehouse | str, question_key: str, wait_seconds: float) -> dict[str, Any] | None:
    """The last answer to a question, as it was asked; None if it was never asked."""
    return _newest(warehouse, "question_key", question_key, wait_seconds)


def accepted_answers(warehouse: Warehouse | str, answer_ids: Collection[str], wait_seconds: float) -> set[str]:
    """Those of these answers of which somebody accepted what is wrong."""
    if not answer_ids:
        return set()
    with open_reader(warehouse_at(warehouse), wait_seconds) as connection:
        rows = connection.execute(
            "SELECT history.answer_id FROM answer_history AS history JOIN acceptance AS accepted "
            "ON accepted.what = 'answer' AND accepted.audit_id = history.first_answer_id "
            "WHERE list_contains(?, history.answer_id)",
            [list(answer_ids)],
        ).fetchall()
    return {str(answer_id) for (answer_id,) in rows}


def beside_kept(question: Question, report: Report, warehouse: Warehouse | str, wait_seconds: float) -> Report:
    """A report that also says what is worse than in the answers before, without what somebody accepted of them."""
    key = question_key(question)
    accepted = _rows(
        warehouse,
        "SELECT max(accepted) FROM acceptance JOIN answer ON answer_id = audit_id "
        "WHERE what = 'answer' AND question_key = $question HAVING count(*) > 0",
        {"question": key},
        wait_seconds,
    )
    for (until,) in accepted:
        report = report.accept(until)
    return beside_earlier(report, _before(warehouse, key, wait_seconds), getattr(question, "lost", ROWS_GONE.problem))


def is_worse_again(row: Mapping[str, Any], warehouse: Warehouse | str, wait_seconds: float) -> bool:
    """Whether an answer that was well holds again, and is worse than what was answered since.

    Args:
        row: of the answer that would hold.
    """
    if row["level"] == "problem":
        return False
    figures = _rows(warehouse, FIGURES, {"id": row["computed_id"]}, wait_seconds)
    before = _before(warehouse, row["question_key"], wait_seconds)
    lost = json.loads(row["question"]).get("lost", ROWS_GONE.problem)
    return any(falls((AnswerFigure(*figure) for figure in figures), before, lost))


def _before(warehouse: Warehouse | str, question_key: str, wait_seconds: float) -> dict[tuple[str, str], EarlierFigure]:
    """By figure and item, the newest of a question that had not fallen, or whose fall somebody accepted.

    Of rows, the most since then.
    """
    rows = _rows(
        warehouse,
        """
        WITH history AS (
            SELECT
                *,
                EXISTS (
                    FROM acceptance
                    WHERE acceptance.what = 'answer' AND acceptance.audit_id = first_answer_id
                ) AS is_accepted,
                EXISTS (
                    FROM answer_finding AS finding
                    WHERE finding.answer_id = computed_id AND finding.level = 'problem'
                    AND list_contains($falls, finding.name)
                ) AS has_fallen
            FROM answer_history
            WHERE question_key = $question
        )
        SELECT told.figure, told.item, told.value, told.low, told.high, told.of, history.asked
        FROM history
        JOIN answer_figure AS told ON told.answer_id = history.computed_id
        WHERE (is_accepted OR NOT has_fallen)
        AND (
            told.figure <> 'rows'
            OR NOT EXISTS (
                FROM history AS later
                WHERE later.is_accepted AND later.has_fallen AND later.asked > history.asked
            )
        )
        QUALIFY row_number() OVER (
            PARTITION BY told.figure, told.item
            ORDER BY CASE told.figure WHEN 'rows' THEN told.value END DESC, history.asked DESC
        ) = 1
        """,
        {"question": question_key, "falls": list(VERDICTS)},
        wait_seconds,
    )
    return {(figure, item): EarlierFigure(*rest) for figure, item, *rest in rows}


def _newest(warehouse: Warehouse | str, column: str, key: str, wait_seconds: float) -> dict[str, Any] | None:
    columns = tuple(AnswerRow.table.columns)
    sql = f"SELECT {', '.join(columns)} FROM answer WHERE {column} = $key ORDER BY asked DESC, answer_id LIMIT 1"
    rows = _rows(warehouse, sql, {"key": key}, wait_seconds)
    return dict(zip(columns, rows[0], strict=True)) if rows else None


def _rows(
    warehouse: Warehouse | str, sql: str, parameters: Mapping[str, Any], wait_seconds: float
) -> list[tuple[Any, ...]]:
    """None, too, if there is no warehouse yet, or it has kept no answer."""
    place = warehouse_at(warehouse)
    if isinstance(place, Path) and not place.exists():
        return []
    with open_reader(place, wait_seconds) as connection:
        if not connection.execute("FROM duckdb_tables() WHERE table_name = 'answer'").fetchall():
            return []
        return connection.execute(sql, dict(parameters)).fetchall()
