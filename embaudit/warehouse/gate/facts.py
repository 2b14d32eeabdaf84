"""Everything a gate needs to know of an audit or a checkpoint's state, read from the warehouse in one go."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from embaudit.warehouse.named import PREVIOUS, State, find_state
from embaudit.warehouse.precision import FULL
from embaudit.warehouse.tables import MEASURE_OF
from embaudit.words.errors import UsageError


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
