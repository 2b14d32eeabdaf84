"""The copy that dashboards read, refreshed after every publication where ``EMBAUDIT_SNAPSHOT`` names a place."""

from __future__ import annotations

from prefect import task
from prefect.logging import get_run_logger

from embaudit.errors import EmbauditError
from embaudit.settings import Settings
from embaudit.warehouse.export import export


@task(name="refresh snapshot", persist_result=False)
def refresh_snapshot(warehouse: str) -> str | None:
    """Export the warehouse to where the setting says. What was published stays published whatever happens here.

    Returns:
        Why it could not be done, for the audit's warnings; None if it was, or nobody asked.
    """
    settings = Settings()
    if settings.snapshot is None:
        return None
    try:
        made = export(warehouse, settings.snapshot, settings.lock_wait_seconds, with_bulk=settings.snapshot_bulk)
    except EmbauditError as error:
        get_run_logger().warning("The snapshot was not refreshed: %s", error)
        return f"The snapshot was not refreshed. {error}"
    get_run_logger().info("Snapshot %s: %d rows", made.path, sum(made.rows.values()))
    return None
