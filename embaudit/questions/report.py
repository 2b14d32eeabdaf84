"""What comes of a comparison, whichever it is: a verdict, the findings behind it, a page, an exit code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from math import isfinite
from typing import Any, ClassVar

from embaudit.declared.document import Page
from embaudit.declared.rule import Finding, Level, Rule, worst_first
from embaudit.declared.table import Row
from embaudit.questions.answer import AnswerFigure
from embaudit.words.errors import EXIT_DONE, EXIT_TRIPPED, EXIT_USAGE

HOW_IT_IS_READ = Rule(
    "how_it_is_read",
    look_if="a store is read otherwise than it may be meant",
    reason="what is left out, or taken for something, is said",
)
HOW_IT_IS_ASKED = Rule("how_it_is_asked", reason="`ok`: what a store is asked otherwise than an application may ask it")


class Report(ABC):
    """A comparison's outcome, for people and for programs.

    Attributes:
        levels: how bad each verdict is.
        exits: what a command ends with, by that level.
        findings: in the order of the parts.
        seconds: that it took.
    """

    levels: ClassVar[Mapping[str, Level]]
    exits: ClassVar[Mapping[Level, int]] = {
        "ok": EXIT_DONE,
        "look": EXIT_DONE,
        "problem": EXIT_TRIPPED,
        "not measured": EXIT_USAGE,
    }
    findings: tuple[Finding, ...]
    seconds: float

    @property
    @abstractmethod
    def verdict(self) -> str:
        """One of ``levels``."""

    @property
    @abstractmethod
    def line(self) -> str:
        """The verdict in one line."""

    @abstractmethod
    def page(self) -> Page:
        """What people read."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """What only this answer has, in the types of JSON: what was asked of what, and all that was found."""

    def answer_figures(self) -> Iterator[AnswerFigure]:
        """The figures that are kept of it, beside those of its findings."""
        yield from ()

    def rows(self) -> Mapping[type[Row], Sequence[dict[str, Any]]]:
        """What else is kept of it: rows of declared tables, without the answer's id and their place in it."""
        return {}

    def as_json(self) -> dict[str, Any]:
        """Everything in it: what every answer has, in the words of the tables' columns, and ``content``."""
        return {
            "verdict": self.verdict,
            "line": self.line,
            **self.content(),
            "findings": [asdict(finding) for finding in self.by_level()],
            "figures": [asdict(figure) for figure in self.kept_figures()],
            "seconds": round(self.seconds, 1),
        }

    def kept_figures(self) -> list[AnswerFigure]:
        """Of each name and item one; what is not a number is none."""
        known = {(one.figure, one.item): one for one in self.answer_figures() if isfinite(one.value)}
        return list(known.values())

    def causes(self) -> Sequence[str]:
        """What is wrong, beyond the names of findings: what somebody accepted of one does not stand for another."""
        return ()

    def accept(self, until: datetime) -> Report:
        """The same, of which somebody accepted all that was known then."""
        return self

    def remember(self) -> None:
        """Keep what the next answer to the same question is told against; called once this one is kept or shown.

        Raises:
            StorageError: if it cannot be kept.
        """
        return

    @property
    def level(self) -> Level:
        return self.levels[self.verdict]

    @property
    def exit_code(self) -> int:
        return self.exits[self.level]

    @property
    def cause(self) -> Finding | None:
        """The finding that the verdict's line tells; None if it tells none."""
        return self.by_level()[0] if self.level == "problem" else None

    def by_level(self) -> list[Finding]:
        """The findings, worst first."""
        return worst_first(self.findings)

    def told(self) -> list[Finding]:
        """The findings of the page: the verdict first, in place of its cause."""
        cause = self.cause
        meaning, advice = (cause.meaning, cause.advice) if cause is not None else ("", "")
        return [
            Finding(self.level, self.line, meaning, advice, name="verdict"),
            *(finding for finding in self.by_level() if finding is not cause),
        ]
