"""What is open: verdicts not to serve, tripped gates, worse figures, answers that are a problem.

It stays so until the checkpoint, the policy or the rows change, or somebody accepts it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb

from embaudit.system.settings import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import require_newest
from embaudit.warehouse.named import find_state
from embaudit.warehouse.publish import run_write
from embaudit.warehouse.write import replace_rows, transaction
from embaudit.watch.happening import DO_NOT_SERVE, WORSE
from embaudit.words.errors import StorageError, UsageError, WarehouseError, did_you_mean
from embaudit.words.masking import without_credentials

# Of what a watch looks at every night: a checkpoint that cannot be read, and what it asks.
LOOKED_AT = ("watched", "answer")


@dataclass(frozen=True)
class OpenItem:
    """A rule that trips an audit's gate (``what`` is ``gate``), a figure that got worse, or a verdict not to serve.

    Or an answer that is a problem, or what a watch found in place of a checkpoint.

    Attributes:
        audit_id: the audit; the answer that was the first to be so; of what a watch looks at, a key of it.
        against: hash of the policy, or the earlier audit; the subject of an answer, or the source; empty for a verdict.
        policy: its name; empty for others.
        item: name of the rule, of the figure, of the verdict's cause, or of the finding.
    """

    audit_id: str
    what: str
    against: str
    policy: str
    item: str

    def __str__(self) -> str:
        said = {"gate": f"policy {self.policy}: ", "worse": WORSE, "verdict": DO_NOT_SERVE}
        said |= {"watched": "the checkpoint is ", "answer": ""}
        return f"{said[self.what]}{self.item}"


def read_open(warehouse: Warehouse | str, audit_ids: Collection[str], wait_seconds: float) -> list[OpenItem]:
    """What is open in these audits."""
    with open_reader(warehouse_at(warehouse), wait_seconds) as connection:
        return _open_in(connection, audit_ids)


def read_accepted_sources(warehouse: Warehouse | str, wait_seconds: float) -> set[str]:
    """Watched checkpoints that cannot be read, of which somebody accepted that."""
    with open_reader(warehouse_at(warehouse), wait_seconds) as connection:
        rows = connection.execute(
            "SELECT against FROM found_item WHERE what = 'watched' GROUP BY ALL HAVING count(*) = count(accepted)"
        ).fetchall()
    return {str(name) for (name,) in rows}


def gate_outcome(warehouse: Warehouse | str, audit_id: str, policy_hash: str, wait_seconds: float) -> str | None:
    """``passed``, ``tripped``, or ``accepted`` if nothing of what tripped is open.

    None if the audit was not judged by this policy, or later by another version of it.
    """
    with open_reader(warehouse_at(warehouse), wait_seconds) as connection:
        newest = connection.execute(
            "SELECT policy_hash FROM gate_result WHERE audit_id = $audit AND policy IN "
            "(SELECT policy FROM gate_result WHERE audit_id = $audit AND policy_hash = $hash) "
            "ORDER BY evaluated DESC, policy_hash LIMIT 1",
            {"audit": audit_id, "hash": policy_hash},
        ).fetchone()
        if newest is None or newest[0] != policy_hash:
            return None
        found, is_open = connection.execute(
            "SELECT count(*), count(*) FILTER (accepted IS NULL) FROM found_item "
            "WHERE audit_id = ? AND what = 'gate' AND against = ?",
            [audit_id, policy_hash],
        ).fetchone() or (0, 0)
    return "tripped" if is_open else "accepted" if found else "passed"


def accept(
    warehouse: Warehouse, name: str, items: Sequence[str], *, by: str, reason: str, wait_seconds: float
) -> list[OpenItem]:
    """Accept what is open for a checkpoint, a watched source or an audit; returns what was accepted.

    Args:
        items: rules or figures to accept; all if empty.

    Raises:
        UsageError: if nothing of that name is known or open.
        WarehouseError, StorageError: as ``open_writer``.
    """
    with open_reader(warehouse, wait_seconds) as connection:
        require_newest(connection, warehouse)
        found = _open_in(connection, _audits_of(connection, name))
    if not found:
        raise UsageError(f"Nothing is open for {name}.", next_step="See what is: embaudit query open-items")
    known = {item.item for item in found}
    for item in items:
        if item not in known:
            raise UsageError(
                f"Nothing called {item!r} is open for {name}.",
                next_step=f"{did_you_mean(item, known)}Open are: {'; '.join(sorted(known))}.",
            )
    accepted = [item for item in found if not items or item.item in items]
    now = datetime.now(UTC)
    rows = [
        {
            **{name: getattr(item, name) for name in ("audit_id", "what", "against", "item")},
            **{"accepted_by": by, "reason": reason, "accepted": now},
        }
        for item in accepted
    ]

    def write(connection: duckdb.DuckDBPyConnection) -> None:
        with transaction(connection):
            replace_rows(connection, "acceptance", rows)

    try:
        run_write(warehouse, wait_seconds, write)
    except (WarehouseError, StorageError) as error:
        raise type(error)(error.happened, kept="Nothing was accepted.", next_step=error.next_step) from error
    return accepted


def _audits_of(connection: duckdb.DuckDBPyConnection, name: str) -> list[str]:
    """Every published audit of the checkpoint that a name stands for; or those of a watched source; or one audit.

    And the answers that are a problem, and what a watch found in place of a watched checkpoint.
    """
    places = [without_credentials(name), str(Path(name).expanduser().absolute())]
    found = connection.execute(
        "SELECT DISTINCT audit_id FROM found_item WHERE list_contains(?, what) AND against IN (?, ?) ORDER BY 1",
        [LOOKED_AT, *places],
    ).fetchall()
    watched = connection.execute(
        "SELECT DISTINCT audit_id FROM watched_source WHERE source IN (?, ?) AND audit_id IS NOT NULL ORDER BY 1",
        [name, places[1]],
    ).fetchall()
    audits = [str(audit_id) for (audit_id,) in (*found, *watched)]
    if audits or connection.execute("SELECT 1 FROM answer WHERE subject IN (?, ?) LIMIT 1", places).fetchone():
        return audits
    state = find_state(connection, name)
    if state.checkpoint_id is None:
        return [state.newest]
    return [
        str(audit_id)
        for (audit_id,) in connection.execute(
            "SELECT audit_id FROM audit WHERE checkpoint_id = ? AND status = 'published' ORDER BY 1",
            [state.checkpoint_id],
        ).fetchall()
    ]


def _open_in(connection: duckdb.DuckDBPyConnection, audit_ids: Collection[str]) -> list[OpenItem]:
    rows = connection.execute(
        "SELECT audit_id, what, against, policy, item FROM found_item "
        "WHERE accepted IS NULL AND list_contains(?, audit_id) ORDER BY ALL",
        [list(audit_ids)],
    ).fetchall()
    return [OpenItem(*row) for row in rows]
