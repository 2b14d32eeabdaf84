"""Runs the audit flow for the command line and Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from embaudit.questions.audit import AuditRequest
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
