"""What the declarations say stands in the warehouse and in the documentation."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from embaudit.tables import TABLES
from embaudit.tables.markdown import tables_page
from embaudit.tables.sql import schema_page
from embaudit.warehouse.connect import open_reader, open_writer

ROOT = Path(__file__).parents[2]
PAGES = {"docs/tables.md": tables_page, "sql/schema.sql": schema_page}


def comments(path: Path) -> dict[tuple[str, str], str]:
    with open_reader(path) as connection:
        found = connection.execute("SELECT table_name, column_name, comment FROM duckdb_columns()").fetchall()
    return {(table, column): comment for table, column, comment in found if comment}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_make_docs_writes(page: str) -> None:
    assert (ROOT / page).read_text(encoding="utf-8") == PAGES[page](), "make docs"


def test_every_column_is_on_the_page_and_no_table_is_broken_by_what_it_says() -> None:
    rows = [line for line in tables_page().splitlines() if line.startswith("| ")]
    assert {line.replace("\\|", "").count("|") for line in rows} == {5}
    assert len(rows) == sum(len(table.columns) for table in TABLES.values()) + len(TABLES)


def test_every_column_of_a_warehouse_is_explained(tmp_path: Path) -> None:
    path = tmp_path / "warehouse.duckdb"
    with open_writer(path, 0):
        pass
    assert comments(path) == {
        (name, column.name): column.comment for name, table in TABLES.items() for column in table.columns.values()
    }
    with open_reader(path) as connection:
        found = dict(connection.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall())
    assert {name: found[name] for name in TABLES} == {name: table.meaning for name, table in TABLES.items()}


@pytest.mark.slow
def test_words_are_written_again_only_where_they_have_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "warehouse.duckdb"
    with open_writer(path, 0) as connection:
        connection.execute("COMMENT ON COLUMN token.script IS 'mine'")
    with open_writer(path, 0):
        pass
    assert comments(path)["token", "script"] == "mine"
    with monkeypatch.context() as patch:
        patch.setattr("embaudit.warehouse.describe._statements", lambda: "COMMENT ON COLUMN token.text IS 'theirs'")
        with open_writer(path, 0):
            pass
    assert comments(path)["token", "text"] == "theirs"
    with open_writer(path, 0):
        pass
    declared = TABLES["token"].columns
    assert comments(path)["token", "text"] == declared["text"].comment
    assert comments(path)["token", "script"] == declared["script"].comment


def test_opening_writes_nothing_where_nothing_has_changed(empty_warehouse: Path) -> None:
    path = empty_warehouse
    before = path.read_bytes()
    with open_writer(path, 0) as connection:
        assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone() is not None
    with duckdb.connect(str(path), read_only=True):
        pass
    assert path.read_bytes() == before
