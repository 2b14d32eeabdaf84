"""The sub-flow that runs one measure, whichever it is."""

from __future__ import annotations

from functools import cache

from prefect import Flow, flow

from embaudit.measures import MEASURES, Measure
from embaudit.steps.results import Staged, StagedCorpus
from embaudit_flows.engine import PrefectTasks
from embaudit_flows.plan import AuditPlan
from embaudit_flows.runners import pooled
from embaudit_tasks.audit_task import in_a_run


def run_measure(
    measure: Measure, plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged]
) -> list[Staged]:
    """Run a measure as a flow of its name; returns what it staged.

    Args:
        earlier: what the measures before it staged.
    """
    needed = earlier if plan.profile.of(measure.settings).builds_on else []
    if not in_a_run():
        return measure.parts().measure(plan.run(ingested, needed))
    named = _named(measure.name)
    run = pooled(named) if measure.is_sharded else named
    staged: list[Staged] = run(measure.name, plan, ingested, needed)
    return staged


@cache
def _named(name: str) -> Flow[..., list[Staged]]:
    """Made once: Prefect derives the schema of all parameters anew, which takes as long as some measures."""
    return _measure.with_options(name=name)


@flow(flow_run_name="{name} of {plan.source}", persist_result=False)
def _measure(name: str, plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged]) -> list[Staged]:
    return MEASURES[name].parts().measure(plan.run(ingested, earlier, PrefectTasks()))
