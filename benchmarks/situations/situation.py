"""What a situation is, and how what is said of it and of its twin is judged."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from embaudit.declared.rule import Finding
from embaudit.questions.report import Report


@dataclass(frozen=True)
class Situation:
    """One thing that goes wrong, and a healthy twin.

    Attributes:
        name: what goes wrong.
        command: the command that is asked: check, parity or verify.
        ask: the command's report, of the situation or of its twin; it may write into the folder.
        called: what a finding about it must say; a regular expression.
    """

    name: str
    command: str
    ask: Callable[[Path, bool], Report]
    called: str


@dataclass(frozen=True)
class Outcome:
    """What is said of a situation and of its twin."""

    situation: Situation
    report: Report
    twin: Report

    def _said(self, report: Report) -> list[Finding]:
        """What names the situation."""
        wrong = [finding for finding in findings(report) if finding.level != "ok"]
        return [finding for finding in wrong if re.search(self.situation.called, finding.sentence)]

    @property
    def judged(self) -> str:
        if self._said(self.report):
            return "named"
        new = levels(self.report) - levels(self.twin)
        return "found, not named" if self.report.exit_code or new & {"problem", "look"} else "missed"

    @property
    def is_false_alarm(self) -> bool:
        """Whether the twin is called broken, or by the situation's name."""
        return self.twin.exit_code != 0 or bool(self._said(self.twin))


def findings(report: Report) -> list[Finding]:
    found: list[Finding] = list(report.by_level())
    return found


def levels(report: Report) -> set[str]:
    return {finding.level for finding in findings(report)}
