"""Writes files beside the warehouse: the HTML pages of one audit and of all, and a checkpoint's passport.

The tasks of maintenance: prune rows, delete files that are no longer needed, reclaim space.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from prefect import task

from embaudit.declared.document import Page
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.pages.write import write_index, write_page
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.passport import read_passport, write_passport
from embaudit.steps.results import CheckpointSpec, checkpoint_of, in_full_precision
from embaudit.steps.staging.files import delete_leftovers, find_leftovers
from embaudit.system.address import warehouse_at
from embaudit.warehouse.prune import Keep, prune, vacuum
from embaudit_tasks.audit_task import audit_task


@audit_task("write report", "write report of {audit_id}")
def write_report(audit_id: str, warehouse: str, wait_seconds: float, folder: str) -> tuple[str, Page]:
    """Write ``FOLDER/<audit_id>.html``, replacing an earlier one; returns its path, and the page."""
    written = write_page(warehouse, audit_id, Path(folder), wait_seconds=wait_seconds)
    return str(written.path), written.page


@audit_task("write index")
def write_overview(warehouse: str, wait_seconds: float, folder: str) -> str:
    """Write ``FOLDER/index.html``, replacing an earlier one; returns its path."""
    return str(write_index(warehouse, Path(folder), wait_seconds=wait_seconds))


@audit_task("write passport", "write passport of {spec.reference}")
def write_passport_of(spec: CheckpointSpec, folder: str) -> str:
    """Write ``FOLDER/<checkpoint_id>.passport.json``, unless it is there; returns its path."""
    path = Path(folder) / f"{spec.checkpoint_id}.passport.json"
    # The id covers the settings that change vectors; a file that was edited is kept, and the writing says so.
    if path.exists() and read_passport(path).checkpoint.id == spec.checkpoint_id:
        return str(path)
    full = spec.in_float32
    with in_full_precision("a passport"):
        write_passport(make_passport(CheckpointFunction(checkpoint_of(full)), full.load_options), path)
    return str(path)


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
