"""The tasks of maintenance: prune rows, delete files that are no longer needed, reclaim space."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefect import task

from embaudit.steps.staging.files import delete_leftovers, find_leftovers
from embaudit.system.address import warehouse_at
from embaudit.warehouse.prune import Keep, prune
from embaudit.warehouse.vacuum import vacuum


@task(name="prune rows", task_run_name="prune rows", persist_result=False)
def prune_rows(
    warehouse: str, wait_seconds: float, keep_days: int | None, keep_audits: int | None
) -> list[dict[str, Any]]:
    """Delete the detail rows of audits that no rule keeps; returns one row per audit and table."""
    return [asdict(one) for one in prune(warehouse, wait_seconds, Keep(keep_days, keep_audits))]


@task(name="delete staged files", task_run_name="delete staged files", persist_result=False)
def delete_staged(staging: str, warehouse: str, days: int) -> dict[str, int]:
    """Delete staged files not created or used for ``days`` days, and partial files; returns their number and bytes."""
    place = warehouse_at(warehouse)
    left = find_leftovers(staging, place if isinstance(place, Path) else None, days)
    delete_leftovers(left)
    return {"files": left.files, "bytes": left.bytes}


@task(name="vacuum", task_run_name="vacuum", persist_result=False)
def vacuum_warehouse(warehouse: str, wait_seconds: float) -> dict[str, Any]:
    """Reclaim the space of deleted rows."""
    return asdict(vacuum(warehouse, wait_seconds))
