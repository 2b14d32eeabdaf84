"""What a night found and did, in words: a row a source, the problems, the run's message, the table for the morning.

What is open: verdicts not to serve, tripped gates, worse figures, answers that are a problem.

It stays so until the checkpoint, the policy or the rows change, or somebody accepts it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
from pydantic import BaseModel

from embaudit.system.settings import Warehouse, warehouse_at
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import require_newest
from embaudit.warehouse.named import find_state
from embaudit.warehouse.publish import run_write
from embaudit.warehouse.write import replace_rows, transaction
from embaudit.watch.asked import AnsweredNow
from embaudit.watch.happening import DO_NOT_SERVE, HAPPENINGS, WORSE, NightProblem, Problem, exit_code_of, in_order
from embaudit.words.errors import StorageError, UsageError, WarehouseError, did_you_mean
from embaudit.words.masking import without_credentials
from embaudit.words.sentences import cut

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


# What a watch did with a source, in the order of the summary; ``seen``: the revision was dealt with before.
OUTCOMES = ("audited", "unchanged", "known", "seen", "running", "failed", "gone", "unreachable")
# Of a source that was not audited, what happened.
NOT_AUDITED = {"failed": "checkpoint_unreadable", "gone": "checkpoint_gone", "unreachable": "hub_silent"}
PUBLISHED = "Everything else is done and recorded."
# Problems that a message tells in full, and characters of each; the log and the notification have all of them.
TOLD, MOST_TOLD = 5, 400


class WatchedRow(BaseModel):
    """The outcome of one source in this watch."""

    source: str
    revision: str
    outcome: str
    checkpoint_id: str | None
    audit_id: str | None
    predecessor_audit_id: str | None
    worse: list[str]
    # Which weights changed since the predecessor, and what becomes of the index that it built; None if not known.
    weights: str | None = None
    index: str | None = None
    gate: str | None
    reason: str | None
    # What nobody has accepted, whether this watch found it or an earlier one, and since when.
    open: list[str] = []
    open_since: datetime | None = None
    fails: bool = False
    # Of one that was not audited: whether its audit failed, and whether somebody accepted that it is so.
    audit_failed: bool = False
    is_accepted: bool = False

    @property
    def problems(self) -> Iterator[Problem]:
        """What is wrong with it."""
        is_old = self.open_since is not None and self.outcome != "audited"
        since = f" (open since {self.open_since:%Y-%m-%d})" if is_old else ""
        broken = [item.removeprefix(DO_NOT_SERVE) for item in self.open if item.startswith(DO_NOT_SERVE)]
        rules = [item for item in self.open if not item.startswith((DO_NOT_SERVE, WORSE))]
        worse = self.worse or [item.removeprefix(WORSE) for item in self.open if item.startswith(WORSE)]
        what = f"the audit {self.audit_id}" if self.audit_id else "its audit"
        if broken:
            yield self._problem("broken", f"{', '.join(broken)}{since}; see embaudit show {self.audit_id}.")
        if self.fails:
            yield self._problem("tripped", f"{what} fails {'; '.join(rules)}{since}.")
        if worse:
            said = "; ".join([*worse, *(change.rstrip(".") for change in (self.weights, self.index) if change)])
            yield self._problem("worse", f"{said}{since}.")
        if self.outcome in NOT_AUDITED and not self.is_accepted:
            name = "audit_failed" if self.audit_failed else NOT_AUDITED[self.outcome]
            reason = (self.reason or "it says nothing").rstrip(".")
            yield self._problem(name, f"{reason}. It is green when {HAPPENINGS[name].until}.")

    def _problem(self, name: str, said: str) -> Problem:
        return Problem(name, self.source, said)


class WatchOutcome(BaseModel):
    """What a watch found and did; ``watch_run``, ``watched_revision`` and ``answer`` keep it."""

    warehouse: str
    rows: list[WatchedRow]
    answers: list[AnsweredNow] = []

    @property
    def problems(self) -> list[Problem]:
        """Everything that must not look as if all were well, the gravest first."""
        found = [problem for row in self.rows for problem in row.problems]
        return in_order([*found, *(problem for answer in self.answers for problem in answer.problems)])

    @property
    def always_fails(self) -> bool:
        """Whether an audit failed or a policy that is set to fail did, which end a run red whatever is set."""
        return any(problem.name in ("tripped", "audit_failed") for problem in self.problems)

    @property
    def marked(self) -> list[WatchedRow]:
        """Sources whose gate is tripped and only marks."""
        return [row for row in self.rows if row.gate == "tripped" and not row.fails]

    @property
    def summary(self) -> str:
        """Such as ``1 problem: Do not serve: models/a; 2 audited, 5 seen; 3 questions answered well``."""
        problems, parts = self.problems, []
        if problems:
            named: dict[str, list[str]] = {}
            for problem in problems:
                named.setdefault(problem.happening.state, []).append(problem.subject)
            said = "; ".join(f"{state}: {', '.join(dict.fromkeys(subjects))}" for state, subjects in named.items())
            parts.append(f"{len(problems)} problem{'s' * (len(problems) > 1)}: {said}")
        counts = Counter(row.outcome for row in self.rows)
        if done := ", ".join(f"{counts[name]} {name}" for name in OUTCOMES if counts[name]):
            parts.append(done)
        if self.marked:
            parts.append(f"the gate is tripped for {len(self.marked)}")
        fine = [answer for answer in self.answers if not any(answer.problems)]
        well = sum(not answer.is_accepted for answer in fine)
        for count, said in ((well, "well"), (len(fine) - well, "as accepted")):
            if count:
                parts.append(f"{count} question{'s' * (count > 1)} answered {said}")
        return "; ".join(parts) or "nothing watched"

    def problem(self) -> NightProblem | None:
        """The error that ends the night's run, under the name of its gravest problem; None of a green night."""
        found = self.problems
        if not found:
            return None
        told = [str(problem) if len(found) == 1 else cut(str(problem), MOST_TOLD) for problem in found[:TOLD]]
        more = [f"And {len(found) - TOLD} more."] if len(found) > TOLD else []
        count = [] if len(found) == 1 else [f"{len(found)} problems."]
        error = NightProblem(
            " ".join([*count, *told, *more]), kept=PUBLISHED, next_step="What is open: embaudit query open-items"
        )
        error.state, error.exit_code, error.outcome = found[0].happening.state, exit_code_of(found), self
        return error

    def table(self) -> list[dict[str, str]]:
        """What people read in the morning: a row a problem, with its reason, and one for all that is fine."""
        problems = self.problems
        rows = [
            {"what": problem.happening.state, "of": problem.subject, "reason": problem.said} for problem in problems
        ]
        subjects = {problem.subject for problem in problems}
        looked_at = [*(row.source for row in self.rows), *(answer.subject for answer in self.answers)]
        fine = [name for name in dict.fromkeys(looked_at) if name not in subjects]
        said = self.summary.split("; ", 1)[-1] if problems else self.summary
        if fine or not problems:
            rows.append({"what": "Nothing wrong", "of": f"{len(fine)} of {len(fine) + len(subjects)}", "reason": said})
        return rows
