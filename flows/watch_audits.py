"""Runs a watch's audits: one after another in this process, or all at once on workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from embaudit.questions.audit import AuditRequest
from embaudit.watch.look import SourceState
from embaudit.words.errors import EmbauditError, ProblemFound, is_of_interrupt, one_line
from embaudit_tasks.watch_audit import AuditEnd, audit_on_worker, require_deployment

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
