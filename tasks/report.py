"""Writes files beside the warehouse: the HTML pages of one audit and of all, and a checkpoint's passport."""

from __future__ import annotations

from pathlib import Path

from embaudit.declared.document import Page
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.pages.write import write_index, write_page
from embaudit.questions.passport.file import read_passport, write_passport
from embaudit.questions.passport.make import make_passport
from embaudit.steps.results import CheckpointSpec, checkpoint_of, in_full_precision
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
