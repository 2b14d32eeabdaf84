"""A finding: what a measure's figures mean for someone serving the checkpoint, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypedDict, get_args

# ``problem``: do not serve it without investigating. ``look``: true of many checkpoints in use, but worth knowing.
# ``not measured``: too little evidence to say.
Level = Literal["problem", "look", "not measured", "ok"]
LEVELS: tuple[Level, ...] = get_args(Level)
# Most findings per measure.
MAX_FINDINGS = 3
# Gives the rows of an audit's table by its name; none if there is no such table.
Rows = Callable[[str], list[dict[str, Any]]]


@dataclass(frozen=True)
class Finding:
    """What the figures mean, in plain words; everything but ``level`` and ``sentence`` may be empty.

    Attributes:
        sentence: what was found, with its number and interval.
        meaning: what that means for the texts of someone serving the checkpoint.
        advice: what to do next, a command if possible.
        name: the rule that produced it, the same in every audit.
        value, low, high: the number in the sentence, with its 95 % interval if it has one.
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


class Words(TypedDict, total=False):
    meaning: str
    advice: str


def unless_ok(level: Level, meaning: str, advice: str = "") -> Words:
    """Meaning and advice of a finding, both empty if it is ok."""
    return {} if level == "ok" else {"meaning": meaning, "advice": advice}


def level_from(value: float, look: float, problem: float = float("inf")) -> Level:
    """The level of a value, where higher is worse."""
    return "problem" if value >= problem else "look" if value >= look else "ok"


def interval(low: float | None, high: float | None, form: str = ".2f") -> str:
    """`` [0.41, 0.45]``; empty if there is no interval."""
    return "" if low is None or high is None else f" [{low:{form}}, {high:{form}}]"
