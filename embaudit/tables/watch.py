"""Watched revisions, comparisons of audits, and gates."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from embaudit.figure import Direction
from embaudit.table import TOLERANCE, Json, Row, Series, column
from embaudit.table import rule as row_rule

Status = Literal["audited", "unchanged", "known", "running", "failed", "unreachable"]
# A revision that needs no further look; everything else is tried again next time.
DONE: tuple[Status, ...] = ("audited", "unchanged", "known")


class AuditBackboneRow(Row, table="audit_backbone", key=("audit_id", "backbone_audit_id"), scope="content"):
    """Which audit of a backbone an audit is compared with; the differences are the view backbone_delta."""

    audit_id: str = column("Audit of the fine-tuned checkpoint.")
    backbone_audit_id: str = column("Audit of its backbone.")


class WatchedRevisionRow(Row, table="watched_revision", key=("source", "revision", "parameters_key"), scope="content"):
    """Which revisions a watch has seen, and what became of them."""

    source: str = column("owner/name, owner/name@branch, or a path, as watched.")
    revision: str = column("Commit; of a folder its checkpoint_id; '' where it could not be told.")
    parameters_key: str = column("Of the audit's settings: other settings make a new baseline.")
    parameters: Json = column("Parameters of the flow audit.")
    checkpoint_id: str | None = column("Its content; null: it could not be read.")
    status: Status = column("What became of it.")
    reason: str | None = column("Why it failed or could not be reached.")
    audit_id: str | None = column("Audit of this content under these settings.")
    first_seen: datetime = column("When a watch saw it first.")
    last_seen: datetime = column("When a watch saw it last.")

    @row_rule
    def done_rows_have_audit(status: Series, audit_id: Series, checkpoint_id: Series) -> Series:
        """A revision that needs no further look has an audit, and no other has one."""
        return status.isin(DONE) == (audit_id.notna() & checkpoint_id.notna())

    @row_rule
    def times_are_in_order(first_seen: Series, last_seen: Series) -> Series:
        """It was not seen last before it was seen first."""
        return first_seen <= last_seen


class _FigureOf(Row):
    """Names of a figure, as in the view summary_figure."""

    summary: str = column("Table or view that the figure is from.")
    item: str = column("Which of its rows.")
    measure: str = column("Which of its columns.")


class RegressionRow(
    _FigureOf,
    table="regression",
    key=("audit_id", "predecessor_audit_id", "summary", "item", "measure"),
    scope="content",
):
    """How a figure changed from one revision to the next, and whether for the worse."""

    audit_id: str = column("The later audit.")
    predecessor_audit_id: str = column("The earlier audit.")
    value: float = column("The figure in the later audit.")
    predecessor_value: float = column("The figure in the earlier audit.")
    delta: float = column("value − predecessor_value.")
    relative_change: float | None = column("delta / |predecessor_value|; null where that is 0.")
    worse_when: Direction | None = column("The direction that is worse; null: neither.")
    tolerance: float | None = column("What noise explains; null without a direction.", ge=0)
    is_worse: bool = column("Whether it changed for the worse by more than the tolerance.")

    @row_rule
    def delta_is_difference(value: Series, predecessor_value: Series, delta: Series) -> Series:
        """The change is the difference of the two values."""
        return (delta - (value - predecessor_value)).abs() <= TOLERANCE

    @row_rule
    def worse_is_beyond_tolerance(delta: Series, tolerance: Series, worse_when: Series, is_worse: Series) -> Series:
        """Worse is a change beyond the tolerance in the direction that is worse."""
        change, noise = delta.astype(float), tolerance.astype(float)
        is_higher = (worse_when == "higher") & (change > noise)
        return is_worse == (is_higher | ((worse_when == "lower") & (-change > noise)))

    @row_rule
    def audits_differ(audit_id: Series, predecessor_audit_id: Series) -> Series:
        """An audit is not its own predecessor."""
        return audit_id != predecessor_audit_id


class GateResultRow(
    _FigureOf,
    table="gate_result",
    key=("audit_id", "policy_hash", "baseline_audit_id", "rule", "summary", "item", "measure"),
    scope="content",
):
    """What a gate's policy found in an audit, one row per rule and figure."""

    audit_id: str = column("The audit.")
    policy: str = column("Name of the policy.")
    policy_hash: str = column("16 hex digits over what the policy says.")
    baseline_audit_id: str = column("Audit that it was compared with; '' where there is none.")
    rule: str = column("Name of the rule.")
    kind: Literal["limit", "change", "severity", "require"] = column("Kind of the rule.")
    value: float | None = column("The figure; null where it is missing.")
    lowest: float | None = column("The lowest value that the rule allows, in the figure's units.")
    highest: float | None = column("The highest value that the rule allows.", at_least="lowest")
    baseline_value: float | None = column("The figure in the baseline.")
    change: float | None = column("From the baseline, in the figure's units or relative; observed says which.")
    observed: str = column("What is no number: why a figure is missing, which tokens, the profile.")
    outcome: Literal["passed", "tripped", "missing"] = column("What came of it.")
    trips: bool = column("Whether it trips the gate; a missing figure may only warn.")
    reason: str = column("Why the policy has the rule.")
    evaluated: datetime = column("When the policy was evaluated.")

    @row_rule
    def outcome_agrees_with_limits(value: Series, lowest: Series, highest: Series, outcome: Series) -> Series:
        """Missing where there is no value, or no baseline to make a limit of; tripped beyond a limit."""
        import numpy as np

        value, lowest, highest = (one.astype(float) for one in (value, lowest, highest))
        # A change may be beyond its limit by the rounding of its subtraction.
        slack = TOLERANCE**2 * np.fmax(value.abs(), np.fmax(lowest.abs().fillna(0), highest.abs().fillna(0)))
        is_missing = value.isna() | (lowest.isna() & highest.isna())
        is_beyond = (value < lowest - slack) | (value > highest + slack)
        return outcome == np.select([is_missing, is_beyond], ["missing", "tripped"], "passed")

    @row_rule
    def tripping_rows_have_failed(outcome: Series, trips: Series) -> Series:
        """What trips has failed, and what has failed trips, unless it is a missing figure that was let off."""
        return (trips == (outcome != "passed")) | (outcome == "missing")


ROWS: tuple[type[Row], ...] = (
    AuditBackboneRow,
    WatchedRevisionRow,
    RegressionRow,
    GateResultRow,
)
