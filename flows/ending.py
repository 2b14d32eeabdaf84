"""What follows publishing: the gate, the page, the passport, the artifacts in the Prefect UI, the run's final state.

The audit stays published, whatever happens here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from embaudit.steps.results import CheckpointSpec, Staged
from embaudit.system.settings import Settings
from embaudit.warehouse.gate import GateTripped
from embaudit.warehouse.gate.verdict import tripped_error
from embaudit.words.errors import DoNotServe, EmbauditError
from embaudit_flows.gpu import gpu_slot
from embaudit_flows.notify import Notifier
from embaudit_flows.outcome import AuditOutcome
from embaudit_flows.red import marked
from embaudit_flows.summary import publish_artifacts, publish_verdict
from embaudit_tasks.audit_task import in_a_run, run_logger
from embaudit_tasks.gate import gate_audit
from embaudit_tasks.report import write_passport_of, write_report

if TYPE_CHECKING:
    from embaudit.warehouse.gate import GateVerdict
    from embaudit_flows.plan import AuditPlan

PUBLISHED = "The audit is published: its tables stay, and so do the findings (embaudit query open-items)."


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
    """Publish the artifacts, then end the flow: with its result, or as the problem that was found requires.

    Raises:
        ProblemFound: a verdict not to serve, or a gate that tripped; it has the outcome, so that it can still be shown.
    """
    if in_a_run():
        _say_verdict(outcome)
        _show(outcome, staged, link)
    tripped = _tripped(outcome)
    problem = _broken(outcome, tripped) or tripped
    if problem is None:
        return outcome
    run_logger().warning("%s", problem.happened)
    # A policy says itself whether it fails a run; a verdict does unless nobody wants red runs.
    fails = problem if not isinstance(problem, DoNotServe) or Settings().problems == "fail" else tripped
    if fails is not None and (isinstance(fails, DoNotServe) or on_trip == "fail"):
        fails.audit = outcome
        raise fails
    notifier.send(f"Audit of {outcome.source}: {problem.state.lower()}", str(problem))
    outcome.warnings.extend(warning for warning in notifier.warnings if warning not in outcome.warnings)
    return marked(problem.state, str(problem), outcome)


def _tripped(outcome: AuditOutcome) -> GateTripped | None:
    gate = outcome.gate
    return None if gate is None or gate.outcome == "passed" else tripped_error(gate, PUBLISHED)


def _broken(outcome: AuditOutcome, tripped: GateTripped | None) -> DoNotServe | None:
    """The verdict not to serve the checkpoint, which is worse than a gate that tripped, too."""
    if outcome.verdict.get("kind") != "do not serve":
        return None
    said = [f"{outcome.source}: {outcome.verdict['line']}", *([tripped.happened] if tripped else [])]
    return DoNotServe(" ".join(said), kept=PUBLISHED, next_step=f"See the report: embaudit report {outcome.audit_id}")


def _say_verdict(outcome: AuditOutcome) -> None:
    """The verdict in the run's log and among its artifacts, unless nothing that decides it was measured."""
    if outcome.verdict.get("kind", "not checked") == "not checked":
        return
    line = outcome.verdict["line"]
    if outcome.verdict["kind"] != "do not serve":
        run_logger().info("%s: %s", outcome.source, line)
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
