"""Calling tasks with content keys: reuse what is staged, compute what is not, several at a time where asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from prefect import Flow, Task

from embaudit.settings import Settings
from embaudit_tasks.progress import shard_done
from embaudit_tasks.results import CheckpointSpec, Staged

GPU_TAG = "embaudit-gpu"
AnyFlow = TypeVar("AnyFlow", bound=Flow[..., Any])


def run_cached(task: Task[..., Any], spec: CheckpointSpec, **parameters: Any) -> Any:
    """Run a task whose result Prefect remembers under ``parameters["key"]``.

    Prefect remembers paths; where a staged file was deleted since, the task runs again.
    """
    configured = _configured(task, spec)
    result = configured(spec=spec, **parameters)
    return result if _is_there(result) else configured.with_options(refresh_cache=True)(spec=spec, **parameters)


def run_shards(
    task: Task[..., Any], spec: CheckpointSpec, shards: Sequence[dict[str, Any]], **shared: Any
) -> list[Any]:
    """One call of a task for each shard, in their order; ``EMBAUDIT_WORKERS`` of them at a time.

    With workers, the flow's task runner takes the calls (``worker_pool``), and shards go to GPUs by turns. A value
    depends on no shard but its own, so that results are the same either way.
    """
    workers = Settings().workers
    if workers < 2 or len(shards) < 2:
        return [run_cached(task, spec, **shared, **shard) for shard in shards]
    futures = []
    for index, shard in enumerate(shards):
        placed = spec.model_copy(update={"device": _device_of(spec.device, index)})
        futures.append(_configured(task, spec).submit(spec=placed, **shared, **shard))
    results = []
    for future in futures:
        results.append(future.result())
        shard_done(f"{task.name}, shards", len(shards))
    return [
        result if _is_there(result) else run_cached(task, spec, **shared, **shard)
        for result, shard in zip(results, shards, strict=True)
    ]


def pooled(subflow: AnyFlow) -> AnyFlow:
    """The sub-flow with ``EMBAUDIT_WORKERS`` processes for its shards; as it is where there is one worker."""
    workers = Settings().workers
    if workers < 2:
        return subflow
    from prefect.task_runners import ProcessPoolTaskRunner

    runner: Any = ProcessPoolTaskRunner(max_workers=workers)
    return cast(AnyFlow, subflow.with_options(task_runner=runner))


def _configured(task: Task[..., Any], spec: CheckpointSpec) -> Task[..., Any]:
    """On a GPU a task has a tag: ``prefect concurrency-limit create embaudit-gpu 1`` keeps audits off each other."""
    return task.with_options(tags={*task.tags, *({GPU_TAG} if spec.device.startswith("cuda") else set())})


def _device_of(device: str, shard: int) -> str:
    if device != "cuda":  # a CPU, or a GPU that was named
        return device
    import torch

    return f"cuda:{shard % max(torch.cuda.device_count(), 1)}"


def _is_there(result: Any) -> bool:
    parts: list[Staged] = list(result) if isinstance(result, list) else [result]
    return all(Path(part.path).is_file() for part in parts)
