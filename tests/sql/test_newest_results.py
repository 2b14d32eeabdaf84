"""An audit of one more measure takes nothing away from what queries say about a checkpoint."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from plausible import audit_record, plausible_rows
from ready_warehouses import put_audit

from embaudit.measures import MEASURES
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.query import named_queries

# These list audits, or say when the newest was.
ABOUT_AUDITS = {"audits", "checkpoints"}
MOVING = {"finished"}


@pytest.fixture(scope="module", params=list(MEASURES))
def once_more(request: pytest.FixtureRequest, filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The warehouse with a newer audit of c1 that has one measure alone, on other settings than before."""
    place = Path(shutil.copy(filled, tmp_path_factory.mktemp("more") / "warehouse.duckdb"))
    measure = MEASURES[request.param]
    names = {"checkpoint", *(row.table.name for row in measure.rows)}
    rows = {name: found for name, found in plausible_rows("c1", "packaged:tiny").items() if name in names}
    record = audit_record("a9", "c1", minutes=90)
    put_audit(place, record.__class__(**{**vars(record), "seed": 7}), rows)
    return place


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


def test_no_query_loses_a_row(before: dict[str, set[str]], once_more: Path) -> None:
    after = said(once_more)
    lost = {name: rows - after[name] for name, rows in before.items() if name not in ABOUT_AUDITS}
    assert not {name: rows for name, rows in lost.items() if rows}
