"""Runs the shards of a step, one after another or, if the settings say so, several at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embaudit_flows.runners import computing_elsewhere, interrupts_held, is_elsewhere, on_one_server
from embaudit_tasks.progress import shard_done
from embaudit_tasks.results import Staged, TokenShard
from embaudit_tasks.steps import Step


def run_shards(step: Step[...], staging: str, shards: Sequence[dict[str, Any]], **shared: Any) -> list[Staged]:
    """Call a step once per shard; returns the staged files in the order of the shards.

    If the settings say so, the flow's task runner takes the calls (``pooled``). No value depends on another shard, so
    the results are the same either way.

    Args:
        shards: the arguments that differ between calls.
    """
    if not is_elsewhere() or len(shards) < 2:
        return [part for shard in shards for part in step(staging, **shared, **shard)]
    staged: list[Staged] = []
    with computing_elsewhere(step.name):
        with on_one_server(), interrupts_held():
            futures = [step.submit(staging, **shared, **shard) for shard in shards]
        for future in futures:
            staged += future.result()
            shard_done(f"{step.name}, shards", len(shards))
    return staged


def token_shards(token_ids: np.ndarray, size: int, total: int, label: str) -> list[dict[str, Any]]:
    """Shards of ``size`` tokens each.

    Args:
        total, label: the same for all shards (``TokenShard``).
    """
    return [
        {
            "shard": TokenShard(
                token_ids=token_ids[start : start + size].tolist(), number=number, total=total, label=label
            )
        }
        for number, start in enumerate(range(0, len(token_ids), size))
    ]
