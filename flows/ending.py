"""What follows publishing: the gate, the page, what the Prefect UI shows, and how the flow run ends.

The audit is published by then and stays so, whatever comes of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from prefect.logging import get_run_logger
from prefect.states import Completed

from embaudit.errors import EmbauditError
from embaudit.gate.verdict import tripped_error
from embaudit.page.audit import audit_page
from embaudit.page.facts import read_audit
from embaudit.settings import Settings
from embaudit_flows.notify import Notifier
from embaudit_flows.outcome import AuditOutcome
from embaudit_flows.summary import publish_artifacts
from embaudit_tasks.gate import gate_audit
from embaudit_tasks.report import write_report
from embaudit_tasks.results import Staged

if TYPE_CHECKING:
    from embaudit.gate import GateVerdict
    from embaudit_flows.plan import AuditPlan

TRIPPED_STATE = "Gate tripped"
PUBLISHED = "The audit is published: its tables stay, and so do the gate's findings (embaudit query gate-findings)."


def pass_gate(plan: AuditPlan, audit_id: str, policy: str | None, settings: Settings) -> GateVerdict | None:
    """The policy's verdict on a published audit, stored; None without a policy."""
    if policy is None:
        return None
    return gate_audit(audit_id, policy, plan.warehouse, settings.lock_wait_seconds, str(settings.staging))


def put_report(plan: AuditPlan, audit_id: str, settings: Settings, warnings: list[str]) -> str | None:
    """Write the page; where that fails it is one more warning, since ``embaudit report`` makes it any time."""
    try:
        return write_report(audit_id, plan.warehouse, settings.lock_wait_seconds, str(settings.reports))
    except EmbauditError as error:
        warnings.append(f"No report was written: {error.happened} Make it later: embaudit report {audit_id}")
        get_run_logger().warning(warnings[-1])
        return None


def show_and_end(
    outcome: AuditOutcome, on_trip: Literal["fail", "mark"], staged: list[Staged], link: str | None, notifier: Notifier
) -> AuditOutcome:
    """Artifacts first; then the flow's result, or what a tripped gate makes of it.

    Raises:
        GateTripped: if the gate tripped and is to fail the run; with the outcome, so that it can still be shown.
    """
    verdict = outcome.gate
    _show(outcome, staged, link)
    if verdict is None or verdict.outcome == "passed":
        return outcome
    error = tripped_error(verdict, PUBLISHED)
    if on_trip == "fail":
        error.audit = outcome
        raise error
    notifier.send(f"Audit of {outcome.source}: gate tripped", "\n".join((error.happened, PUBLISHED, error.next_step)))
    outcome.warnings.extend(warning for warning in notifier.warnings if warning not in outcome.warnings)
    # Prefect takes a state as the run's end, and hands its data to the caller: the run shows that the gate tripped.
    return cast(AuditOutcome, Completed(name=TRIPPED_STATE, message=error.happened, data=outcome))


def _show(outcome: AuditOutcome, staged: list[Staged], link: str | None) -> None:
    """The artifacts; where the audit cannot be read it is one more warning, since ``embaudit show`` can any time."""
    try:
        facts = read_audit(outcome.warehouse, outcome.audit_id, Settings().lock_wait_seconds)
    except EmbauditError as error:
        outcome.warnings.append(
            f"Prefect's page shows no summary: {error.happened} See it later: embaudit show {outcome.audit_id}"
        )
        get_run_logger().warning(outcome.warnings[-1])
        return
    publish_artifacts(outcome.audit_id, audit_page(facts, link or ""), staged)
