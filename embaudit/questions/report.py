"""What comes of a comparison, whichever it is: a verdict, the findings behind it, a page, an exit code."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from embaudit.declared.document import Page
from embaudit.declared.rule import Finding, Level, Rule, worst_first
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
    def as_json(self) -> dict[str, Any]:
        """Everything in it, in the types of JSON."""

    def answer_figures(self) -> Iterator[AnswerFigure]:
        """The figures that are kept of it, beside those of its findings."""
        yield from ()

    def case_rows(self) -> Iterator[dict[str, Any]]:
        """Of searches that were walked, what is kept of each (``WhyCaseRow``)."""
        yield from ()

    def wrong_rows(self) -> Iterator[dict[str, Any]]:
        """Of rows of a store that are wrong, what is kept of each (``WrongRow``)."""
        yield from ()

    def crowding_rows(self) -> Iterator[dict[str, Any]]:
        """Of rows of a store that come up for many unrelated queries, what is kept of each (``CrowdingRow``)."""
        yield from ()

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
