"""Holds what the check says of a copy against what the copy costs."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.defects.copies import Copy
from benchmarks.defects.harm import Harm

if TYPE_CHECKING:
    from embaudit.declared.rule import Finding

BROKEN, LOOK = "do not serve", "look first"
# Names of tensors stand in many sentences, and name no cause.
TENSOR = re.compile(r"\b\w+(?:\.\w+){2,}")


@dataclass(frozen=True)
class Said:
    """What the check says of a folder.

    Attributes:
        called: the finding that it leads with: the cause, or the first to look at that the good checkpoint lacks.
    """

    verdict: str
    called: Finding | None
    seconds: float


def ask(folder: Path, usual: frozenset[str] = frozenset()) -> Said:
    """Check a folder.

    Args:
        usual: rules by which the good checkpoint is to be looked at, too; they find nothing.
    """
    from embaudit.questions.check.check import check

    started = time.perf_counter()
    report = check(str(folder))
    seconds = time.perf_counter() - started
    looks = [finding for finding in report.findings if finding.level == "look" and finding.name not in usual]
    called = report.cause or (looks[0] if looks else None)
    if called is not None:
        called = replace(called, sentence=called.sentence.replace(str(folder), "the folder"))
    return Said(report.verdict, called, seconds)


def looks_of(folder: Path) -> frozenset[str]:
    """The rules by which a folder is to be looked at."""
    from embaudit.questions.check.check import check

    return frozenset(finding.name for finding in check(str(folder)).findings if finding.level == "look")


@dataclass(frozen=True)
class Outcome:
    """One copy: its harm, and what was said of it; None where it was not checked."""

    copy: Copy
    harm: Harm
    said: Said | None

    @property
    def is_broken(self) -> bool:
        """The check says not to serve it."""
        return self.said is not None and self.said.verdict == BROKEN

    @property
    def is_found(self) -> bool:
        """The check says so, or points to something that the good checkpoint does not have."""
        return self.said is not None and (self.is_broken or self.said.called is not None)

    @property
    def is_named(self) -> bool:
        if self.said is None or self.said.called is None:
            return False
        called = self.said.called
        words = f"{called.name} {TENSOR.sub('', called.sentence)}"
        return re.search(self.copy.cause, words, re.IGNORECASE) is not None

    @property
    def judged(self) -> str:
        """Whether the check is right, in a word."""
        if self.said is None:
            return ""
        if self.copy.is_harmless:
            return "false alarm" if self.is_broken else "right"
        if not self.is_found:
            return "missed" if self.harm.counts else "no harm, not found"
        return "right" if self.is_named else "found, misnamed"
