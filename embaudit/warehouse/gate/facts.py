"""What a gate needs to know of an audit or a state, read from the warehouse in one go; and its verdict."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

import duckdb
from pydantic import BaseModel, ConfigDict

from embaudit.declared.figure import FULL
from embaudit.warehouse.named import PREVIOUS, State, find_state
from embaudit.warehouse.tables import MEASURE_OF
from embaudit.words.errors import ProblemFound, UsageError
from embaudit.words.sentences import first_of


@dataclass(frozen=True)
class Cell:
    """One figure of one summary, with its interval and precision; null if the audit could not determine it.

    Attributes:
        question: of an answer's figure, the key of its question, if another is asked in the same words.
    """

    summary: str
    item: str
    measure: str
    value: float | None
    low: float | None = None
    high: float | None = None
    dtype: str = FULL
    question: str = ""

    @property
    def names(self) -> dict[str, Any]:
        item = f"{self.item} (question {self.question[:8]})".lstrip() if self.question else self.item
        return {"summary": self.summary, "item": item, "measure": self.measure}


@dataclass(frozen=True)
class AuditFacts:
    """What rules can refer to: of one audit, of the audits that a checkpoint's state is made of, or of answers.

    Attributes:
        audit_id, profile: of the newest audit, or answer.
        tokens: the validated candidates with their severity, worst first; None if the measure did not run.
        capped: by severity, the estimated number of tokens at least as bad, if more must exist than were validated.
    """

    audit_id: str
    source: str
    profile: str
    measures: frozenset[str]
    cells: tuple[Cell, ...]
    tokens: tuple[tuple[str, str], ...] | None
    capped: Mapping[str, float]
    bases: frozenset[str]
    failed_warnings: tuple[str, ...]
    sample_corpora: tuple[str, ...]
    # (measure and name, level), in the order of the page.
    findings: tuple[tuple[str, str], ...]
    other_profiles: frozenset[str] = frozenset()
    # (kind, line) of the newest verdict; None if no audit has one.
    verdict: tuple[str, str] | None = None
    # Of the validation of the tokens.
    validated_in: str = FULL


def find_baseline(connection: duckdb.DuckDBPyConnection, state: State, given: str) -> State | None:
    """The audits that changes are measured against; None if there is no ``previous`` one.

    Raises:
        UsageError, CheckFailed: as ``find_state``; UsageError if it is the same.
    """
    if given == PREVIOUS:
        return _previous_audit(connection, state) if state.checkpoint_id is None else _previous_state(connection, state)
    baseline = find_state(connection, given)
    if baseline.newest == state.newest:
        raise UsageError(
            f"The audit {state.newest} cannot be its own baseline.", next_step="Choose another: --baseline AUDIT"
        )
    return baseline


def _previous_audit(connection: duckdb.DuckDBPyConnection, state: State) -> State | None:
    row = connection.execute(
        "SELECT predecessor_audit_id FROM audit_predecessor WHERE audit_id = ?", [state.newest]
    ).fetchone()
    return State({str(row[0]): None}) if row else None


def _previous_state(connection: duckdb.DuckDBPyConnection, state: State) -> State | None:
    """What the previous checkpoint of the same source was asked too, by the same versions of the measures."""
    rows = connection.execute(
        "WITH previous AS ("
        "SELECT before.checkpoint_id FROM audit_named AS before JOIN audit_named AS own USING (source) "
        "WHERE own.checkpoint_id = $own AND before.checkpoint_id <> $own AND before.asked < own.asked "
        "ORDER BY before.asked DESC, before.audit_id DESC LIMIT 1) "
        "SELECT before.audit_id, list(DISTINCT before.measure ORDER BY before.measure) "
        "FROM latest_result AS before JOIN previous USING (checkpoint_id) "
        "JOIN latest_result AS own ON own.checkpoint_id = $own AND own.measure = before.measure "
        "AND own.question = before.question AND own.version IS NOT DISTINCT FROM before.version "
        "WHERE list_contains($audits, own.audit_id) "
        "GROUP BY before.audit_id, before.finished ORDER BY before.finished DESC, before.audit_id",
        {"own": state.checkpoint_id, "audits": list(state.audits)},
    ).fetchall()
    return State({str(audit_id): frozenset(measures) for audit_id, measures in rows}) if rows else None


def of_profiles(connection: duckdb.DuckDBPyConnection, state: State, profiles: Collection[str]) -> State:
    """The state without audits of other profiles, unless nothing would be left of it."""
    rows = connection.execute(
        "SELECT audit_id FROM audit WHERE list_contains(?, audit_id) AND list_contains(?, profile)",
        [list(state.audits), list(profiles)],
    ).fetchall()
    kept = {audit_id for (audit_id,) in rows}
    audits = {audit_id: measures for audit_id, measures in state.audits.items() if audit_id in kept}
    return replace(state, audits=audits) if audits else state


def read_facts(connection: duckdb.DuckDBPyConnection, state: State) -> AuditFacts:
    """Read everything that rules can refer to; of a figure that several audits have, the newest."""
    newest, *others = (_read_audit(connection, audit_id, measures) for audit_id, measures in state.audits.items())
    every = (newest, *others)
    searched = next((one for one in every if one.tokens is not None), newest)
    cells = {(cell.summary, cell.item, cell.measure): cell for one in reversed(every) for cell in one.cells}
    findings = {name: level for one in reversed(every) for name, level in one.findings}
    return replace(
        newest,
        other_profiles=frozenset(one.profile for one in others),
        measures=frozenset().union(*(one.measures for one in every)),
        cells=tuple(cells[name] for name in sorted(cells)),
        tokens=searched.tokens,
        capped=searched.capped,
        bases=searched.bases,
        failed_warnings=tuple(dict.fromkeys(name for one in every for name in one.failed_warnings)),
        sample_corpora=tuple(dict.fromkeys(name for one in every for name in one.sample_corpora)),
        findings=tuple(findings.items()),
        verdict=next((one.verdict for one in every if one.verdict is not None), None),
        validated_in=searched.validated_in,
    )


def _read_audit(connection: duckdb.DuckDBPyConnection, audit_id: str, measures: frozenset[str] | None) -> AuditFacts:
    """The facts of one audit, or of some of its measures."""

    def rows(sql: str) -> list[tuple[Any, ...]]:
        return connection.execute(sql, [audit_id]).fetchall()

    def counts(measure: str) -> bool:
        return measures is None or measure in measures

    ((profile, source),) = rows(
        "SELECT profile, coalesce(settings ->> '$.source', checkpoint.source, '') "
        "FROM audit LEFT JOIN checkpoint USING (checkpoint_id) WHERE audit_id = ?"
    )
    bases: frozenset[str] = frozenset()
    tokens: list[tuple[str, str]] = []
    validated_in = FULL
    if counts("sticky"):
        bases = frozenset(basis for (basis,) in rows("SELECT DISTINCT basis FROM sticky_summary WHERE audit_id = ?"))
        tokens = rows("SELECT token, severity FROM sticky_token WHERE audit_id = ? ORDER BY loss DESC, token_id")
        validated_in = next(iter(rows("SELECT max(dtype) FROM sticky_token WHERE audit_id = ?")))[0] or FULL
    return AuditFacts(
        audit_id=audit_id,
        source=source,
        profile=profile,
        measures=frozenset(
            measure
            for (measure,) in rows("SELECT measure FROM measure_run WHERE audit_id = ? AND status = 'done'")
            if counts(measure)
        ),
        cells=tuple(
            # NaN compares with nothing, so it counts as missing.
            Cell(summary, item, measure, value if value is not None and math.isfinite(value) else None, *rest)
            for summary, item, measure, value, *rest in rows(
                "SELECT summary, item, measure, value, low, high, dtype FROM summary_cell "
                "LEFT JOIN summary_interval USING (audit_id, summary, item, measure) WHERE audit_id = ? ORDER BY ALL"
            )
            if counts(MEASURE_OF[summary])
        ),
        tokens=tuple(tokens) if bases else None,
        capped=dict(rows("SELECT severity, estimated FROM sticky_severity WHERE audit_id = ? AND is_capped"))
        if counts("sticky")
        else {},
        bases=bases,
        failed_warnings=tuple(
            name
            for (name,) in rows(
                "SELECT concat_ws('.', table_name, nullif(column_name, '')) FROM expectation_result "
                "WHERE audit_id = ? AND NOT success AND severity = 'warning' ORDER BY ALL"
            )
        ),
        sample_corpora=tuple(
            name
            for (name,) in rows(
                "SELECT audit_corpus.name FROM audit_corpus JOIN corpus USING (corpus_id) "
                "WHERE audit_id = ? AND corpus.source = 'sample' ORDER BY 1"
            )
        ),
        findings=tuple(
            (f"{measure}.{name}", level)
            for measure, name, level in rows(
                "SELECT measure, name, level FROM finding WHERE audit_id = ? ORDER BY place"
            )
            if counts(measure)
        ),
        # What a state says of it is what its newest audit with integrity says.
        verdict=next(iter(rows("SELECT kind, line FROM verdict WHERE audit_id = ?")), None)
        if counts("integrity")
        else None,
        validated_in=validated_in,
    )


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
