"""A rule: what decides the level of a finding, and why there. ``docs/findings.md`` is made from the rules.

A finding: what a measure's figures mean for whoever deploys the checkpoint, and what to do about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from math import isfinite, isnan, nan
from types import ModuleType
from typing import Any, ClassVar, Literal, get_args

from embaudit.declared.figure import Direction
from embaudit.words.errors import EmbauditError, is_of_interrupt, is_of_machine, one_line
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
        hint: str = "",
        **parts: str,
    ) -> Finding:
        """A finding by this rule. What is ``ok`` needs neither meaning nor advice: they are left out.

        Args:
            note, hint: a meaning and an advice at any level.
            parts: what stands in the name's braces.
        """
        if level == "ok":
            meaning = advice = ""
        return Finding(level, sentence, note or meaning, hint or advice, self.name.format(**parts), value, low, high)

    def named(self, name: str) -> Rule:
        """The same rule for findings of another name: a row of the page has both."""
        return replace(self, name=name)

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
    text = f"{value:,.0f}".replace(",", " ") if 1_000 <= abs(value) < 1e6 else f"{value:g}"
    return re.sub(r"^(-?)0\.", r"\1.", text).replace("e-0", "e-").replace("e+", "e").replace("-.", "−.")


def percent(share: float) -> str:
    return f"{number(100 * share)} %"


def rules_in(*modules: ModuleType) -> Iterator[Rule]:
    """The rules that modules declare or use, in their order, each once."""
    yield from dict.fromkeys(one for module in modules for one in vars(module).values() if isinstance(one, Rule))


def in_brief(rows: Iterable[Mapping[str, Any]], fine: Rule, of: str, whole: Collection[Rule] = ()) -> Iterator[Finding]:
    """Findings of many checks for an audit's page: one per rule that needs a look, then what is right in one sentence.

    Args:
        rows: ``as_rows``.
        fine, of: the rule of that sentence, and what was checked.
        whole: rules whose finding is shown even if nothing is wrong.
    """
    shown = {rule.name for rule in whole}
    by_rule: dict[str, list[Finding]] = {}
    for finding in (Finding(**row) for row in rows):
        by_rule.setdefault(finding.name, []).append(finding)
    right = 0
    for name, found in by_rule.items():
        level = min((one.level for one in found), key=LEVELS.index)
        if level == "ok" and name not in shown:
            right += len(found)
            continue
        # The table of findings has a row per rule; what it found elsewhere is a sentence more.
        first, *others = (one for one in found if one.level == level)
        yield replace(first, sentence=" ".join(one.sentence for one in (first, *others)))
    if right:
        yield fine.finding("ok", f"{right} checks of {of} found nothing wrong.", value=float(right))


# The end of the names of findings that say so: what they stand for never counts as passed.
COULD_NOT_RUN = "_could_not_run"
FAILED = Rule(
    f"{{part}}{COULD_NOT_RUN}",
    reason="`not measured`: a check failed. What it would have found is unknown, and never counts as passed",
)


def guarded(part: str, check: Callable[[], list[Finding]]) -> list[Finding]:
    """A check's findings, or one that says that it did not run. What fails in the machine is raised, and Ctrl-C."""
    try:
        return check()
    except Exception as error:  # a model of a stranger may raise anything
        if is_of_machine(error):
            raise
        if is_of_interrupt(error):
            raise KeyboardInterrupt from error
        reason = error.happened if isinstance(error, EmbauditError) else f"{type(error).__name__}: {one_line(error)}"
        return [
            FAILED.finding(
                "not measured",
                f"{part.replace('_', ' ').capitalize()} could not be checked: {reason}",
                "What this part would have found is unknown.",
                error.next_step if isinstance(error, EmbauditError) else "Report it, with the name of the checkpoint.",
                part=part,
            )
        ]
