"""Answers depend on what is in the warehouse, never on the order in which its rows were written or are read."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import duckdb
import pytest
from plausible import audit_record, expectation, measure_runs, plausible_rows
from ready_warehouses import put_audit, put_audits

from embaudit.measures import MEASURES
from embaudit.pages.write import read_audit
from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.export import tables_of
from embaudit.warehouse.migrate import known_views
from embaudit.warehouse.publish import AuditRecord
from embaudit.warehouse.query import named_queries
from embaudit.warehouse.tables import TABLES

Rows = list[tuple[Any, ...]]


@pytest.fixture(scope="module")
def alike(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three checkpoints of one name, audited at one instant: two with the same figures, a third with others."""
    warehouse = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("alike") / "warehouse.duckdb"))
    for audit_id, checkpoint, change in (("a1", "c1", 0.0), ("a2", "c2", 0.0), ("a3", "c3", 0.01)):
        rows = plausible_rows(checkpoint, "owner/tiny")
        rows = {table: changed(table, rows[table], change) for table in rows}
        put_audit(warehouse, audit_record(audit_id, checkpoint), rows, measure_runs(), [expectation()])
    with open_writer(warehouse, 0) as connection:
        connection.execute("INSERT INTO published_figure VALUES ('owner/tiny', 'u', '', 0.25, 'a paper')")
        connection.execute(
            "INSERT INTO downstream_score SELECT 'owner/tiny', unnest(['', 'r1']), 'Task', 'test', "
            "unnest(['default', 'other']), 0.5, NULL, 'file', TIMESTAMPTZ '2026-01-01 00:00:00Z'"
        )
        # Two gates of one instant, and the worst token twice: once more under another id.
        connection.execute("INSERT INTO gate_result BY NAME SELECT * REPLACE ('p2' AS policy_hash) FROM gate_result")
        for table in ("sticky_validation", "token", "sticky_score"):
            connection.execute(
                f"INSERT INTO {table} BY NAME SELECT * REPLACE (token_id + 1000 AS token_id) FROM {table}"
            )
    return warehouse


def changed(table: str, rows: list[dict[str, Any]], change: float) -> list[dict[str, Any]]:
    """The rows with every number that is no key a little larger."""
    keys = TABLES[table].keys
    return [
        {
            name: value + change if isinstance(value, float) and name not in keys else value
            for name, value in row.items()
        }
        for row in rows
    ]


@pytest.fixture(scope="module", params=[0, 1, 2])
def shuffled(alike: Path, empty_once: Path, request: pytest.FixtureRequest) -> Path:
    """The same warehouse, its rows written in another order."""
    path = Path(shutil.copy(empty_once, alike.with_name(f"shuffled-{request.param}.duckdb")))
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"ATTACH '{alike}' AS original (READ_ONLY)")
        for table in set(tables_of(connection)) - {"schema_migration"}:
            connection.execute(f"DELETE FROM {table}")
            connection.execute(
                f"INSERT INTO {table} BY NAME FROM original.{table} ORDER BY hash(rowid::VARCHAR || '{request.param}')"
            )
    return path


@pytest.fixture
def asked(alike: Path, shuffled: Path) -> Iterator[Callable[[str], list[Rows]]]:
    """What both warehouses answer, the one as it was written first."""
    with open_reader(alike) as first, open_reader(shuffled) as second:
        yield lambda sql: [rounded(connection.execute(sql).fetchall()) for connection in (first, second)]


def rounded(rows: list[tuple[Any, ...]]) -> Rows:
    """Sums may differ in their last digits."""
    return [tuple(round(cell, 9) if isinstance(cell, float) else cell for cell in row) for row in rows]


@pytest.mark.slow
def test_named_queries_give_the_same_rows_in_the_same_order(asked: Callable[[str], list[Rows]]) -> None:
    for name, query in named_queries().items():
        expected, found = asked(query.sql)
        assert found == expected, name


@pytest.mark.slow
def test_views_give_the_same_rows(asked: Callable[[str], list[Rows]]) -> None:
    for name in known_views():
        expected, found = asked(f"SELECT * FROM {name} ORDER BY ALL")
        assert found == expected, name


@pytest.mark.slow
@pytest.mark.parametrize("audit", [None, "a"], ids=["newest", "by prefix"])
def test_an_audits_page_reads_the_same(alike: Path, shuffled: Path, audit: str | None) -> None:
    assert repr(read_audit(shuffled, audit)) == repr(read_audit(alike, audit))


def test_no_sql_takes_one_row_of_several_at_random() -> None:
    for folder in ("views", "queries"):
        for file in files("embaudit_sql").joinpath(folder).iterdir():
            sql = file.read_text(encoding="utf-8") if file.name.endswith(".sql") else ""
            assert not re.search(r"\b(any_value|arg_max|arg_min|max_by|min_by|DISTINCT ON)\b", sql), file.name
            for aggregate in re.findall(r"\b(?:first|last|list|string_agg)\(([^()]*)\)", sql):
                assert "ORDER BY" in aggregate, (file.name, aggregate)
            for before in sql.split("LIMIT")[:-1]:
                assert "ORDER BY" in before.rsplit("SELECT", 1)[-1], file.name


# ---- an audit of one more measure takes nothing away from what queries say about a checkpoint ----


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
