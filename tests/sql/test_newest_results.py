"""An audit of one more measure takes nothing away from what queries say about a checkpoint."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plausible import audit_record, plausible_rows
from ready_warehouses import put_audits

from embaudit.measures import MEASURES
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.publish import AuditRecord
from embaudit.warehouse.query import named_queries

# These list audits, or say when the newest was.
ABOUT_AUDITS = {"audits", "checkpoints"}
MOVING = {"finished"}


def measured_again(measure: str, minutes: int) -> tuple[AuditRecord, dict[str, list[dict[str, Any]]]]:
    """A newer audit of c1 that has one measure alone, on other settings than before."""
    names = {"checkpoint", *(row.table.name for row in MEASURES[measure].rows)}
    rows = {name: found for name, found in plausible_rows("c1", "packaged:tiny").items() if name in names}
    return replace(audit_record(f"a{minutes}", "c1", minutes=minutes), seed=7), rows


@pytest.fixture
def again(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(filled, tmp_path / "warehouse.duckdb"))


@pytest.fixture(scope="module")
def before(filled: Path) -> dict[str, set[str]]:
    return said(filled)


def said(warehouse: Path) -> dict[str, set[str]]:
    """What each query answers, a string per row."""
    found = {}
    with open_reader(warehouse) as connection:
        for name, query in named_queries().items():
            cursor = connection.execute(query.sql)
            columns = [column[0] for column in cursor.description]
            kept = [place for place, column in enumerate(columns) if column not in MOVING]
            found[name] = {repr([row[place] for place in kept]) for row in cursor.fetchall()}
    return found


def lost(before: dict[str, set[str]], warehouse: Path) -> dict[str, set[str]]:
    after = said(warehouse)
    return {
        name: rows - after[name] for name, rows in before.items() if name not in ABOUT_AUDITS and rows - after[name]
    }


@pytest.mark.slow
def test_no_query_loses_a_row_to_an_audit_of_each_measure(before: dict[str, set[str]], again: Path) -> None:
    put_audits(again, [measured_again(measure, minutes) for minutes, measure in enumerate(MEASURES, 90)])
    assert not lost(before, again)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES)
def test_no_query_loses_a_row(before: dict[str, set[str]], again: Path, measure: str) -> None:
    put_audits(again, [measured_again(measure, 90)])
    assert not lost(before, again)
