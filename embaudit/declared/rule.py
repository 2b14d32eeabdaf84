"""A rule: what decides the level of a finding, and why there. ``docs/findings.md`` is made from the rules."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import isnan, nan
from types import ModuleType
from typing import ClassVar

from embaudit.declared.figure import Direction
from embaudit.declared.finding import Finding, Level


@dataclass(frozen=True)
class Rule:
    """What decides the level of the findings of one name.

    In ``reason`` and in the words of a condition, ``{look}`` and ``{problem}`` are the limits, as the page shows them.

    Attributes:
        name: of its findings; stable across audits. Where there is one for each task or role, ``{task}`` stands for it.
        source: where its figure comes from.
        look, problem: from which value on the figure has that level; nan if none has.
        look_if, problem_if: the condition, where it is more than the limit.
        reason: why the limits are where they are.
        worse: the direction in which the figure gets worse.
        is_share: whether the page shows the limits in percent.
    """

    kind: ClassVar[str] = "rule"
    name: str
    source: str = ""
    look: float = nan
    problem: float = nan
    look_if: str = ""
    problem_if: str = ""
    reason: str = ""
    worse: Direction = "higher"
    is_share: bool = False

    def level(self, value: float) -> Level:
        """Of a figure, by the limits alone."""
        sign = 1 if self.worse == "higher" else -1
        if sign * value >= sign * self.problem:
            return "problem"
        return "look" if sign * value >= sign * self.look else "ok"

    def finding(
        self,
        level: Level,
        sentence: str,
        meaning: str = "",
        advice: str = "",
        value: float | None = None,
        low: float | None = None,
        high: float | None = None,
        *,
        note: str = "",
        **parts: str,
    ) -> Finding:
        """A finding by this rule. What is ``ok`` needs neither meaning nor advice: they are left out.

        Args:
            note: a meaning at any level.
            parts: what stands in the name's braces.
        """
        if level == "ok":
            meaning = advice = ""
        return Finding(level, sentence, note or meaning, advice, self.name.format(**parts), value, low, high)

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """Source, conditions and reason, as the page shows them."""
        limits = {"look": self._shown(self.look), "problem": self._shown(self.problem)}
        conditions = (
            words or ("" if isnan(limit) else f"{'up to' if self._falls_to(limit) else 'from'} {self._shown(limit)}")
            for words, limit in ((self.look_if, self.look), (self.problem_if, self.problem))
        )
        look, problem, reason = (words.format(**limits) for words in (*conditions, self.reason))
        return self.source, look, problem, reason

    def _falls_to(self, limit: float) -> bool:
        """Rather than below 0, where a loss begins."""
        return self.worse == "lower" and limit > 0

    def _shown(self, limit: float) -> str:
        return percent(limit) if self.is_share else number(limit)


def number(value: float) -> str:
    """As the pages write it: .05, −.02, 1e-5, 10 000."""
    text = f"{value:,.0f}".replace(",", " ") if abs(value) >= 1_000 else f"{value:.12g}"
    return re.sub(r"^(-?)0\.", r"\1.", text).replace("e-0", "e-").replace("-.", "−.")


def percent(share: float) -> str:
    return f"{number(100 * share)} %"


def rules_in(*modules: ModuleType) -> Iterator[Rule]:
    """The rules that modules declare, in their order, each once."""
    yield from dict.fromkeys(one for module in modules for one in vars(module).values() if isinstance(one, Rule))
