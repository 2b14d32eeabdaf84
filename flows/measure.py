"""The sub-flow that runs one measure, whichever it is."""

from __future__ import annotations

from prefect import flow

from embaudit.measures import MEASURES, Measure
from embaudit.measures.run import Run
from embaudit.steps.results import Staged, StagedCorpus
from embaudit_flows.engine import PrefectTasks
from embaudit_flows.plan import AuditPlan
from embaudit_flows.runners import pooled


def run_measure(
    measure: Measure, plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged]
) -> list[Staged]:
    """Run a measure as a flow of its name; returns what it staged.

    Args:
        earlier: what the measures before it staged.
    """
    named = _measure.with_options(name=measure.name)
    run = pooled(named) if measure.is_sharded else named
    needed = earlier if plan.profile.of(measure.settings).builds_on else []
    staged: list[Staged] = run(measure.name, plan, ingested, needed)
    return staged


@flow(flow_run_name="{name} of {plan.source}", persist_result=False)
def _measure(name: str, plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged]) -> list[Staged]:
    return MEASURES[name].parts().measure(run_of(plan, ingested, earlier))


def run_of(plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged]) -> Run:
    """What a plan gives a measure."""
    return Run(
        spec=plan.spec,
        staging=plan.staging,
        seed=plan.seed,
        profile=plan.profile,
        widths=plan.widths,
        corpora=ingested,
        earlier=earlier,
        limit_tokens=plan.limit_tokens,
        pair_sources=plan.pair_sources,
        pair_contents=plan.pair_contents,
        engine=PrefectTasks(),
    )
