"""Policies as typed objects; ``docs/gate.md`` explains each key with an example.

Parsing is strict (an unknown key, a number as text or a limit that is not finite is an error), because a misread rule
would not be enforced.

Reads policy files.

The figures that rules can refer to: those of the view ``summary_figure``, and of answers, by their question.

Those of audits come from the declarations, so that a mistyped name is reported before a long audit and not after it.
Which figures an answer has depends on what was asked, so the gate says which ones it has where one is missing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from embaudit.measures import MeasureName
from embaudit.questions.names import ASKS
from embaudit.system.installed import content_key
from embaudit.system.small_files import read_toml
from embaudit.warehouse.named import PREVIOUS
from embaudit.warehouse.tables import SUMMARIES
from embaudit.words.errors import UsageError, hint

FIGURES = {summary.name: tuple(one.name for one in summary.figures) for summary in SUMMARIES.values()}


def unknown_figure(summary: str, measure: str) -> str:
    """What is wrong with a figure's name, with the closest ones; empty if the figure exists."""
    if summary in ASKS:
        return ""
    if summary not in FIGURES:
        return f"unknown summary {summary!r}{hint(summary, [*FIGURES, *ASKS])}"
    if measure not in FIGURES[summary]:
        elsewhere = [name for name, measures in FIGURES.items() if measure in measures]
        where = f"; {measure} is a figure of {' and '.join(elsewhere)}" if elsewhere else ""
        return f"{summary} has no figure {measure!r}{where or hint(measure, FIGURES[summary])}"
    return ""


Missing = Literal["trip", "warn"]
# Worst first; each includes those before it.
SEVERITIES = ("strong", "moderate", "weak")


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class PolicyRule(_Part):
    """Base of all rules."""

    name: str = Field(default="", description="name shown in results; by default made from the figure")
    reason: str = Field(default="", description="why the rule exists, shown if it trips")
    missing: Missing = Field(default="trip", description="what to do if the figure is missing or null")


class FigureRule(PolicyRule):
    """A rule about figures in the view ``summary_figure``, or of answers to the question ``summary``."""

    summary: str
    item: str = Field(default="*", description="a corpus, protocol or layer; * and ? are wildcards")
    measure: str

    @model_validator(mode="after")
    def _figure_exists(self) -> FigureRule:
        if complaint := unknown_figure(self.summary, self.measure):
            raise ValueError(complaint)
        return self

    @property
    def figure(self) -> str:
        return f"{self.summary}.{self.measure}" + ("" if self.item == "*" else f" of {self.item}")


class Limit(FigureRule):
    """An absolute limit on a figure; the limit itself is allowed."""

    max: float | None = None
    min: float | None = None

    @model_validator(mode="after")
    def _has_a_limit(self) -> Limit:
        if self.max is None and self.min is None:
            raise ValueError("a limit needs max or min")
        if self.max is not None and self.min is not None and self.max < self.min:
            raise ValueError(f"max {self.max:g} is below min {self.min:g}: nothing would pass")
        return self

    @property
    def title(self) -> str:
        return self.name or f"limit on {self.figure}"


class Change(FigureRule):
    """How far a figure may move from the baseline; the bound itself is allowed."""

    max_increase: float | None = Field(default=None, ge=0)
    max_decrease: float | None = Field(default=None, ge=0)
    relative: bool = Field(default=False, description="bounds are shares of the baseline's figure, not in its units")

    @model_validator(mode="after")
    def _has_a_bound(self) -> Change:
        if self.max_increase is None and self.max_decrease is None:
            raise ValueError("a change needs max_increase or max_decrease")
        return self

    @property
    def title(self) -> str:
        return self.name or f"change of {self.figure}"


class Severity(PolicyRule):
    """How many validated tokens may have a severity or worse."""

    at_least: Literal["strong", "moderate", "weak"]
    most: int = Field(ge=0)

    @property
    def title(self) -> str:
        return self.name or f"tokens of severity {self.at_least} or worse"


class Requirements(_Part):
    """What is required of the audit itself."""

    sound: bool = Field(
        default=True, description="trip on the verdict 'do not serve'; what was not checked is not judged by this"
    )
    measures: list[MeasureName] = []
    profiles: list[str] = Field(default=[], description="the audit's profile must be one of these")
    basis: Literal["screened", "validated"] | None = Field(
        default=None, description="of the sticky verdicts; validated is stronger and satisfies both"
    )
    real_corpora: bool = Field(default=False, description="no corpus may be the embedded sample")
    most_failed_warnings: int | None = Field(default=None, ge=0, description="failed non-blocking checks to allow")
    no_finding: Literal["problem", "look"] | None = Field(
        default=None, description="no finding may have this level; look forbids problem too"
    )

    @property
    def is_empty(self) -> bool:
        return self == Requirements()


class Policy(_Part):
    """A policy to check audits against."""

    name: str = Field(default="policy", min_length=1)
    description: str = ""
    baseline: str = Field(
        default=PREVIOUS,
        min_length=1,
        description="audit to measure changes against: previous (same source and question), or an audit's id",
    )
    no_baseline: Missing = Field(default="trip", description="what change rules do without a baseline")
    require: Requirements = Requirements()
    limit: list[Limit] = []
    change: list[Change] = []
    severity: list[Severity] = []

    @model_validator(mode="after")
    def _rule_names_are_unique(self) -> Policy:
        titles = [rule.title for rule in self.rules]
        repeated = next((title for title in titles if titles.count(title) > 1), None)
        if repeated is not None:
            raise ValueError(f"two rules are named {repeated!r}: rename one of them")
        if not titles and self.require.is_empty:
            raise ValueError("it has no rules, so every audit would pass")
        if self.is_of_answers and self.is_of_audits:
            raise ValueError("it has rules about audits and about answers: write a policy of each")
        return self

    @property
    def is_of_answers(self) -> bool:
        return any(rule.summary in ASKS for rule in (*self.limit, *self.change))

    @property
    def is_of_audits(self) -> bool:
        of_audits = Requirements(sound=self.require.sound, no_finding=self.require.no_finding)
        figures = any(rule.summary not in ASKS for rule in (*self.limit, *self.change))
        return figures or bool(self.severity) or self.require != of_audits

    @property
    def rules(self) -> list[Limit | Change | Severity]:
        return [*self.limit, *self.change, *self.severity]

    @property
    def hash(self) -> str:
        """16 hex digits of the policy's content, ignoring comments and layout."""
        content: dict[str, Any] = self.model_dump(mode="json")
        return content_key(**content)


def load_policy(path: str | Path) -> Policy:
    """Read a policy from a TOML file; its name defaults to that of the file.

    Raises:
        UsageError: if there is no such file, it is not TOML, or it is invalid.
    """
    path = Path(path).expanduser()
    return read_toml(
        path,
        Policy,
        what="policy",
        next_step="docs/gate.md has an example that explains every key.",
        defaults={"name": path.stem},
    )


def load_audit_policy(path: str | Path) -> Policy:
    """The policy of an audit that is still to run, so that what is wrong with it is said now, and not hours later.

    Raises:
        UsageError: as ``load_policy``; or if it is about answers, which no audit has.
    """
    policy = load_policy(path)
    if policy.is_of_answers:
        raise UsageError(
            f"The policy {policy.name} is about answers, and an audit has none.",
            next_step=f"Check what was asked about a store with it: embaudit gate STORE --policy {path}",
        )
    return policy
