"""What follows publishing: the gate, the page, the passport, the artifacts in the Prefect UI, the run's final state.

The audit stays published, whatever happens here.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, cast

from prefect.states import Completed

from embaudit.errors import EmbauditError
from embaudit.gate.verdict import tripped_error
from embaudit.settings import Settings
from embaudit.steps.results import CheckpointSpec, Staged
from embaudit_flows.gpu import gpu_slot
from embaudit_flows.notify import Notifier
from embaudit_flows.outcome import AuditOutcome
from embaudit_flows.summary import publish_artifacts, publish_verdict
from embaudit_tasks.audit_task import in_a_run, run_logger
from embaudit_tasks.gate import gate_audit
from embaudit_tasks.report import write_passport_of, write_report

if TYPE_CHECKING:
    from embaudit.gate import GateVerdict
    from embaudit_flows.plan import AuditPlan

TRIPPED_STATE = "Gate tripped"
PUBLISHED_ALL = "The audit is published; a policy turns this verdict into a failure (docs/gate.md)."
PUBLISHED = "The audit is published: its tables stay, and so do the gate's findings (embaudit query gate-findings)."


def pass_gate(plan: AuditPlan, audit_id: str, policy: str | None, settings: Settings) -> GateVerdict | None:
    """Apply the policy to a published audit and store the verdict; None without a policy."""
    if policy is None:
        return None
    return gate_audit(audit_id, policy, plan.warehouse, settings.lock_wait_seconds, str(settings.staging))


def put_report(outcome: AuditOutcome, settings: Settings) -> None:
    """Write the page; failure is only a warning, since ``embaudit report`` can write it later."""
    try:
        outcome.report, outcome._page = write_report(
            outcome.audit_id, outcome.warehouse, settings.lock_wait_seconds, str(settings.reports)
        )
    except EmbauditError as error:
        later = f"Make it later: embaudit report {outcome.audit_id}"
        outcome.warnings.append(f"No report was written: {error.happened} {later}")
        run_logger().warning(outcome.warnings[-1])


def put_passport(spec: CheckpointSpec, outcome: AuditOutcome, settings: Settings) -> None:
    """Write the checkpoint's passport beside the page; failure is only a warning, as a command can write it later."""
    try:
        with gpu_slot(spec.device):
            outcome.passport = write_passport_of(spec, str(settings.reports))
    except EmbauditError as error:
        later = f"Make it later: embaudit passport {outcome.source}"
        outcome.warnings.append(f"No passport was written: {error.happened} {later}")
        run_logger().warning(outcome.warnings[-1])


def show_and_end(
    outcome: AuditOutcome, on_trip: Literal["fail", "mark"], staged: list[Staged], link: str | None, notifier: Notifier
) -> AuditOutcome:
    """Publish the artifacts, then end the flow: with its result, or as a tripped gate requires.

    Raises:
        GateTripped: if the gate tripped and ``on_trip`` is ``fail``; has the outcome, so that it can still be shown.
    """
    verdict = outcome.gate
    if in_a_run():
        _say_verdict(outcome)
        _show(outcome, staged, link)
    if verdict is None or verdict.outcome == "passed":
        if outcome.verdict.get("kind") == "do not serve":
            notifier.send(f"Audit of {outcome.source}: do not serve", f"{outcome.verdict['line']}\n{PUBLISHED_ALL}")
            outcome.warnings.extend(warning for warning in notifier.warnings if warning not in outcome.warnings)
        return outcome
    error = tripped_error(verdict, PUBLISHED)
    if on_trip == "fail":
        error.audit = outcome
        raise error
    notifier.send(f"Audit of {outcome.source}: gate tripped", "\n".join((error.happened, PUBLISHED, error.next_step)))
    outcome.warnings.extend(warning for warning in notifier.warnings if warning not in outcome.warnings)
    # A returned state becomes the run's final state, which shows that the gate tripped; the caller gets its data.
    if not in_a_run():
        return outcome
    return cast(AuditOutcome, Completed(name=TRIPPED_STATE, message=error.happened, data=outcome))


def _say_verdict(outcome: AuditOutcome) -> None:
    """The verdict in the run's log and among its artifacts, unless nothing that decides it was measured."""
    if outcome.verdict.get("kind", "not checked") == "not checked":
        return
    line = outcome.verdict["line"]
    level = logging.WARNING if outcome.verdict["kind"] == "do not serve" else logging.INFO
    run_logger().log(level, "%s: %s", outcome.source, line)
    publish_verdict(outcome.source, line)


def _show(outcome: AuditOutcome, staged: list[Staged], link: str | None) -> None:
    """Publish the artifacts; failure to read the audit is only a warning, since ``embaudit show`` can show it later."""
    try:
        page = outcome.page(Settings().lock_wait_seconds)
    except EmbauditError as error:
        outcome.warnings.append(
            f"Prefect's page shows no summary: {error.happened} See it later: embaudit show {outcome.audit_id}"
        )
        run_logger().warning(outcome.warnings[-1])
        return
    publish_artifacts(outcome, replace(page, link=link or ""), staged)
