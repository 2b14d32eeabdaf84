"""Calling a task with a content key: reuse what is staged, compute what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prefect import Task

from embaudit_tasks.results import CheckpointSpec, Staged

GPU_TAG = "embaudit-gpu"


def run_cached(task: Task[..., Any], spec: CheckpointSpec, **parameters: Any) -> Any:
    """Run a task whose result Prefect remembers under ``parameters["key"]``.

    Prefect remembers paths; where a staged file was deleted since, the task runs again. On a GPU the task
    carries a tag, so that ``prefect concurrency-limit create embaudit-gpu 1`` keeps audits off each other.
    """
    tags = {GPU_TAG} if spec.device.startswith("cuda") else set()
    configured = task.with_options(tags={*task.tags, *tags})
    result = configured(spec=spec, **parameters)
    if not all(Path(part.path).is_file() for part in _parts(result)):
        result = configured.with_options(refresh_cache=True)(spec=spec, **parameters)
    return result


def _parts(result: Any) -> list[Staged]:
    return list(result) if isinstance(result, list) else [result]
