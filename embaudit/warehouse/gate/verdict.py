"""A gate's verdict: one finding per rule and figure, and whether any of them trips."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from embaudit.words.errors import ProblemFound
from embaudit.words.sentences import first_of

Kind = Literal["limit", "change", "severity", "require"]
Outcome = Literal["passed", "tripped", "missing"]


class GateFinding(BaseModel):
    """One rule on one figure.

    ``lowest`` and ``highest`` are what the rule allows, in the figure's units; for a change they include the baseline's
    figure.
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
    # Text rather than a number: the profile, the offending tokens, why a figure is missing.
    observed: str = ""
    outcome: Outcome
    # A missing figure may only warn.
    trips: bool
    reason: str = ""
    # What half precision means for the rule; None if all is in float32.
    precision: str | None = None

    @property
    def figure(self) -> str:
        name = self.summary if self.is_statement else f"{self.summary}.{self.measure}"
        return f"{name}, {self.item}" if self.item else name

    @property
    def shown_value(self) -> str:
        """The value, followed by the change and any text."""
        if self.is_statement:
            return self.observed or ("yes" if self.outcome == "passed" else "no")
        number = "" if self.value is None else f"{self.value:.4g}"
        change = "" if self.change is None else f"{self.change:+.4g}" if not self.observed else f"{self.change:+.1%}"
        words = "" if self.kind == "change" and self.outcome != "missing" else self.observed
        details = ", ".join(part for part in (change, words) if part)
        return f"{number} ({details})" if number and details else number or details or "missing"

    @property
    def allowed(self) -> str:
        """The allowed range."""
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
        """Whether this is a condition instead of a number within limits."""
        return self.kind == "require" and self.highest is None


class GateVerdict(BaseModel):
    """The result of checking an audit, a checkpoint's state, or answers against a policy.

    Attributes:
        audit_id: the audit; of a state, its newest; the newest answer.
        audits: every audit, or answer, that counts, newest first.
        is_of_answers: whether these are answers.
    """

    model_config = ConfigDict(frozen=True)

    audit_id: str
    audits: tuple[str, ...] = ()
    is_of_answers: bool = False
    source: str
    policy: str
    policy_hash: str
    baseline_audit_id: str | None
    evaluated: datetime
    findings: tuple[GateFinding, ...]

    @property
    def tripped(self) -> tuple[GateFinding, ...]:
        return tuple(finding for finding in self.findings if finding.trips)

    @property
    def warnings(self) -> tuple[GateFinding, ...]:
        """Missing figures for which the policy only warns."""
        return tuple(finding for finding in self.findings if finding.outcome == "missing" and not finding.trips)

    @property
    def outcome(self) -> Literal["passed", "tripped"]:
        return "tripped" if self.tripped else "passed"

    @property
    def headline(self) -> str:
        """The verdict in one sentence."""
        count, rules = (len({finding.rule for finding in some}) for some in (self.tripped, self.findings))
        of = f"{rules} rule{'' if rules == 1 else 's'}"
        warned = f", {len(self.warnings)} missing (warning only)" if self.warnings else ""
        if count:
            return f"Gate tripped: {count} of {of} of the policy {self.policy}{warned}."
        return f"Gate passed: {of} of the policy {self.policy}{warned}."


class GateTripped(ProblemFound):
    """An audit fails a policy; unlike after a failed check, the audit stays published."""

    state = "Gate tripped"
    verdict: GateVerdict | None = None


def tripped_error(verdict: GateVerdict, kept: str = "") -> GateTripped:
    """The error for a tripped gate."""
    names = list(dict.fromkeys(finding.rule for finding in verdict.tripped))
    error = GateTripped(
        f"The audit {verdict.audit_id} of {verdict.source} fails the policy {verdict.policy}: {first_of(names)}.",
        kept=kept,
        next_step="See the report: embaudit report " + verdict.audit_id,
    )
    error.verdict = verdict
    return error
