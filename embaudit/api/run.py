"""What a terminal or a call from Python has done: an audit by its flow, and an answer that is kept, without Prefect."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from embaudit.questions.audit import AuditRequest
    from embaudit.questions.question import Question
    from embaudit.questions.report import Report
    from embaudit_flows.audit import AuditOutcome
    from embaudit_flows.backbone import BackboneOutcome


def run_audit(request: AuditRequest, backbone: str | None) -> tuple[AuditOutcome, BackboneOutcome | None]:
    """Run the requested flow: the audit, or the audit together with its backbone's.

    Runs are reported to the configured server. Where none is, an audit of which nothing has to be computed is no run,
    and any other has a server of its own.
    """
    from embaudit_flows.server.settings import has_server, server_for_call

    if backbone is None and not has_server():
        from embaudit_flows.audit import audit_again

        again = audit_again(request)
        if again is not None:
            return again, None
    with server_for_call():
        # Planning needs it, and a temporary server takes just as long to start.
        import torch  # noqa: F401

        from embaudit_flows.server.temporary import await_server

        await_server()
        if backbone is None:
            from embaudit_flows.audit import audit as audit_flow

            return audit_flow(request), None
        from embaudit_flows.backbone import audit_with_backbone

        both = audit_with_backbone(request, backbone)
        return both.checkpoint, both


def refuse_early(request: AuditRequest, backbone: str | None = None) -> None:
    """Report an invalid request before a server is started or torch is imported."""
    from embaudit.checkpoint.reference import CheckpointRef, resolve
    from embaudit.checkpoint.what_it_is import refuse_other_layouts
    from embaudit.measures.listed import load_profile

    for name in (request.checkpoint, backbone):
        if name is not None and name != "card":
            reference = CheckpointRef.parse(name)
            if reference.kind != "hub":
                refuse_other_layouts(resolve(reference).folder)
    load_profile(request.profile)
    if request.policy is not None:
        from embaudit.warehouse.gate import load_audit_policy

        load_audit_policy(request.policy)


def keep(question: Question, report: Report, key: str | None, asked: datetime, warehouse: str | None = None) -> str:
    """Keep an answer as flows keep theirs: the id under which the warehouse has it.

    Args:
        key, asked: ``answer_key`` and the time before it was found.

    Raises:
        EmbauditError: if it cannot be kept.
    """
    from embaudit.questions.answered import rows_of
    from embaudit.questions.report import AnswerRow
    from embaudit.system.settings import Settings, warehouse_at
    from embaudit.words.errors import StorageError
    from embaudit_tasks.publish import keep_answer, write_answer

    settings = Settings()
    rows = rows_of(question, report, key, asked)
    place = str(warehouse_at(warehouse or settings.warehouse_path))
    keep_answer.fn(rows, place, settings.lock_wait_seconds, str(settings.staging))
    report.remember()
    answer_id = str(rows[AnswerRow][0]["answer_id"])
    with suppress(StorageError):
        # The rows are kept, and a page can be made again.
        write_answer.fn(report, answer_id, str(settings.reports))
    return answer_id
