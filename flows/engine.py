"""How an audit computes steps: as Prefect tasks; shards perhaps several at a time, on other processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ParamSpec

from embaudit.steps.elsewhere import is_elsewhere
from embaudit.steps.progress import shard_done
from embaudit.steps.results import Staged
from embaudit.steps.step import Step
from embaudit.steps.workers import interrupts_held
from embaudit_flows.runners import computing_elsewhere, on_one_server
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
