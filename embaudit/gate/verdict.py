"""What a gate says: one finding a rule and figure, and whether any of them trips."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from embaudit.errors import CheckFailed

Kind = Literal["limit", "change", "severity", "require"]
Outcome = Literal["passed", "tripped", "missing"]


class Finding(BaseModel):
    """One rule on one figure.

    ``lowest`` and ``highest`` are what the rule allows, in the figure's own units: those of a change are already added
    to the baseline's figure.
    """

    model_config = ConfigDict(frozen=True)

    rule: str
    kind: Kind
    summary: str
    item: str
    measure: str
    value: float | None = None
    lowest: float | None = None
    highest: float | None = None
    baseline_value: float | None = None
    change: float | None = None
    # What is no number: the profile, the tokens that are too bad, why a figure is missing.
    observed: str = ""
    outcome: Outcome
    # A missing figure may be let off with a warning.
    trips: bool
    reason: str = ""

    @property
    def figure(self) -> str:
        return f"{self.summary}, {self.item}" if self.is_statement else f"{self.summary}.{self.measure}, {self.item}"

    @property
    def shown_value(self) -> str:
        """The value, and what is no number beside it."""
        if self.is_statement:
            return self.observed or ("yes" if self.outcome == "passed" else "no")
        number = "" if self.value is None else f"{self.value:.4g}"
        change = "" if self.change is None else f"{self.change:+.4g}" if not self.observed else f"{self.change:+.1%}"
        words = "" if self.kind == "change" and self.outcome != "missing" else self.observed
        beside = ", ".join(part for part in (change, words) if part)
        return f"{number} ({beside})" if number and beside else number or beside or "missing"

    @property
    def allowed(self) -> str:
        """What the rule lets through."""
        if self.is_statement:
            return self.measure
        low = None if self.lowest is None else f"{self.lowest:.4g}"
        high = None if self.highest is None else f"{self.highest:.4g}"
        if low is not None and high is not None:
            return f"{low} to {high}"
        return f"≥ {low}" if low is not None else f"≤ {high}" if high is not None else ""

    @property
    def shown_baseline(self) -> str:
        return "" if self.baseline_value is None else f"{self.baseline_value:.4g}"

    @property
    def is_statement(self) -> bool:
        """Something that must be so, instead of a number within limits."""
        return self.kind == "require" and self.highest is None


class GateVerdict(BaseModel):
    """What a policy says of an audit."""

    model_config = ConfigDict(frozen=True)

    audit_id: str
    source: str
    policy: str
    policy_hash: str
    baseline_audit_id: str | None
    evaluated: datetime
    findings: tuple[Finding, ...]

    @property
    def tripped(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.trips)

    @property
    def let_off(self) -> tuple[Finding, ...]:
        """Missing figures that the policy only warns of."""
        return tuple(finding for finding in self.findings if finding.outcome == "missing" and not finding.trips)

    @property
    def outcome(self) -> Literal["passed", "tripped"]:
        return "tripped" if self.tripped else "passed"

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        count, of = len(self.tripped), f"{len(self.findings)} finding{'' if len(self.findings) == 1 else 's'}"
        warned = f", {len(self.let_off)} missing and only warned of" if self.let_off else ""
        if count:
            return f"Gate tripped: {count} of {of} of the policy {self.policy}{warned}."
        return f"Gate passed: {of} of the policy {self.policy}{warned}."


class GateTripped(CheckFailed):
    """A policy does not let an audit through; unlike a failed check, the audit stays published."""

    # The finished audit, where a flow raised this: the command line prints it all the same.
    audit: Any = None
    verdict: GateVerdict | None = None


def tripped_error(verdict: GateVerdict, kept: str = "") -> GateTripped:
    """The error that a tripped gate ends in."""
    names = list(dict.fromkeys(finding.rule for finding in verdict.tripped))
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    error = GateTripped(
        f"The audit {verdict.audit_id} of {verdict.source} does not keep to the policy {verdict.policy}: {shown}.",
        kept=kept,
        next_step="The page: embaudit report " + verdict.audit_id,
    )
    error.verdict = verdict
    return error
