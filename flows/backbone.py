"""Audits a fine-tuned checkpoint and its backbone in the same way, and links the audits for comparison."""

from __future__ import annotations

from prefect import flow
from pydantic import BaseModel

from embaudit.checkpoint import resolve
from embaudit.checkpoint.card import named_backbone
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.questions.audit import AuditRequest
from embaudit.system.settings import Settings
from embaudit.words.errors import EmbauditError, ProblemFound
from embaudit_flows.audit import AuditOutcome, audit
from embaudit_tasks.publish import link_backbone, refresh_snapshot

# The backbone named in the checkpoint's model card, or else in its config.
NAMED_BY_CHECKPOINT = "card"


class BackboneOutcome(BaseModel):
    """Both audits, and the number of figures that they share."""

    checkpoint: AuditOutcome
    backbone: AuditOutcome
    backbone_source: str
    deltas: int


@flow(name="audit with backbone", flow_run_name="audit {request.checkpoint} against {backbone}", persist_result=False)
def audit_with_backbone(request: AuditRequest, backbone: str) -> BackboneOutcome:
    """Audit a checkpoint and its backbone with the same profile, corpora and seed.

    The backbone gets the checkpoint's length limit and prompts, so that both read the same texts.

    Args:
        backbone: a checkpoint, or ``card`` for the one named in the checkpoint's model card or config.
    """
    source = _source_of_backbone(request, backbone)
    found: ProblemFound | None = None
    try:
        own = audit(request)
    except ProblemFound as error:
        # The audit is published, so it is still compared with its backbone; the error is raised at the end.
        found, own = error, error.audit
    # The policy is for the checkpoint: its backbone must not trip the gate.
    limit = None if own.max_length >= NO_LIMIT else own.max_length
    same = {"max_length": request.max_length or limit, **own.prompts}
    try:
        other = audit(request.changed(checkpoint=source, policy=None, gate="fail", **same))
    except EmbauditError as error:
        error.happened = f"The backbone {source} could not be audited: {error.happened}"
        error.kept = f"The audit {own.audit_id} of {request.checkpoint} is published. {error.kept}".strip()
        raise
    settings = Settings()
    deltas = link_backbone(
        own.audit_id, other.audit_id, own.warehouse, settings.lock_wait_seconds, str(settings.staging)
    )
    # Built before the comparison was stored.
    own._page = None
    if settings.snapshot is not None:
        refresh_snapshot(own.warehouse)
    if found is not None:
        raise found
    return BackboneOutcome(checkpoint=own, backbone=other, backbone_source=source, deltas=deltas)


def _source_of_backbone(request: AuditRequest, backbone: str) -> str:
    if backbone != NAMED_BY_CHECKPOINT:
        return backbone
    resolved = resolve(
        request.checkpoint, allow_pickle=request.allow_pickle, trust_remote_code=request.trust_remote_code
    )
    return named_backbone(resolved.folder, str(resolved.ref))
