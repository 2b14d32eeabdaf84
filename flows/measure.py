"""The sub-flow that runs one measure, whichever it is.

Its steps are Prefect tasks; shards are computed perhaps several at a time, on other processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, ParamSpec

from prefect import Flow, flow

from embaudit.measures import MEASURES, Measure
from embaudit.steps.elsewhere import is_elsewhere
from embaudit.steps.progress import shard_done
from embaudit.steps.results import Staged, StagedCorpus
from embaudit.steps.step import Step
from embaudit.steps.workers import interrupts_held
from embaudit_flows.plan import AuditPlan
from embaudit_flows.runners import computing_elsewhere, on_one_server, pooled
from embaudit_tasks.audit_task import in_a_run
from embaudit_tasks.steps import run_step, submit_step

P = ParamSpec("P")


class PrefectTasks:
    """The ``Engine`` of a run within a flow."""

    def call(self, step: Step[P], staging: str, *args: P.args, **kwargs: P.kwargs) -> list[Staged]:
        return run_step(step, staging, *args, **kwargs)

    def call_shards(
        self, step: Step[...], staging: str, shards: Sequence[dict[str, Any]], **shared: Any
    ) -> list[Staged]:
        """If the settings say so, the flow's task runner takes the calls (``pooled``)."""
        if not is_elsewhere() or len(shards) < 2:
            return [part for shard in shards for part in run_step(step, staging, **shared, **shard)]
        staged: list[Staged] = []
        with computing_elsewhere(step.name):
            with on_one_server(), interrupts_held():
                futures = [submit_step(step, staging, **shared, **shard) for shard in shards]
            for future in futures:
                staged += future.result()
                shard_done(f"{step.name}, shards", len(shards))
        return staged


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
