"""Writes HTML pages to files that are complete or absent."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from embaudit.declared.document import Page
from embaudit.pages.audit import read_audit, state_page
from embaudit.pages.html import render
from embaudit.pages.index import NAME, index_page, read_index
from embaudit.system.address import Warehouse, warehouse_at
from embaudit.system.files import replace_atomically
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.named import find_state
from embaudit.words.errors import StorageError


class Written(NamedTuple):
    """Where a page was written, and the page itself, for other media: reading an audit takes some sixty queries."""

    path: Path
    page: Page


def write_page(
    warehouse: Warehouse | str, audit: str, folder: Path, out: Path | None = None, wait_seconds: float = 5.0
) -> Written:
    """Render a published audit's page to ``out``, or to ``folder`` under the audit's id.

    Args:
        audit: an id, its first digits, or ``latest``; or a checkpoint for its state, under the checkpoint's id.

    Raises:
        UsageError: if there is no such audit.
        CheckFailed: if it is not published, so there is nothing to show.
        WarehouseError: if the warehouse does not exist, is locked, or needs an upgrade.
        StorageError: if the file cannot be written.
    """
    with open_reader(warehouse, wait_seconds) as connection:
        state = find_state(connection, audit)
    # An id is hex digits, unless the warehouse was tampered with.
    path = out or folder / f"{quote(state.checkpoint_id or state.newest, safe='')}.html"
    audits = [(read_audit(warehouse, audit_id, wait_seconds), counted) for audit_id, counted in state.audits.items()]
    page = state_page(audits)
    write_file(render(page, _existing_page(path)), path)
    return Written(path, page)


def write_index(warehouse: Warehouse | str, folder: Path, out: Path | None = None, wait_seconds: float = 5.0) -> Path:
    """Render the page of a whole warehouse to ``out``, or to ``folder`` with the pages of its audits.

    Raises:
        WarehouseError: if the warehouse does not exist, is locked, or needs an upgrade.
        StorageError: if the file cannot be written.
    """
    path = out or folder / NAME
    facts = read_index(warehouse_at(warehouse), path.parent, wait_seconds)
    write_file(render(index_page(facts), _existing_page(path)), path)
    return path


def _existing_page(path: Path) -> str:
    """The existing page; empty if there is none or it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def write_file(text: str, path: Path) -> None:
    """Write text to a file that is complete or absent.

    Raises:
        StorageError: if the file cannot be written.
    """
    try:
        with replace_atomically(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"Cannot write the report {path}: {error}.",
            kept="The published tables are unchanged.",
            next_step="Free some space, or choose another file: embaudit report AUDIT --out FILE",
        ) from error
