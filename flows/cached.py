"""Calling tasks with content keys: reuse what is staged, compute what is not, several at a time where asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from prefect import Task

from embaudit_flows.results_storage import results_beside
from embaudit_flows.runners import computing_elsewhere, interrupts_held, is_elsewhere, pooled
from embaudit_tasks.progress import shard_done
from embaudit_tasks.results import CheckpointSpec, Staged

__all__ = ["pooled", "run_cached", "run_shards"]

GPU_TAG = "embaudit-gpu"


def run_cached(task: Task[..., Any], spec: CheckpointSpec, **parameters: Any) -> Any:
    """Run a task whose result Prefect remembers under ``parameters["key"]``.

    Prefect remembers paths; where a staged file was deleted since, the task runs again.
    """
    configured = _configured(task, spec, parameters["staging"])
    result = configured(spec=spec, **parameters)
    return result if _is_there(result) else configured.with_options(refresh_cache=True)(spec=spec, **parameters)


def run_shards(
    task: Task[..., Any], spec: CheckpointSpec, shards: Sequence[dict[str, Any]], /, **shared: Any
) -> list[Any]:
    """One call of a task for each shard, in their order; several at a time where ``EMBAUDIT_RUNNER`` says so.

    Then the flow's task runner takes the calls (``pooled``). A value depends on no shard but its own, so that results
    are the same either way.
    """
    if not is_elsewhere() or len(shards) < 2:
        return [run_cached(task, spec, **shared, **shard) for shard in shards]
    configured = _configured(task, spec, shared["staging"])
    results = []
    with computing_elsewhere(task.name):
        with interrupts_held():
            futures = [configured.submit(spec=spec, **shared, **shard) for shard in shards]
        for future in futures:
            results.append(future.result())
            shard_done(f"{task.name}, shards", len(shards))
    return [
        result if _is_there(result) else run_cached(task, spec, **shared, **shard)
        for result, shard in zip(results, shards, strict=True)
    ]


def _configured(task: Task[..., Any], spec: CheckpointSpec, staging: str) -> Task[..., Any]:
    """On a GPU a task has a tag, to be found by in the UI; what keeps audits off each other is ``gpu_slot``."""
    options: dict[str, Any] = {}
    if spec.device.startswith("cuda"):
        options["tags"] = {*task.tags, GPU_TAG}
    storage = results_beside(staging)
    if storage is not None:
        options["result_storage"] = storage
    return task.with_options(**options) if options else task


def _is_there(result: Any) -> bool:
    from embaudit.warehouse.files import is_file

    parts: list[Staged] = list(result) if isinstance(result, list) else [result]
    return all(is_file(part.path) for part in parts)
