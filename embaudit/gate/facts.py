"""Everything a gate needs to know of an audit, read from the warehouse in one go."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from embaudit.errors import CheckFailed, UsageError
from embaudit.gate.policy import PREVIOUS

LATEST = "latest"
LIST_THEM = "List them: embaudit list audits"


@dataclass(frozen=True)
class Cell:
    """One figure of one summary; null if the audit could not determine it."""

    summary: str
    item: str
    measure: str
    value: float | None

    @property
    def names(self) -> dict[str, Any]:
        return {"summary": self.summary, "item": self.item, "measure": self.measure}


@dataclass(frozen=True)
class AuditFacts:
    """What rules can refer to.

    Attributes:
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


def find_audit(connection: duckdb.DuckDBPyConnection, given: str) -> str:
    """Find a published audit by its id, its first digits, or ``latest``.

    Raises:
        UsageError: if there is none, or several match.
        CheckFailed: if it is not published.
    """
    if given == LATEST:
        newest = connection.execute(
            "SELECT audit_id FROM audit WHERE status = 'published' ORDER BY finished DESC, audit_id LIMIT 1"
        ).fetchone()
        if newest is None:
            raise UsageError("The warehouse has no published audit.", next_step="Run one: embaudit audit CHECKPOINT")
        return str(newest[0])
    found = connection.execute(
        "SELECT audit_id, status, reason FROM audit WHERE starts_with(audit_id, ?) ORDER BY audit_id", [given]
    ).fetchall()
    exact = [row for row in found if row[0] == given]
    if not given or not found:
        raise UsageError(f"The warehouse has no audit {given!r}.", next_step=LIST_THEM)
    if len(found) > 1 and not exact:
        ids = ", ".join(row[0] for row in found[:4])
        raise UsageError(f"{len(found)} audits begin with {given}: {ids}.", next_step="Type more digits.")
    audit_id, status, reason = (exact or found)[0]
    if status != "published":
        raise CheckFailed(
            f"The audit {audit_id} is {status}, so there is nothing to compare: {reason or 'no reason given'}",
            next_step="Run the audit again: it continues where it stopped.",
        )
    return str(audit_id)


def find_named(connection: duckdb.DuckDBPyConnection, name: str, measure: str | None = None) -> str:
    """Like ``find_audit``, but also takes a checkpoint, for its newest audit.

    Args:
        measure: prefer audits that ran it.

    Raises:
        UsageError, CheckFailed: as ``find_audit``.
    """
    # A folder is recorded by its absolute path; a revision if it was given.
    folder = str(Path(name).expanduser().resolve())
    newest = connection.execute(
        "SELECT audit_id FROM audit_question AS question JOIN audit USING (audit_id) "
        "LEFT JOIN measure_run AS run ON run.audit_id = audit.audit_id AND run.measure = $measure "
        "WHERE question.source IN ($name, $folder) OR (audit.settings ->> '$.source') = $name "
        f"OR (run.measure IS NOT NULL AND $name = '{LATEST}') "
        "ORDER BY run.measure IS NULL, question.finished DESC, audit_id LIMIT 1",
        {"name": name, "folder": folder, "measure": measure},
    ).fetchone()
    return str(newest[0]) if newest else find_audit(connection, name)


def find_baseline(connection: duckdb.DuckDBPyConnection, audit_id: str, given: str) -> str | None:
    """The audit that changes are measured against; None if there is no ``previous`` one.

    Raises:
        UsageError, CheckFailed: as ``find_audit``; UsageError if it is the audit itself.
    """
    if given == PREVIOUS:
        row = connection.execute(
            "SELECT predecessor_audit_id FROM audit_predecessor WHERE audit_id = ?", [audit_id]
        ).fetchone()
        return str(row[0]) if row else None
    baseline = find_audit(connection, given)
    if baseline == audit_id:
        raise UsageError(
            f"The audit {audit_id} cannot be its own baseline.", next_step="Choose another: --baseline AUDIT"
        )
    return baseline


def read_facts(connection: duckdb.DuckDBPyConnection, audit_id: str) -> AuditFacts:
    """Read everything that rules can refer to."""

    def rows(sql: str) -> list[tuple[Any, ...]]:
        return connection.execute(sql, [audit_id]).fetchall()

    ((profile, source),) = rows(
        "SELECT profile, coalesce(settings ->> '$.source', checkpoint.source, '') "
        "FROM audit LEFT JOIN checkpoint USING (checkpoint_id) WHERE audit_id = ?"
    )
    bases = frozenset(basis for (basis,) in rows("SELECT DISTINCT basis FROM sticky_summary WHERE audit_id = ?"))
    tokens = tuple(rows("SELECT token, severity FROM sticky_token WHERE audit_id = ? ORDER BY loss DESC, token_id"))
    return AuditFacts(
        audit_id=audit_id,
        source=source,
        profile=profile,
        measures=frozenset(
            measure for (measure,) in rows("SELECT measure FROM measure_run WHERE audit_id = ? AND status = 'done'")
        ),
        cells=tuple(
            # NaN compares with nothing, so it counts as missing.
            Cell(summary, item, measure, value if value is not None and math.isfinite(value) else None)
            for summary, item, measure, value in rows(
                "SELECT summary, item, measure, value FROM summary_cell WHERE audit_id = ? ORDER BY ALL"
            )
        ),
        tokens=tokens if bases else None,
        capped=dict(rows("SELECT severity, estimated FROM sticky_severity WHERE audit_id = ? AND is_capped")),
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
            rows("SELECT concat_ws('.', measure, name), level FROM finding WHERE audit_id = ? ORDER BY place")
        ),
    )
