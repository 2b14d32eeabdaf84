"""What the declarations say stands in the warehouse and in the documentation."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import duckdb
import pytest

from embaudit.warehouse.connect import open_reader, open_writer
from embaudit.warehouse.lake import WRITER_TABLE
from embaudit.warehouse.markdown import schema_page, tables_page
from embaudit.warehouse.migrate import known_views
from embaudit.warehouse.tables import TABLES
from embaudit.warehouse.write import meaning_of_view, meanings_of_columns, written

ROOT = Path(__file__).parents[2]
PAGES = {"docs/tables.md": tables_page, "sql/schema.sql": schema_page}


Comments = dict[tuple[str, str], str]


def comments(path: Path) -> Comments:
    """By table or view, and column."""
    with open_reader(path) as connection:
        return comments_of(connection)


def comments_of(connection: duckdb.DuckDBPyConnection) -> Comments:
    found = connection.execute(
        "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal"
    ).fetchall()
    return {(table, column): comment for table, column, comment in found}


def comments_of_tables(path: Path) -> dict[str, str]:
    """Of views, too."""
    with open_reader(path) as connection:
        return dict(
            connection.execute(
                "SELECT table_name, comment FROM duckdb_tables() "
                "UNION ALL SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"
            ).fetchall()
        )


def astray(said: dict[str, Any], columns: set[tuple[str, str]]) -> list[str]:
    """What ``meanings.toml`` says of what is not there, or says again of what a row class declares."""
    declared = {(name, column) for name, table in TABLES.items() for column in table.columns}
    named = {(table, column) for table, found in said["columns"].items() for column in found}
    tables = {table for table, _ in columns} - set(TABLES) - set(known_views())
    return sorted([*(said["tables"].keys() - tables), *map(".".join, (named - columns) | (named & declared))])


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_make_docs_writes(page: str) -> None:
    assert (ROOT / page).read_text(encoding="utf-8") == PAGES[page](), "make docs"


def test_every_table_view_and_column_is_on_the_page_and_no_row_is_broken_by_what_it_says(empty_once: Path) -> None:
    page, found = tables_page(), comments(empty_once)
    rows = [line.replace("\\|", "") for line in page.splitlines() if line.startswith("| ")]
    assert [row for row in rows if row.count("|") not in (4, 5)] == []
    headings = sorted(line.removeprefix("### ").strip("`") for line in page.splitlines() if line.startswith("### "))
    assert headings == sorted({table for table, _ in found})
    # A table's audit_id is said in the introduction; a view's is listed, since it may be another's.
    implied = [name for name, table in TABLES.items() if table.scope == "audit"]
    assert len(rows) == len(found) + len(headings) - len(implied)


def test_every_table_view_and_column_of_a_warehouse_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    with open_writer(path, 0):
        pass
    found, of_tables = comments(path), comments_of_tables(path)
    assert set(of_tables) == {table for table, _ in found} > {*TABLES, *known_views()}
    explained = {**found, **of_tables}
    assert [of for of, text in explained.items() if not text or not text.split("(embaudit ")[0].strip()] == []
    declared = {
        (name, column.name): column.comment for name, table in TABLES.items() for column in table.columns.values()
    }
    assert {of: found[of] for of in declared} == declared
    assert {name: of_tables[name] for name in TABLES} == {name: table.meaning for name, table in TABLES.items()}
    assert of_tables["leaderboard"].startswith("One row per checkpoint: the figures to compare checkpoints by")
    # Read, read through another view, computed, and read in another sense.
    assert found["latest_audit", "hidden_size"] == found["checkpoint", "hidden_size"]
    assert found["leaderboard", "u"] == found["sticky_summary", "u"]
    assert found["backbone_change", "delta"] == found["backbone_delta", "delta"] == "value − backbone_value."
    assert found["watched_source", "reason"] == found["watched_revision", "reason"] != found["found_item", "reason"]


def test_audit_id_means_the_same_in_every_table_of_an_audit(empty_once: Path) -> None:
    found = comments(empty_once)
    assert {found[name, "audit_id"] for name, table in TABLES.items() if table.scope == "audit"} == {
        found["audit", "audit_id"]
    }


def test_nothing_is_said_of_what_is_not_there_or_is_declared(empty_once: Path) -> None:
    said = tomllib.loads(written())
    columns = {*comments(empty_once), (WRITER_TABLE, "writes")}
    assert astray(said, columns) == []
    for gone in (("leaderboard", "audits"), ("pruning", "rows"), (WRITER_TABLE, "writes")):
        assert ".".join(gone) in astray(said, columns - {gone})
    again = {"tables": {"token": "A token."}, "columns": {"token": {"script": "Its script."}}}
    assert astray(again, columns) == ["token", "token.script"]


def test_a_column_of_a_view_that_nothing_explains_has_no_meaning() -> None:
    view = "-- Two of them,\n-- counted.\nCREATE VIEW mine AS SELECT source, 1 AS new\nFROM checkpoint -- now"
    stored = {"checkpoint": ["source"], "mine": ["source", "new"], "somebodys": ["audit_id"]}
    assert meanings_of_columns({"mine": view}, stored)["mine"] == {
        "source": TABLES["checkpoint"].columns["source"].comment
    }
    assert "somebodys" not in meanings_of_columns({}, stored)
    assert meaning_of_view(view) == "Two of them, counted."


@pytest.mark.slow
def test_words_are_written_again_only_where_they_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "warehouse.duckdb"
    with open_writer(path, 0) as connection:
        connection.execute("COMMENT ON COLUMN token.script IS 'mine'")
    with open_writer(path, 0):
        pass
    assert comments(path)["token", "script"] == "mine"
    before = written()
    with monkeypatch.context() as patch:
        patch.setattr("embaudit.warehouse.write.written", lambda: before.replace("The paper.", "Theirs."))
        with open_writer(path, 0):
            pass
        assert comments(path)["published_figure", "source"] == comments(path)["published_beside_own", "published_in"]
        assert comments(path)["published_figure", "source"] == "Theirs."
        assert comments(path)["token", "script"] == TABLES["token"].columns["script"].comment
    with open_writer(path, 0) as connection:
        assert comments_of(connection)["published_figure", "source"] == "The paper."
        connection.execute("DROP VIEW leaderboard")
    # A view that comes back is explained again.
    with open_writer(path, 0):
        pass
    assert comments(path)["leaderboard", "u"] == TABLES["sticky_summary"].columns["u"].comment


def test_opening_writes_nothing_where_nothing_has_changed(empty_warehouse: Path) -> None:
    path = empty_warehouse
    before = path.read_bytes()
    with open_writer(path, 0) as connection:
        assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone() is not None
    with duckdb.connect(str(path), read_only=True):
        pass
    assert path.read_bytes() == before
