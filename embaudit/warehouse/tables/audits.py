"""What audits found in words, watched revisions, comparisons of audits, and gates."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from embaudit.declared.figure import Direction
from embaudit.declared.rule import Level
from embaudit.declared.table import TOLERANCE, Json, Row, Series, column, rule
from embaudit.declared.table import rule as row_rule

AuditVerdict = Literal["do not serve", "could not be checked", "look first", "nothing found wrong", "not checked"]


class FindingRow(Row, table="finding", key=("measure", "name")):
    """What a measure's figures mean for whoever deploys the checkpoint; docs/findings.md lists every rule."""

    measure: str = column("Measure that found it; audit: about the audit as a whole.")
    name: str = column("The rule behind it; stable across audits.")
    place: int = column("Order within the audit, from 0.", ge=0)
    level: Level = column("problem, look, ok; not measured: not enough evidence to say.")
    sentence: str = column("What was found, with its number and interval.")
    meaning: str | None = column("What it means for texts in production.")
    advice: str | None = column("What to do next.")
    value: float | None = column("The number in the sentence.")
    low: float | None = column("Lower end of its 95 % interval.")
    high: float | None = column("Upper end of its 95 % interval.", at_least="low")

    @rule
    def values_lie_in_intervals(value: Series, low: Series, high: Series) -> Series:
        """An interval has two ends, with the value between them."""
        has_one = low.notna()
        return (has_one == high.notna()) & (~has_one | value.notna() & ~((value < low) | (value > high)))


class VerdictRow(Row, table="verdict", key=("kind",)):
    """Whether the checkpoint may be served; one row per audit."""

    kind: AuditVerdict = column(
        "do not serve: integrity or quality found a problem; look first: something was found; not checked: integrity "
        "and quality were not measured; could not be checked: a part of them failed."
    )
    line: str = column("The verdict in one line.")
    cause: str | None = column("The rule that most likely explains the others, as in finding; null without a problem.")
    looks: int = column("Number of findings to look at first.", ge=0)
    unmeasured: int = column("Number of findings that say what was not measured.", ge=0)

    @rule
    def only_problems_have_a_cause(kind: Series, cause: Series) -> Series:
        """A cause is named where the checkpoint must not be served, and only there."""
        return (kind == "do not serve") == cause.notna()


Status = Literal["audited", "unchanged", "known", "running", "failed", "gone", "removed", "unreachable"]
# Revisions with these need no further attention; all others are tried again next time.
DONE: tuple[Status, ...] = ("audited", "unchanged", "known")
# Of an index, as ``embaudit switch`` says it; and where only passports are compared.
IndexVerdict = Literal[
    "same index", "new threshold only", "bridge holds", "rebuild", "could not be told", "other vectors"
]


class AuditBackboneRow(Row, table="audit_backbone", key=("audit_id", "backbone_audit_id"), scope="content"):
    """The backbone's audit that an audit is compared with; the view backbone_delta has the differences."""

    audit_id: str = column("Audit of the fine-tuned checkpoint.")
    backbone_audit_id: str = column("Audit of its backbone.")


class WatchedRevisionRow(Row, table="watched_revision", key=("source", "revision", "parameters_key"), scope="content"):
    """Revisions that a watch has seen, and their outcomes."""

    source: str = column("owner/name, owner/name@branch, or a path, as watched.")
    revision: str = column("Commit; for a folder, its checkpoint_id; '' if unknown.")
    parameters_key: str = column("Key of the audit's settings; different settings start a new baseline.")
    parameters: Json = column("Parameters of the flow audit.")
    checkpoint_id: str | None = column("Id of its content; null: it could not be read.")
    status: Status = column(
        "Outcome; gone: its folder is not there; removed: nor is it on the list any more, so nothing is open."
    )
    reason: str | None = column("Why it failed or could not be reached.")
    audit_id: str | None = column("Audit of this content under these settings.")
    first_seen: datetime = column("When a watch first saw it.")
    last_seen: datetime = column("When a watch last saw it.")

    @row_rule
    def done_rows_have_audit(status: Series, audit_id: Series, checkpoint_id: Series) -> Series:
        """A revision that is done has an audit, and no other has one."""
        return status.isin(DONE) == (audit_id.notna() & checkpoint_id.notna())

    @row_rule
    def times_are_in_order(first_seen: Series, last_seen: Series) -> Series:
        """last_seen is not before first_seen."""
        return first_seen <= last_seen


class WatchRunRow(Row, table="watch_run", key=("run_key",), scope="content"):
    """Each night of a watch: when it ran, how it ended, and what it found."""

    run_key: str = column("Key of the list and the time.")
    watch_list: str = column("The watch list.")
    started: datetime = column("When it began.")
    seconds: float = column("How long it took.", ge=0)
    state: str = column("Name of its run: Completed, or that of the gravest problem.")
    exit_code: int = column(
        "Of the command: 0, 1 with a verdict, 2 if something could not be looked at.", within=(0, 2)
    )
    message: str = column("What it did and found, in one line.")
    sources: int = column("Checkpoints that it looked at.", ge=0)
    audited: int = column("Of these, audited.", ge=0)
    answers: int | None = column("Questions that it asked; null: of a night of an older embaudit.", ge=0)
    problem_count: int = column("Problems that nobody has accepted.", ge=0)
    problems: Json = column("Each of them: the run's name for it, of what, and a sentence.")

    @row_rule
    def a_run_without_problems_is_completed(state: Series, problem_count: Series) -> Series:
        """A run has the name of its gravest problem, and is Completed without any; a gate may only mark it."""
        return (state == "Completed") <= (problem_count == 0)


class IndexChangeRow(Row, table="index_change", key=("audit_id", "predecessor_audit_id"), scope="content"):
    """What becomes of an index that a watched source's earlier revision built."""

    audit_id: str = column("The later revision's audit.")
    predecessor_audit_id: str = column("The earlier revision's audit.")
    compared: Literal["texts", "canaries"] = column(
        "Compared on the embedded sample's texts by both checkpoints, or on the texts of both audits' passports."
    )
    verdict: IndexVerdict = column(
        "Outcome; of passports only the same index, other vectors or, with another dimension, rebuild."
    )
    line: str = column("The verdict in a sentence.")
    median_cosine: float | None = column(
        "Median cosine of a text's two vectors; null with other dimensions.", ge=-1, le=1
    )

    @row_rule
    def audits_are_two(audit_id: Series, predecessor_audit_id: Series) -> Series:
        """An audit is not its own predecessor."""
        return audit_id != predecessor_audit_id


class _FigureKey(Row):
    """Identifies a figure, as in the view summary_figure."""

    summary: str = column("Table or view of the figure.")
    item: str = column("Row within it.")
    measure: str = column("Column within it.")


class RegressionRow(
    _FigureKey,
    table="regression",
    key=("audit_id", "predecessor_audit_id", "summary", "item", "measure"),
    scope="content",
):
    """How a figure changed from one revision to the next, and whether it got worse."""

    audit_id: str = column("The later audit.")
    predecessor_audit_id: str = column("The earlier audit.")
    value: float = column("The figure in the later audit.")
    predecessor_value: float = column("The figure in the earlier audit.")
    delta: float = column("value − predecessor_value.")
    relative_change: float | None = column("delta / |predecessor_value|; null where that is 0.")
    worse_when: Direction | None = column("The direction that is worse; null: neither.")
    tolerance: float | None = column(
        "Change that noise, and by_precision, can explain; null without a direction.", ge=0
    )
    by_precision: float | None = column(
        "How far the precisions of the two may move it; 0 if they are the same, null in older comparisons.", ge=0
    )
    is_worse: bool = column("Whether it got worse by more than the tolerance.")

    @row_rule
    def delta_is_difference(value: Series, predecessor_value: Series, delta: Series) -> Series:
        """delta = value − predecessor_value."""
        return (delta - (value - predecessor_value)).abs() <= TOLERANCE

    @row_rule
    def worse_is_beyond_tolerance(delta: Series, tolerance: Series, worse_when: Series, is_worse: Series) -> Series:
        """Worse means a change by more than the tolerance in the worse direction."""
        change, noise = delta.astype(float), tolerance.astype(float)
        is_higher = (worse_when == "higher") & (change > noise)
        return is_worse == (is_higher | ((worse_when == "lower") & (-change > noise)))

    @row_rule
    def audits_differ(audit_id: Series, predecessor_audit_id: Series) -> Series:
        """An audit is not its own predecessor."""
        return audit_id != predecessor_audit_id


class GateResultRow(
    _FigureKey,
    table="gate_result",
    key=("audit_id", "policy_hash", "baseline_audit_id", "rule", "summary", "item", "measure"),
    scope="content",
):
    """Results of evaluating a gate's policy on an audit, one row per rule and figure."""

    audit_id: str = column("The audit.")
    policy: str = column("Name of the policy.")
    policy_hash: str = column("16-hex-digit hash of the policy's content.")
    baseline_audit_id: str = column("Audit that it was compared with; '' if none.")
    rule: str = column("Name of the rule.")
    kind: Literal["limit", "change", "severity", "require"] = column("Kind of the rule.")
    value: float | None = column("The figure; null if missing.")
    lowest: float | None = column("The lowest value that the rule allows, in the figure's units.")
    highest: float | None = column("The highest value that the rule allows.", at_least="lowest")
    baseline_value: float | None = column("The figure in the baseline.")
    change: float | None = column("Change from the baseline, absolute or relative; observed says which.")
    observed: str = column("Anything that is not a number: why a figure is missing, which tokens, the profile.")
    outcome: Literal["passed", "tripped", "missing"] = column("Outcome.")
    trips: bool = column("Whether it trips the gate; a missing figure may only warn.")
    reason: str = column("Why the policy has the rule.")
    precision: str | None = column("What its precision means for the rule, if it is not float32's throughout.")
    evaluated: datetime = column("When the policy was evaluated.")

    @row_rule
    def outcome_agrees_with_limits(value: Series, lowest: Series, highest: Series, outcome: Series) -> Series:
        """missing without a value, or without a baseline to derive a limit from; tripped beyond a limit."""
        import numpy as np

        value, lowest, highest = (one.astype(float) for one in (value, lowest, highest))
        # Rounding in the subtraction must not push a change past its limit.
        slack = TOLERANCE**2 * np.fmax(value.abs(), np.fmax(lowest.abs().fillna(0), highest.abs().fillna(0)))
        is_missing = value.isna() | (lowest.isna() & highest.isna())
        is_beyond = (value < lowest - slack) | (value > highest + slack)
        return outcome == np.select([is_missing, is_beyond], ["missing", "tripped"], "passed")

    @row_rule
    def tripping_rows_have_failed(outcome: Series, trips: Series) -> Series:
        """Rows trip if and only if they did not pass, except that a missing figure may be tolerated."""
        return (trips == (outcome != "passed")) | (outcome == "missing")


ROWS: tuple[type[Row], ...] = (
    FindingRow,
    VerdictRow,
    AuditBackboneRow,
    WatchedRevisionRow,
    WatchRunRow,
    IndexChangeRow,
    RegressionRow,
    GateResultRow,
)
