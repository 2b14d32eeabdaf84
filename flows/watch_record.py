"""Records what a watch does as it goes: rows of what was seen, comparisons, and the outcome for people."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from embaudit.errors import EXIT_TRIPPED, EmbauditError
from embaudit.settings import Settings
from embaudit.tables.watch import DONE, Status
from embaudit.watch.history import History, WatchedRevision
from embaudit.watch.look import Finding, judged
from embaudit_flows.watch_audits import AuditEnd, Auditor
from embaudit_tasks.report import write_overview, write_report
from embaudit_tasks.watch import compare_with_predecessor, record_watched

# What a watch did with a source, in the order of the summary; ``seen``: the revision was dealt with before.
OUTCOMES = ("audited", "unchanged", "known", "seen", "running", "failed", "unreachable")


class WatchedRow(BaseModel):
    """The outcome of one source in this watch."""

    source: str
    revision: str
    outcome: str
    checkpoint_id: str | None
    audit_id: str | None
    predecessor_audit_id: str | None
    worse: list[str]
    gate: str | None
    reason: str | None


class WatchOutcome(BaseModel):
    """What a watch found and did; the tables ``watched_revision`` and ``regression`` keep it."""

    warehouse: str
    rows: list[WatchedRow]
    failed_audits: list[str]

    @property
    def summary(self) -> str:
        """Such as ``2 audited, 5 seen, 1 unreachable; 1 got worse``."""
        counts = {name: sum(row.outcome == name for row in self.rows) for name in OUTCOMES}
        said = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        return f"{said or 'nothing watched'}; {sum(bool(row.worse) for row in self.rows)} got worse"


class AuditsFailed(EmbauditError):
    """Some audits of a watch failed; everything else is done, and in ``outcome``."""

    outcome: WatchOutcome | None = None


class WatchRecord:
    """Writes the results of one watch: each finding is published as soon as it is final, so that none is lost."""

    def __init__(self, warehouse: str, settings: Settings, history: History) -> None:
        self.history = history
        self._warehouse, self._settings = warehouse, settings
        self._where = (warehouse, settings.lock_wait_seconds, str(settings.staging))
        self._rows: list[WatchedRow] = []
        self._failed: list[str] = []

    def write(self, findings: list[Finding]) -> None:
        """Write what needs no audit; content that follows other content is compared with it."""
        before = [(self._previous(finding), self._newest(finding), self._is_done(finding)) for finding in findings]
        record_watched([self.history.put(_row_of(finding)) for finding in findings], *self._where)
        for finding, (previous, newest, was_done) in zip(findings, before, strict=True):
            comes_next = previous is not None and newest != finding.checkpoint_id
            compared = self._compare(finding.audit_id, previous) if finding.audit_id and comes_next else None
            self._say(finding, "seen" if was_done else str(finding.status), compared)

    def audit(self, findings: list[Finding], auditor: Auditor) -> None:
        """Audit what is new: the same content under the same settings once, whatever names it came under."""
        first: dict[tuple[str | None, str], Finding] = {}
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

    def finish(self) -> WatchOutcome:
        """Show the outcome in the UI and return it.

        Raises:
            AuditsFailed: if an audit failed.
        """
        from prefect.artifacts import create_link_artifact, create_table_artifact

        outcome = WatchOutcome(warehouse=self._warehouse, rows=self._rows, failed_audits=self._failed)
        table = [row.model_dump() | {"worse": "; ".join(row.worse)} for row in outcome.rows]
        create_table_artifact(key="watch", table=table, description=outcome.summary)
        # As with an audit's page, an error here must not fail the watch.
        with suppress(EmbauditError):
            write_overview(self._warehouse, self._settings.lock_wait_seconds, str(self._settings.reports))
            if link := self._settings.report_link("index"):
                create_link_artifact(link, key="embaudit-index", description="All audits")
        if self._failed:
            error = AuditsFailed(
                f"{len(self._failed)} audit{'s' * (len(self._failed) > 1)} of this watch failed: "
                f"{'; '.join(self._failed)}.",
                kept="Everything else is done and recorded.",
                next_step="The next watch tries again. What was seen: embaudit query watched",
            )
            error.outcome = outcome
            if len(self._failed) == sum(row.gate == "tripped" for row in outcome.rows):
                error.exit_code = EXIT_TRIPPED
            raise error
        return outcome

    def _finish(self, finding: Finding, end: AuditEnd) -> None:
        """Write how an audit ended, and what got worse."""
        previous = self._previous(finding)
        status: Status = "audited" if end.audit_id else "running" if end.is_running else "failed"
        reason = end.reason or finding.reason
        done = finding.model_copy(update={"status": status, "audit_id": end.audit_id, "reason": reason})
        record_watched([self.history.put(_row_of(done))], *self._where)
        if end.has_failed:
            self._failed.append(f"{finding.source.name} ({(end.reason or '').rstrip('.')})")
        self._say(done, status, self._compare(end.audit_id, previous) if end.audit_id else None, end.gate)

    def _previous(self, finding: Finding) -> str | None:
        """The audit of the source's newest revision with other content."""
        if finding.checkpoint_id is None:
            return None
        found = self.history.previous(finding.source.name, finding.source.settings.key, finding.checkpoint_id)
        return None if found is None else found.audit_id

    def _is_done(self, finding: Finding) -> bool:
        found = self.history.find(finding.source.name, finding.revision, finding.source.settings.key)
        return found is not None and found.status in DONE

    def _newest(self, finding: Finding) -> str | None:
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

    def _say(self, finding: Finding, outcome: str, compared: dict[str, Any] | None, gate: str | None = None) -> None:
        worse = compared["worse"] if compared else []
        self._rows.append(
            WatchedRow(
                source=finding.source.name,
                revision=finding.revision,
                outcome=outcome,
                checkpoint_id=finding.checkpoint_id,
                audit_id=finding.audit_id,
                predecessor_audit_id=compared["predecessor_audit_id"] if compared else None,
                worse=[f"{row['measure']} of {row['item']} {row['delta']:+.4g}" for row in worse],
                gate=gate,
                reason=finding.reason,
            )
        )


def _question(finding: Finding) -> tuple[str | None, str]:
    return finding.checkpoint_id, finding.source.settings.key


def _row_of(finding: Finding) -> WatchedRevision:
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
