"""A fine-tuned checkpoint and its backbone: two audits of the same question, and the link that makes deltas of them."""

from __future__ import annotations

from typing import Any

from prefect import flow
from pydantic import BaseModel

from embaudit.errors import EmbauditError
from embaudit.gate import GateTripped
from embaudit.settings import Settings
from embaudit_flows.audit import AuditOutcome, audit
from embaudit_tasks.backbone import link_backbone
from embaudit_tasks.snapshot import refresh_snapshot

# Ask the checkpoint itself: its model card, then its config.
NAMED_BY_CHECKPOINT = "card"


class BackboneOutcome(BaseModel):
    """Both audits, and how many figures they share."""

    checkpoint: AuditOutcome
    backbone: AuditOutcome
    backbone_source: str
    deltas: int


@flow(name="audit with backbone", flow_run_name="audit {checkpoint} against {backbone}", persist_result=False)
def audit_with_backbone(checkpoint: str, backbone: str, parameters: dict[str, Any] | None = None) -> BackboneOutcome:
    """Audit a checkpoint and its backbone with the same profile, corpora and seed.

    The backbone reads as many tokens as the checkpoint does, so that both see the same texts.

    Args:
        backbone: a checkpoint, or ``card``: the one that the model card or config of ``checkpoint`` names.
        parameters: of the flow ``audit``, for both.
    """
    given = dict(parameters or {})
    source = _source_of_backbone(checkpoint, backbone, given)
    tripped: GateTripped | None = None
    try:
        own = audit(checkpoint=checkpoint, **given)
    except GateTripped as error:
        # The audit is published: it is compared with its backbone all the same, and then ends as its gate says.
        tripped, own = error, error.audit
    # A policy is about the checkpoint; nobody is to be stopped by its backbone.
    given = {name: value for name, value in given.items() if name not in ("policy", "gate")}
    try:
        other = audit(checkpoint=source, **{**given, "max_length": given.get("max_length") or own.max_length})
    except EmbauditError as error:
        error.happened = f"The backbone {source} could not be audited: {error.happened}"
        error.kept = f"The audit {own.audit_id} of {checkpoint} is published. {error.kept}".strip()
        raise
    settings = Settings()
    deltas = link_backbone(
        own.audit_id, other.audit_id, own.warehouse, settings.lock_wait_seconds, str(settings.staging)
    )
    if settings.snapshot is not None:
        refresh_snapshot(own.warehouse)
    if tripped is not None:
        raise tripped
    return BackboneOutcome(checkpoint=own, backbone=other, backbone_source=source, deltas=deltas)


def _source_of_backbone(checkpoint: str, backbone: str, given: dict[str, Any]) -> str:
    if backbone != NAMED_BY_CHECKPOINT:
        return backbone
    from embaudit.checkpoint import resolve
    from embaudit.checkpoint.backbone import named_backbone

    resolved = resolve(
        checkpoint,
        allow_pickle=bool(given.get("allow_pickle")),
        trust_remote_code=bool(given.get("trust_remote_code")),
    )
    return named_backbone(resolved.folder, str(resolved.ref))
