"""Records what a watch does as it goes: rows of what was seen, comparisons, and the outcome for people."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from shlex import quote
from typing import Any, cast

from prefect.states import Completed
from pydantic import BaseModel

from embaudit.errors import EmbauditError
from embaudit.gate import GateTripped
from embaudit.settings import Settings
from embaudit.tables.watch import DONE, Status
from embaudit.warehouse.open_items import DO_NOT_SERVE, WORSE, OpenItem, read_accepted_in_indexes, read_open
from embaudit.watch.history import History, WatchedRevision
from embaudit.watch.index_check import CheckedIndex, IndexLook
from embaudit.watch.look import Looked, judged
from embaudit.watch.served import ServedNow
from embaudit.watch.watch_list import EndpointEntry, IndexEntry
from embaudit_flows.ending import TRIPPED_STATE
from embaudit_flows.gpu import gpu_slot
from embaudit_flows.watch_audits import AuditEnd, Auditor
from embaudit_tasks.gate import gate_now
from embaudit_tasks.report import write_overview, write_report
from embaudit_tasks.watch import (
    ask_what_is_served,
    compare_indexes,
    compare_with_predecessor,
    look_at_index,
    record_indexes,
    record_served,
    record_watched,
)

# What a watch did with a source, in the order of the summary; ``seen``: the revision was dealt with before.
OUTCOMES = ("audited", "unchanged", "known", "seen", "running", "failed", "unreachable")

INDEXES = {
    "not wholly its own": "not wholly its function's",
    "another function": "of a function that is no longer its passport's",
    "could not be told": "not told",
    "wholly its own": "wholly its function's",
}
SERVED = {"the same function": "served as audited", "first seen": "seen for the first time"}
WORSE_STATE, BROKEN_STATE, OTHERWISE_STATE = "Got worse", "Do not serve", "Not served as audited"
FOREIGN_STATE = "Index got worse"
PUBLISHED = "Every audit is done and published."


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

    @property
    def is_broken(self) -> bool:
        return any(item.startswith(DO_NOT_SERVE) for item in self.open)

    @property
    def is_worse(self) -> bool:
        return bool(self.worse) or any(item.startswith(WORSE) for item in self.open)


class WatchOutcome(BaseModel):
    """What a watch found and did; ``watched_revision``, ``served``, ``index_check`` and ``regression`` keep it."""

    warehouse: str
    rows: list[WatchedRow]
    failed_audits: list[str]
    served: list[ServedNow] = []
    indexes: list[CheckedIndex] = []

    @property
    def summary(self) -> str:
        """Such as ``2 audited, 5 seen, 1 unreachable; 1 got worse; the gate is tripped for 1``."""
        counts = {name: sum(row.outcome == name for row in self.rows) for name in OUTCOMES}
        said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        broken = [row.source for row in self.rows if row.is_broken]
        otherwise = [row.endpoint for row in self.served if row.is_otherwise]
        unasked = [row.endpoint for row in self.served if row.verdict == "could not be compared"]
        others = [*self.served, *self.indexes]
        parts = [
            *([f"do not serve {', '.join(broken)}"] if broken else []),
            *([f"not served as audited: {', '.join(otherwise)}"] if otherwise else []),
            *([f"not compared: {', '.join(unasked)}"] if unasked else []),
            *self._of_indexes,
            *([said or "nothing watched"] if said or not others else []),
            *([f"{sum(row.is_worse for row in self.rows)} got worse"] if self.rows or not others else []),
            *([f"the gate is tripped for {len(self.tripped)}"] if self.tripped else []),
        ]
        counts = {verdict: sum(row.verdict == verdict for row in self.served) for verdict in SERVED}
        if not (otherwise or unasked):
            parts += [f"{count} {SERVED[verdict]}" for verdict, count in counts.items() if count]
        return "; ".join(parts)

    @property
    def _of_indexes(self) -> list[str]:
        """Such as ``index.parquet is not wholly its function's``; those in which nothing was found are counted."""
        said = {}
        for verdict, words in INDEXES.items():
            said[words] = [row for row in self.indexes if row.verdict == verdict]
        own = len(said.pop(INDEXES["wholly its own"]))
        found = [f"{words}: {', '.join(row.store for row in rows)}" for words, rows in said.items() if rows]
        return [*found, *([f"{own} {'index' if own == 1 else 'indexes'} wholly the function's"] if own else [])]

    @property
    def tripped(self) -> list[WatchedRow]:
        return [row for row in self.rows if row.gate == "tripped"]


class WatchFailed(EmbauditError):
    """A watch that is done, and must not look as if all were well; what it did is in ``outcome``."""

    outcome: WatchOutcome | None = None


class AuditsFailed(WatchFailed):
    """Some audits of a watch failed."""


class GatesTripped(WatchFailed, GateTripped):
    """Every audit is done, and a policy is not satisfied, by what this watch audited or by what is still there."""


class WatchRecord:
    """Writes the results of one watch: each finding is published as soon as it is final, so that none is lost."""

    def __init__(self, warehouse: str, settings: Settings, history: History, *, loads: bool = True) -> None:
        """A record of a watch.

        Args:
            loads: whether this process may load checkpoints; if audits run on workers, it may be too small for them.
        """
        self.history, self._loads = history, loads
        self._warehouse, self._settings = warehouse, settings
        self._where = (warehouse, settings.lock_wait_seconds, str(settings.staging))
        self._rows: list[WatchedRow] = []
        self._failed: list[str] = []
        self._served: list[ServedNow] = []
        self._indexes: list[CheckedIndex] = []

    def write(self, findings: list[Looked]) -> None:
        """Write what needs no audit; content that follows other content is compared with it."""
        before = [(self._previous(finding), self._newest(finding), self._is_done(finding)) for finding in findings]
        record_watched([self.history.put(_row_of(finding)) for finding in findings], *self._where)
        for finding, (previous, newest, was_done) in zip(findings, before, strict=True):
            comes_next = previous is not None and newest != finding.checkpoint_id
            compared = self._compare(finding.audit_id, previous) if finding.audit_id and comes_next else None
            self._say(finding, "seen" if was_done else str(finding.status), compared)

    def audit(self, findings: list[Looked], auditor: Auditor) -> None:
        """Audit what is new: the same content under the same settings once, whatever names it came under."""
        first: dict[tuple[str | None, str], Looked] = {}
        for finding in findings:
            first.setdefault(_question(finding), finding)
        for finding, end in zip(first.values(), auditor(list(first.values())), strict=True):
            self._finish(finding, end)
            for twin in findings:
                if twin is finding or _question(twin) != _question(finding):
                    continue
                if end.audit_id is None:
                    self._finish(twin, end)
                else:
                    self.write([judged(twin.source, twin.revision, str(twin.checkpoint_id), "", self.history)])

    def ask(self, endpoints: list[EndpointEntry]) -> None:
        """Ask each endpoint whether it serves what it should."""
        for entry in endpoints:
            self._served.append(ask_what_is_served(entry, str(self._settings.reports)))
            record_served(self._served[-1:], *self._where)

    def look_into(self, indexes: list[IndexEntry]) -> None:
        """Look at what came into each index; it is recorded before the next look is told against it."""
        accepted = read_accepted_in_indexes(self._warehouse, self._settings.lock_wait_seconds) if indexes else set()
        home = self._settings.home.expanduser().absolute()
        for entry in indexes:
            look = IndexLook(entry, home, self._settings.reports, accepted)
            with gpu_slot(entry.settings.device):
                self._indexes.append(look_at_index(look, entry.name))
            record_indexes(self._indexes[-1:], *self._where)
            look.keep()

    def finish(self) -> WatchOutcome:
        """Show the outcome in the UI and return it.

        Raises:
            AuditsFailed: if an audit failed.
            GatesTripped: if a gate is tripped, was not accepted, and is set to fail.
        """
        from prefect.artifacts import create_link_artifact, create_table_artifact

        outcome = WatchOutcome(
            warehouse=self._warehouse,
            rows=self._rows,
            failed_audits=self._failed,
            served=self._served,
            indexes=self._indexes,
        )
        lists = ("worse", "open")
        table = [
            row.model_dump(mode="json") | {name: "; ".join(getattr(row, name)) for name in lists}
            for row in outcome.rows
        ]
        table += [
            {"source": row.endpoint, "outcome": row.verdict, "checkpoint_id": row.checkpoint_id, "reason": row.line}
            for row in outcome.served
        ]
        table += [
            {"source": row.store, "outcome": row.verdict, "checkpoint_id": row.checkpoint_id, "reason": row.line}
            for row in outcome.indexes
        ]
        create_table_artifact(key="watch", table=table, description=outcome.summary)
        # As with an audit's page, an error here must not fail the watch.
        with suppress(EmbauditError):
            write_overview(self._warehouse, self._settings.lock_wait_seconds, str(self._settings.reports))
            if link := self._settings.report_link("index"):
                create_link_artifact(link, key="embaudit-index", description="All audits")
        if error := _failure(outcome):
            error.outcome = outcome
            raise error
        states = {
            BROKEN_STATE: any(row.is_broken for row in outcome.rows),
            OTHERWISE_STATE: any(row.is_otherwise for row in outcome.served),
            FOREIGN_STATE: any(row.is_red for row in outcome.indexes),
            TRIPPED_STATE: bool(outcome.tripped),
            WORSE_STATE: any(row.is_worse for row in outcome.rows),
        }
        for name, is_so in states.items():
            if is_so:
                # A returned state becomes the run's final state, which shows what is open; the caller gets its data.
                return cast(WatchOutcome, Completed(name=name, message=outcome.summary, data=outcome))
        return outcome

    def _finish(self, finding: Looked, end: AuditEnd) -> None:
        """Write how an audit ended, and what got worse."""
        previous = self._previous(finding)
        status: Status = "audited" if end.audit_id else "running" if end.is_running else "failed"
        reason = end.reason or finding.reason
        done = finding.model_copy(update={"status": status, "audit_id": end.audit_id, "reason": reason})
        record_watched([self.history.put(_row_of(done))], *self._where)
        if end.has_failed:
            self._failed.append(f"{finding.source.name} ({(end.reason or '').rstrip('.')})")
        compared = self._compare(end.audit_id, previous) if end.audit_id else None
        self._say(done, status, compared, self._index(done))

    def _previous(self, finding: Looked) -> str | None:
        """The audit of the source's newest revision with other content."""
        if finding.checkpoint_id is None:
            return None
        found = self.history.previous(finding.source.name, finding.source.settings.key, finding.checkpoint_id)
        return None if found is None else found.audit_id

    def _is_done(self, finding: Looked) -> bool:
        found = self.history.find(finding.source.name, finding.revision, finding.source.settings.key)
        return found is not None and found.status in DONE

    def _newest(self, finding: Looked) -> str | None:
        found = self.history.newest(finding.source.name, finding.source.settings.key)
        return None if found is None else found.checkpoint_id

    def _compare(self, audit_id: str, previous: str | None) -> dict[str, Any] | None:
        compared: dict[str, Any] | None = compare_with_predecessor(audit_id, previous, *self._where)
        if compared is not None:
            # The audit's page was written before the comparison. It can be rewritten any time, so an error here must
            # not fail the watch.
            with suppress(EmbauditError):
                write_report(audit_id, self._warehouse, self._settings.lock_wait_seconds, str(self._settings.reports))
        return compared

    def _index(self, finding: Looked) -> str | None:
        """What becomes of the index that the source's revision before built; None if that is not known."""
        if finding.audit_id is None or finding.checkpoint_id is None:
            return None
        before = self.history.previous(finding.source.name, finding.source.settings.key, finding.checkpoint_id)
        if before is None:
            return None
        # The audit is published: what cannot be said of an index must not fail the watch.
        try:
            with gpu_slot(finding.source.settings.device):
                found = compare_indexes(finding, before, str(self._settings.reports), self._loads, *self._where)
        except EmbauditError as error:
            return f"What becomes of an index was not compared: {error.happened}"
        return None if found is None else str(found.line)

    def _say(self, finding: Looked, outcome: str, compared: dict[str, Any] | None, index: str | None = None) -> None:
        worse = compared["worse"] if compared else []
        gate, found, since = self._open(finding)
        self._rows.append(
            WatchedRow(
                source=finding.source.name,
                revision=finding.revision,
                outcome=outcome,
                checkpoint_id=finding.checkpoint_id,
                audit_id=finding.audit_id,
                predecessor_audit_id=compared["predecessor_audit_id"] if compared else None,
                weights=compared["weights"] if compared else None,
                index=index,
                worse=[f"{row['measure']} of {row['item']} {row['delta']:+.4g}" for row in worse],
                gate=gate,
                reason=finding.reason,
                open=[str(item) for item in found],
                open_since=since if found else None,
                fails=gate == "tripped" and finding.source.settings.gate == "fail",
            )
        )

    def _open(self, finding: Looked) -> tuple[str | None, list[OpenItem], datetime | None]:
        """The outcome of its policy, what is open, and since when, of the revision that is there.

        If nobody can say which one that is (the hub does not answer), it is the one that was last seen.
        """
        source, audit_id = finding.source, finding.audit_id
        known = self.history.find(source.name, finding.revision, source.settings.key)
        if finding.checkpoint_id is None:
            known = self.history.newest(source.name, source.settings.key)
            audit_id = None if known is None else known.audit_id
        if audit_id is None:
            return None, [], None
        gate = policy = None
        if source.settings.policy is not None:
            # Also where nothing is new: a tripped gate stays so until the checkpoint or the policy is another.
            policy, gate = gate_now(audit_id, source.settings.policy, *self._where)
        found = read_open(self._warehouse, [audit_id], self._settings.lock_wait_seconds)
        mine = [item for item in found if item.what != "gate" or item.against == policy]
        return gate, mine, None if known is None else known.first_seen


def _failure(outcome: WatchOutcome) -> WatchFailed | None:
    """Why a watch must not end as if all were well; None if it may."""
    failed, tripped = outcome.failed_audits, [row for row in outcome.rows if row.fails]
    said, steps = [], []
    if failed:
        said.append(f"{len(failed)} audit{'s' * (len(failed) > 1)} of this watch failed: {'; '.join(failed)}.")
        steps.append("The next watch tries again. What was seen: embaudit query watched")
    if tripped:
        of = f"{len(tripped)} of {len(outcome.rows)} watched checkpoint{'s' * (len(outcome.rows) > 1)}"
        said.append(f"The gate is tripped for {of}: {'; '.join(map(_tripped, tripped))}.")
        steps.append(
            "It stays so until the checkpoint or the policy changes, or somebody accepts it: "
            f"embaudit accept {quote(tripped[0].source)} --reason TEXT"
        )
    if not said:
        return None
    kind = AuditsFailed if failed else GatesTripped
    return kind(
        " ".join(said), kept="Everything else is done and recorded." if failed else PUBLISHED, next_step=" ".join(steps)
    )


def _tripped(row: WatchedRow) -> str:
    rules = ", ".join(item for item in row.open if not item.startswith((WORSE, DO_NOT_SERVE)))
    since = f", since {row.open_since:%Y-%m-%d}" if row.open_since else ""
    return f"{row.source} ({rules}{since})"


def _question(finding: Looked) -> tuple[str | None, str]:
    return finding.checkpoint_id, finding.source.settings.key


def _row_of(finding: Looked) -> WatchedRevision:
    if finding.status is None:
        raise ValueError(f"{finding.source.name}: an audit is still to decide its status")
    now = datetime.now(UTC)
    return WatchedRevision(
        source=finding.source.name,
        revision=finding.revision,
        parameters_key=finding.source.settings.key,
        parameters=finding.source.settings.model_dump(mode="json"),
        checkpoint_id=finding.checkpoint_id,
        status=finding.status,
        reason=finding.reason,
        audit_id=finding.audit_id,
        first_seen=now,
        last_seen=now,
    )
