"""Sub-flow: is this the network that was trained, and does it compute one function?"""

from __future__ import annotations

from prefect import flow

from embaudit.errors import NotMeasurable
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.integrity import checkpoint_integrity
from embaudit_tasks.results import Staged, StagedCorpus, note


@flow(name="integrity", flow_run_name="integrity of {plan.source}", persist_result=False)
def integrity(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """The load certificate and the findings of all checks, in float32 whatever the audit runs in."""
    try:
        return checkpoint_integrity(plan.staging, plan.spec.in_float32)
    except NotMeasurable as error:
        return [note(f"Not checked, integrity: {error.happened}", plan.staging)]
