"""An answer beside those before it: recall that fell, rows that are gone, whatever the question itself says of tonight.

A figure is compared with the newest one of the same question that had not fallen, or whose fall somebody accepted: what
fell once stays a problem, night after night, until it is back or accepted. Rows are compared with the most that there
were, so that an index from which a few are lost every night is found, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from embaudit.declared.document import Page
from embaudit.declared.rule import Finding, Level, Rule
from embaudit.declared.table import Row
from embaudit.questions.report import AnswerFigure, Report
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
