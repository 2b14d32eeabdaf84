"""What a name stands for: one audit by its id, or a checkpoint's state, its newest result of each measure and question.

A checkpoint is audited in parts: a later audit of other measures, texts or settings adds to its state and replaces
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from embaudit.words.errors import CheckFailed, UsageError

LATEST, PREVIOUS = "latest", "previous"
LIST_THEM = "List what it has: embaudit list audits, or embaudit list checkpoints"


@dataclass(frozen=True)
class State:
    """The audits that a name stands for.

    Attributes:
        audits: what counts of each, by its id, newest first: the measures, and ``audit`` for what was found about the
            audit as a whole; None for all of it.
        checkpoint_id: of the state; None for a single audit.
    """

    audits: Mapping[str, frozenset[str] | None]
    checkpoint_id: str | None = None

    @property
    def newest(self) -> str:
        return next(iter(self.audits))

    def of(self, measure: str) -> list[str]:
        """The audits that count for a measure, newest first."""
        return [audit_id for audit_id, measures in self.audits.items() if measures is None or measure in measures]


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
        raise UsageError(f"The warehouse has no audit {given!r}.", next_step=_audit_it(given))
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


def _audit_it(given: str) -> str:
    """What to type for a name without an audit: audit the folder that it is, or see which names there are."""
    from shlex import quote

    is_checkpoint = given.startswith("packaged:") or (Path(given) / "config.json").is_file()
    return f"Audit it first: embaudit audit {quote(given)}" if is_checkpoint else LIST_THEM


def find_state(connection: duckdb.DuckDBPyConnection, given: str) -> State:
    """What a name stands for: that of a checkpoint for its state, anything else as in ``find_audit``.

    Raises:
        UsageError, CheckFailed: as ``find_audit``.
    """
    return find_checkpoint(connection, given) or State({find_audit(connection, given): None})


def find_checkpoint(connection: duckdb.DuckDBPyConnection, given: str) -> State | None:
    """The state of the checkpoint of this name; None if no audited one has it."""
    if given in ("", LATEST):
        return None
    # A folder is recorded by its absolute path; a revision if it was given.
    found = connection.execute(
        "SELECT checkpoint_id FROM named_checkpoint WHERE name IN ($name, $folder) ORDER BY name <> $name LIMIT 1",
        {"name": given, "folder": str(Path(given).expanduser().resolve())},
    ).fetchone()
    return None if found is None else state_of(connection, str(found[0]))


def state_of(connection: duckdb.DuckDBPyConnection, checkpoint_id: str) -> State:
    """The state of a checkpoint that has a published audit."""
    audits = connection.execute(
        "SELECT audit_id, list(measure ORDER BY measure) FROM latest_result WHERE checkpoint_id = ? "
        "GROUP BY audit_id, finished ORDER BY finished DESC, audit_id",
        [checkpoint_id],
    ).fetchall()
    return State({str(audit_id): frozenset(measures) for audit_id, measures in audits}, checkpoint_id)


def find_result(connection: duckdb.DuckDBPyConnection, given: str, measure: str) -> str:
    """The newest audit of a measure that a name stands for; for ``latest``, that of the warehouse.

    Falls back on an audit without the measure, for the caller to say what it lacks.

    Raises:
        UsageError, CheckFailed: as ``find_audit``.
    """
    if given == LATEST:
        newest = connection.execute(
            "SELECT audit_id FROM latest_result WHERE measure = ? ORDER BY finished DESC, audit_id LIMIT 1", [measure]
        ).fetchone()
        return find_audit(connection, given) if newest is None else str(newest[0])
    state = find_state(connection, given)
    return next(iter(state.of(measure)), state.newest)
