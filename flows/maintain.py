"""Scheduled maintenance: prunes detail rows, deletes old staged files, reclaims space, refreshes the snapshot."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from pydantic import BaseModel

from embaudit.pages.text import plain
from embaudit.system.settings import Settings, warehouse_at
from embaudit_tasks.publish import delete_staged, prune_rows, refresh_snapshot, vacuum_warehouse

MEBIBYTE = 1024**2
ARTIFACT = "embaudit-maintenance"


class MaintenanceOutcome(BaseModel):
    """What was deleted, and how much space that freed."""

    warehouse: str
    rows: int
    audits: int
    staged_files: int
    freed_staged: int
    freed_warehouse: int
    vacuum: str
    warnings: list[str]


@flow(name="maintain", flow_run_name="maintain", persist_result=False)
def maintain(
    warehouse: str | None = None,
    keep_days: int | None = 90,
    keep_audits: int | None = 2,
    staged_days: int | None = 30,
    vacuum: bool = True,
) -> MaintenanceOutcome:
    """Keep the warehouse and the staging folder small. Summaries, verdicts, corpora and the log are kept forever.

    Args:
        warehouse: DuckDB file or DuckLake address; default from ``EMBAUDIT_WAREHOUSE`` or ``EMBAUDIT_HOME``.
        keep_days: audits finished within this many days keep their rows per token, text and pair.
        keep_audits: so do this many of the newest audits of each checkpoint. If both are null, no rows are deleted.
        staged_days: staged files not created or used for this many days are deleted; null: none.
        vacuum: reclaim space: a file is rewritten if worthwhile, a lake's files are merged and cleaned up.
    """
    settings = Settings()
    place = str(warehouse_at(warehouse) if warehouse else settings.warehouse_path)
    wait = settings.lock_wait_seconds
    has_rule = keep_days is not None or keep_audits is not None
    pruned = prune_rows(place, wait, keep_days, keep_audits) if has_rule else []
    staged = {"files": 0, "bytes": 0}
    if staged_days is not None:
        staged = delete_staged(str(settings.staging), place, staged_days)
    vacuumed: dict[str, Any] = (
        vacuum_warehouse(place, wait) if vacuum else {"before": 0, "after": 0, "done": "not asked for"}
    )
    why = refresh_snapshot(place) if settings.snapshot is not None else None
    outcome = MaintenanceOutcome(
        warehouse=place,
        rows=sum(one["rows"] for one in pruned),
        audits=len({one["audit_id"] for one in pruned}),
        staged_files=staged["files"],
        freed_staged=staged["bytes"],
        freed_warehouse=vacuumed["before"] - vacuumed["after"],
        vacuum=vacuumed["done"],
        warnings=[why] if why else [],
    )
    _show(outcome, pruned)
    return outcome


def _show(outcome: MaintenanceOutcome, pruned: list[dict[str, Any]]) -> None:
    create_markdown_artifact(
        key=ARTIFACT,
        description="What maintenance freed",
        markdown="\n".join(
            (
                plain(outcome.warehouse),
                "",
                f"- {outcome.rows:,} rows of {outcome.audits:,} audits deleted; the table `pruning` lists them",
                f"- {outcome.staged_files:,} staged files deleted, {outcome.freed_staged / MEBIBYTE:,.1f} MiB",
                f"- {outcome.freed_warehouse / MEBIBYTE:,.1f} MiB of the warehouse given back ({outcome.vacuum})",
                *(f"- {plain(warning)}" for warning in outcome.warnings),
            )
        ),
    )
    if pruned:
        create_table_artifact(key=f"{ARTIFACT}-rows", table=pruned, description="Rows that maintenance deleted")
