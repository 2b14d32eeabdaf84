"""A finding: what a measure's figures come to for somebody who serves the checkpoint, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypedDict, get_args

# ``problem``: do not serve it before somebody has looked. ``look``: true of many checkpoints that are in use, and worth
# knowing before texts of that kind come. ``not measured``: the evidence is too thin to say.
Level = Literal["problem", "look", "not measured", "ok"]
LEVELS: tuple[Level, ...] = get_args(Level)
# A measure says at most so much.
MAX_FINDINGS = 3
# The rows of one of an audit's tables, by its name; none where the table is not there.
Rows = Callable[[str], list[dict[str, Any]]]


@dataclass(frozen=True)
class Finding:
    """What figures come to, in plain words; everything but ``level`` and ``sentence`` may be empty.

    Attributes:
        sentence: what was found, with its number and interval.
        meaning: what that means for the texts of somebody who serves the checkpoint.
        advice: what to do next; a command, where there is one.
        name: which rule found it; the same in every audit.
        value, low, high: the number of the sentence, with its 95 % interval where it has one.
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
    """Meaning and advice of a finding that is worth acting on; what is ok needs neither."""
    return {} if level == "ok" else {"meaning": meaning, "advice": advice}


def level_from(value: float, look: float, problem: float = float("inf")) -> Level:
    """The level of a value of which more is worse."""
    return "problem" if value >= problem else "look" if value >= look else "ok"


def interval(low: float | None, high: float | None, form: str = ".2f") -> str:
    """`` [0.41, 0.45]``; empty where there is none."""
    return "" if low is None or high is None else f" [{low:{form}}, {high:{form}}]"
