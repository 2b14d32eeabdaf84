"""Runs a watch's audits, and records what it does: rows of what was seen, comparisons, and the night itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

from prefect.states import Completed

from embaudit.questions.audit import AuditRequest
from embaudit.system.installed import content_key
from embaudit.system.settings import Settings
from embaudit.warehouse.answers import accepted_answers
from embaudit.warehouse.tables.audits import DONE, Status
from embaudit.watch.asked import AnsweredNow, AskedEntry
from embaudit.watch.history import History, WatchedRevision
from embaudit.watch.look import SourceState, judged
from embaudit.watch.open_items import OpenItem, read_accepted_sources, read_open
from embaudit.watch.outcome import WatchedRow, WatchOutcome
from embaudit.words.errors import EmbauditError, ProblemFound, is_of_interrupt, one_line
from embaudit_flows.ask import answers_of_entry
from embaudit_flows.ending import marked
from embaudit_flows.server.set_up import gpu_slot
from embaudit_tasks.publish import gate_now, write_overview, write_report
from embaudit_tasks.steps import in_a_run, run_logger
from embaudit_tasks.watch import (
    AuditEnd,
    audit_on_worker,
    compare_indexes,
    compare_with_predecessor,
    record_night,
    record_watched,
    require_deployment,
)

__all__ = ["AuditEnd", "Auditor", "in_this_process", "on_workers", "require_deployment"]

# An auditor yields the ends in the order of the findings, each as soon as it is known.
Auditor = Callable[[list[SourceState]], Iterator[AuditEnd]]


def in_this_process(warehouse: str | None) -> Auditor:
    """Run audits as sub-flows of the watch, one at a time."""

    def run(findings: list[SourceState]) -> Iterator[AuditEnd]:
        for finding in findings:
            yield _audit(finding, warehouse)

    return run


def on_workers(deployment: str, place: str, warehouse: str | None, timeout_seconds: float, again: bool) -> Auditor:
    """Run audits as runs of a deployment, all submitted before waiting for the first."""

    def run(findings: list[SourceState]) -> Iterator[AuditEnd]:
        futures = [
            audit_on_worker.submit(
                deployment,
                _request(finding, warehouse),
                source=finding.source.name,
                checkpoint_id=finding.checkpoint_id or "",
                parameters_key=finding.source.settings.key,
                warehouse=place,
                timeout_seconds=timeout_seconds,
                again=again,
            )
            for finding in findings
        ]
        for future in futures:
            try:
                end = future.result()
            except Exception as error:
                end = _failed(error)
            yield end

    return run


def _audit(finding: SourceState, warehouse: str | None) -> AuditEnd:
    from embaudit_flows.audit import audit

    try:
        outcome = audit(_request(finding, warehouse))
    except Exception as error:
        return _failed(error)
    return AuditEnd(audit_id=outcome.audit_id)


def _request(finding: SourceState, warehouse: str | None) -> AuditRequest:
    return AuditRequest.with_settings(finding.source.settings, finding.reference, warehouse)


def _failed(error: Exception) -> AuditEnd:
    """An audit's error as the recorded reason: whatever it was, except an interrupt, the other audits go on.

    A problem that the audit found is none: it is published.
    """
    if is_of_interrupt(error):
        raise error
    if isinstance(error, ProblemFound) and error.audit is not None:
        return AuditEnd(audit_id=error.audit.audit_id)
    if isinstance(error, EmbauditError):
        return AuditEnd(reason=error.happened)
    return AuditEnd(reason=f"{type(error).__name__}: {one_line(error)}")


# A gate that only marks, where nothing else is wrong.
TRIPPED_STATE = "Gate tripped"


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
        self._started = datetime.now(UTC)
        self._rows: list[WatchedRow] = []
        self._answers: list[AnsweredNow] = []

    def write(self, findings: list[SourceState]) -> None:
        """Write what needs no audit; content that follows other content is compared with it."""
        before = [(self._previous(finding), self._newest(finding), self._is_done(finding)) for finding in findings]
        record_watched([self.history.put(_row_of(finding)) for finding in findings], *self._where)
        for finding, (previous, newest, was_done) in zip(findings, before, strict=True):
            comes_next = previous is not None and newest != finding.checkpoint_id
            compared = self._compare(finding.audit_id, previous) if finding.audit_id and comes_next else None
            self._say(finding, "seen" if was_done else str(finding.status), compared)

    def audit(self, findings: list[SourceState], auditor: Auditor) -> None:
        """Audit what is new: the same content under the same settings once, whatever names it came under."""
        first: dict[tuple[str | None, str], SourceState] = {}
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

    def answer(self, entries: list[AskedEntry]) -> None:
        """Ask each question; what cannot be answered is said, and stops no other."""
        for entry in entries:
            self._answers += answers_of_entry(entry, self._warehouse)

    def forget(self, listed: set[str]) -> None:
        """Close what could not be read and is neither there nor on the list any more."""
        left = [
            row
            for row in self.history.unread()
            if row.source not in listed and row.source.startswith("/") and not Path(row.source).exists()
        ]
        record_watched([self.history.put(row.model_copy(update={"status": "removed"})) for row in left], *self._where)

    def finish(self, watch_list: str) -> WatchOutcome:
        """Show the outcome in the UI, record the night, and end its run.

        Raises:
            NightProblem: if something is wrong that nobody accepted; it has the outcome.
        """
        outcome = self._outcome()
        problem = outcome.problem()
        state = problem.state if problem else TRIPPED_STATE if outcome.marked else "Completed"
        for found in outcome.problems:
            run_logger().warning("%s", found)
        now = datetime.now(UTC)
        row = {
            "run_key": content_key(watch_list=watch_list, started=self._started.isoformat()),
            "watch_list": watch_list,
            "started": self._started,
            "seconds": (now - self._started).total_seconds(),
            "state": state,
            "exit_code": problem.exit_code if problem else 0,
            "message": outcome.summary,
            "sources": len(outcome.rows),
            "audited": sum(row.outcome == "audited" for row in outcome.rows),
            "answers": len(outcome.answers),
            "problem_count": len(outcome.problems),
            "problems": [
                {"state": one.happening.state, "of": one.subject, "said": one.said} for one in outcome.problems
            ],
        }
        record_night(row, *self._where)
        self._show(outcome)
        if problem is not None and (self._settings.problems == "fail" or outcome.always_fails):
            raise problem
        if state != "Completed":
            return marked(state, outcome.summary, outcome)
        # A returned state becomes the run's, with its message; the caller gets its data.
        return cast(WatchOutcome, Completed(message=outcome.summary, data=outcome)) if in_a_run() else outcome

    def _outcome(self) -> WatchOutcome:
        """What was found, with what somebody accepted of it."""
        wait = self._settings.lock_wait_seconds
        ids = [one.answer_id for one in self._answers if one.level == "problem"]
        answers = accepted_answers(self._warehouse, ids, wait)
        is_unread = any(row.outcome in ("failed", "gone") for row in self._rows)
        accepted = read_accepted_sources(self._warehouse, wait) if is_unread else set()
        return WatchOutcome(
            warehouse=self._warehouse,
            rows=[row.model_copy(update={"is_accepted": row.source in accepted}) for row in self._rows],
            answers=[one.model_copy(update={"is_accepted": one.answer_id in answers}) for one in self._answers],
        )

    def _show(self, outcome: WatchOutcome) -> None:
        from prefect.artifacts import create_link_artifact, create_table_artifact

        create_table_artifact(key="watch", table=outcome.table(), description=outcome.summary)
        # As with an audit's page, an error here must not fail the watch.
        with suppress(EmbauditError):
            write_overview(self._warehouse, self._settings.lock_wait_seconds, str(self._settings.reports))
            if link := self._settings.report_link("index"):
                create_link_artifact(link, key="embaudit-index", description="All audits")

    def _finish(self, finding: SourceState, end: AuditEnd) -> None:
        """Write how an audit ended, and what got worse."""
        previous = self._previous(finding)
        status: Status = "audited" if end.audit_id else "running" if end.is_running else "failed"
        reason = end.reason or finding.reason
        done = finding.model_copy(update={"status": status, "audit_id": end.audit_id, "reason": reason})
        record_watched([self.history.put(_row_of(done))], *self._where)
        compared = self._compare(end.audit_id, previous) if end.audit_id else None
        self._say(done, status, compared, self._index(done), audit_failed=end.has_failed)

    def _previous(self, finding: SourceState) -> str | None:
        """The audit of the source's newest revision with other content."""
        if finding.checkpoint_id is None:
            return None
        found = self.history.previous(finding.source.name, finding.source.settings.key, finding.checkpoint_id)
        return None if found is None else found.audit_id

    def _is_done(self, finding: SourceState) -> bool:
        found = self.history.find(finding.source.name, finding.revision, finding.source.settings.key)
        return found is not None and found.status in DONE

    def _newest(self, finding: SourceState) -> str | None:
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

    def _index(self, finding: SourceState) -> str | None:
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

    def _say(
        self,
        finding: SourceState,
        outcome: str,
        compared: dict[str, Any] | None,
        index: str | None = None,
        *,
        audit_failed: bool = False,
    ) -> None:
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
                audit_failed=audit_failed,
            )
        )

    def _open(self, finding: SourceState) -> tuple[str | None, list[OpenItem], datetime | None]:
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


def _question(finding: SourceState) -> tuple[str | None, str]:
    return finding.checkpoint_id, finding.source.settings.key


def _row_of(finding: SourceState) -> WatchedRevision:
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
