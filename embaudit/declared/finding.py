"""A finding: what a measure's figures mean for whoever deploys the checkpoint, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any, ClassVar, Literal, get_args

from embaudit.words.masking import masked
from embaudit.words.sentences import ended, punctuated

# ``problem``: do not deploy before someone has looked at it. ``look``: common among checkpoints in production, worth
# knowing before such texts arrive. ``not measured``: not enough evidence to say.
Level = Literal["problem", "look", "not measured", "ok"]
LEVELS: tuple[Level, ...] = get_args(Level)
# Per measure.
MAX_FINDINGS = 3
# Maps a table's name to its rows in one audit; empty if the audit has no such table.
Rows = Callable[[str], list[dict[str, Any]]]


@dataclass(frozen=True)
class Finding:
    """A measure's result in plain words; everything but ``level`` and ``sentence`` may be empty.

    Attributes:
        sentence: what was found, with its number and interval.
        meaning: what that means for texts in production.
        advice: what to do next; a command if there is one.
        name: the rule behind the finding; stable across audits.
        value, low, high: the number in the sentence, with its 95 % interval if it has one; None if not finite.
    """

    kind: ClassVar[str] = "finding"
    level: Level
    sentence: str
    meaning: str = ""
    advice: str = ""
    name: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None

    def __post_init__(self) -> None:
        # A sentence may repeat what a server or library said, and goes to pages and tables.
        for name, end in (("sentence", ended), ("meaning", ended), ("advice", str)):
            object.__setattr__(self, name, punctuated(end(masked(getattr(self, name)))))
        # JSON and tables have no word for a number that is none.
        for name in ("value", "low", "high"):
            number = getattr(self, name)
            object.__setattr__(self, name, number if number is not None and isfinite(number) else None)


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Problems first; within a level, as given."""
    return sorted(findings, key=lambda finding: LEVELS.index(finding.level))


def interval(low: float | None, high: float | None, form: str = ".2f") -> str:
    """`` [0.41, 0.45]``; empty without an interval."""
    return "" if low is None or high is None else f" [{low:{form}}, {high:{form}}]"


# Columns of findings as rows that are staged, not published.
STAGED_SCHEMA = {
    **dict.fromkeys(("level", "sentence", "meaning", "advice", "name"), "string"),
    **dict.fromkeys(("value", "low", "high"), "float64"),
}


def as_rows(findings: Iterable[Finding]) -> list[dict[str, Any]]:
    """Rows of ``STAGED_SCHEMA``."""
    return [asdict(finding) for finding in findings]
