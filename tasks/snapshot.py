"""Refreshes the copy that dashboards read, after every publication, if ``EMBAUDIT_SNAPSHOT`` is set."""

from __future__ import annotations

from embaudit.system.settings import Settings
from embaudit.warehouse.export import export
from embaudit.words.errors import EmbauditError
from embaudit_tasks.audit_task import audit_task, run_logger


@audit_task("refresh snapshot")
def refresh_snapshot(warehouse: str) -> str | None:
    """Export the warehouse to the path in the settings. Whatever happens here, what was published stays published.

    Returns:
        Why it failed, for the audit's warnings; None if it succeeded, or if no path is set.
    """
    settings = Settings()
    if settings.snapshot is None:
        return None
    try:
        made = export(warehouse, settings.snapshot, settings.lock_wait_seconds, with_bulk=settings.snapshot_bulk)
    except EmbauditError as error:
        run_logger().warning("The snapshot was not refreshed: %s", error)
        return f"The snapshot was not refreshed. {error}"
    run_logger().info("Snapshot %s: %d rows", made.path, sum(made.rows.values()))
    return None
