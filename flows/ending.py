"""What follows publishing: the gate, the page, the passport, the artifacts in the Prefect UI, the run's final state.

The audit stays published, whatever happens here.

How a run ends that found a problem or failed: red in Prefect's UI, under the problem's name, with its words.

Prefect calls a run *Failed* whatever its flow raised, and shows a traceback. People look at names and colours in the
morning: so an error ends its run under a name of its own, and its message is what the error says. ``setup-server
--notify`` makes an automation for runs that are merely *Failed* or *Crashed*: those could not say a word themselves.

Shows an audit in the Prefect UI: its page as a Markdown artifact, its small tables as table artifacts.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, cast

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact
from prefect.states import Completed, Failed

from embaudit.declared.document import Page, Table
from embaudit.measures import MEASURES
from embaudit.pages.text import plain, render
from embaudit.steps.results import CheckpointSpec, Staged
from embaudit.steps.staging.stage import read_rows
from embaudit.system.settings import Settings
from embaudit.warehouse.gate import GateTripped
from embaudit.warehouse.gate.facts import tripped_error
from embaudit.words.errors import DoNotServe, EmbauditError, ProblemFound, is_of_interrupt, one_line
from embaudit_flows.notify import Notifier
from embaudit_flows.plan import AuditOutcome
from embaudit_flows.server.set_up import gpu_slot
from embaudit_tasks.publish import gate_audit, write_passport_of, write_report
from embaudit_tasks.steps import in_a_run, markdown_artifact, run_logger

if TYPE_CHECKING:
    from embaudit.warehouse.gate import GateVerdict
    from embaudit_flows.plan import AuditPlan


P = ParamSpec("P")
R = TypeVar("R")


def ends_in_words(failed: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a flow's function end its run under the name of the problem that it raised.

    Whoever calls the flow gets the error raised, as from any function.

    Args:
        failed: the name of a run that could not do its work.
    """

    def made(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if not in_a_run() or is_of_interrupt(error):
                    raise
                return cast(R, _red(error, failed))

        # Prefect looks for the types of parameters in the module of what it is given, which is this one.
        run.__signature__ = inspect.signature(function, eval_str=True)  # type: ignore[attr-defined]
        return run

    return made


def marked(name: str, message: str, outcome: R) -> R:
    """End the run as completed, under a problem's name: what somebody asked for who wants no red runs.

    A returned state becomes the run's; the caller gets its data.
    """
    return cast(R, Completed(name=name, message=message, data=outcome)) if in_a_run() else outcome


def _red(error: Exception, failed: str) -> Any:
    if isinstance(error, ProblemFound):
        return Failed(name=error.state, message=str(error), data=error)
    if isinstance(error, EmbauditError):
        run_logger().error("%s", error)
        return Failed(name=failed, message=str(error), data=error)
    run_logger().exception("An error that nobody expected:")
    return Failed(name=failed, message=f"{type(error).__name__}: {one_line(error)}", data=error)


# Tables small enough to read on a page; the others can be queried.
SHOWN_TABLES = tuple(table for measure in MEASURES.values() for table in measure.shown_tables)


def publish_verdict(source: str, line: str) -> None:
    """Publish a verdict, final or not, under a key of its checkpoint: while an audit runs, it is all that there is."""
    said = plain(line)
    markdown_artifact(f"audit-verdict-{key_of_source(source)}", said, f"Verdict on {plain(source)}: {said}")


def publish_artifacts(outcome: AuditOutcome, page: Page, staged: list[Staged]) -> None:
    """Publish artifacts with keys of their checkpoint, so that the UI keeps the history of each."""

    def key(name: str) -> str:
        return f"{name.replace('_', '-')}-{key_of_source(outcome.source)}"

    verdict = f": {plain(outcome.verdict['line'])}" if outcome.verdict else ""
    said = f"Audit of {plain(page.title)}{verdict}"
    # A browser follows no link from the server's page to a file.
    where = f"; its report is {plain(outcome.report)}" if outcome.report and not page.link else ""
    create_markdown_artifact(key=key("audit-summary"), markdown=render(page), description=f"{said}{where}")
    if page.link:
        create_link_artifact(
            link=page.link,
            key=key("audit-report"),
            link_text=f"Report of audit {outcome.audit_id}",
            description=f"Report of {plain(page.title)}",
        )
    of_audit = f"audit {outcome.audit_id} of {plain(outcome.source)}"
    for table in SHOWN_TABLES:
        rows = read_rows([part.path for part in staged if part.table == table])
        if rows:
            create_table_artifact(key=key(table), table=rows, description=f"{table}, {of_audit}")
    for part in (part for section in page.sections for part in section.parts):
        if isinstance(part, Table) and part.key and part.rows:
            create_table_artifact(key=key(part.key), table=part.records(), description=f"{part.title}, {of_audit}")


def key_of_source(source: str) -> str:
    """A checkpoint's name in the characters of a key, without a hub revision, which has the same history.

    Letters beyond ASCII are their code points, so that two names in another script stay two.
    """
    name = source if source.startswith("/") else source.partition("@")[0]
    readable = (one if one.isascii() else f"-{ord(one):x}-" for one in name.lower())
    return re.sub("[^a-z0-9]+", "-", "".join(readable)).strip("-") or "checkpoint"


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
