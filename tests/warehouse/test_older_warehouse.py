"""A warehouse of an older embaudit: what needs its newest tables says so, and ``embaudit upgrade`` brings them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from made_up_migrations import NEWEST, SECOND, the_next_program

from embaudit.cli.main import cli
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.export import export
from embaudit.warehouse.prune import DETAIL_TABLES, Keep, prune
from embaudit.warehouse.query import run_query
from embaudit.words.errors import EmbauditError, UsageError, WarehouseError

Command = Callable[..., Result]


@pytest.fixture
def older(published_warehouse: Path) -> Iterator[Path]:
    """One audit of today's program, and the next program in this process."""
    with the_next_program():
        yield published_warehouse


@pytest.fixture
def embaudit(older: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("EMBAUDIT_WAREHOUSE", str(older))

    def run(*arguments: str) -> Result:
        return CliRunner().invoke(cli, arguments, standalone_mode=False)

    return run


def version(path: Path) -> int:
    with open_reader(path) as connection:
        (found,) = connection.execute("SELECT max(version) FROM schema_migration").fetchone()
    return int(found)


@pytest.mark.slow
def test_what_needs_the_newest_tables_asks_for_the_upgrade_and_works_behind_it(
    embaudit: Command, older: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[limit]]\nsummary = "sticky_summary"\nmeasure = "u"\nmax = 0.9\n')
    needs_it = (
        ("show",),
        ("gate", "latest", "--policy", str(policy)),
        ("report", "latest", "--out", str(tmp_path / "page.html")),
        ("index", "--out", str(tmp_path / "index.html")),
        ("query", "SELECT count(*) FROM made_up_rows"),
    )
    for arguments in needs_it:
        refused = embaudit(*arguments).exception
        assert isinstance(refused, EmbauditError), arguments
        assert refused.exit_code == 2
        asked = f"has schema {NEWEST}, but this embaudit reads {SECOND.version}. To keep every row: embaudit upgrade"
        assert asked in refused.next_step, arguments
    assert version(older) == NEWEST
    upgraded = embaudit("upgrade")
    assert f"has schema {SECOND.version}, the newest this embaudit knows" in upgraded.output
    assert version(older) == SECOND.version
    for arguments in needs_it:
        done = embaudit(*arguments)
        assert done.exception is None, (arguments, done.exception)
    assert "Tokens with the largest loss" in embaudit("show").output


def test_upgrading_makes_no_warehouse(embaudit: Command, tmp_path: Path) -> None:
    refused = embaudit("upgrade", "--warehouse", str(tmp_path / "missing.duckdb")).exception
    assert isinstance(refused, WarehouseError)
    assert "no warehouse" in str(refused)
    assert not (tmp_path / "missing.duckdb").exists()


@pytest.mark.slow
def test_another_mistake_is_told_apart_once_it_is_upgraded(embaudit: Command, older: Path) -> None:
    embaudit("upgrade")
    with pytest.raises(UsageError, match="nosuch") as caught:
        run_query(older, "SELECT nosuch FROM token")
    assert "SHOW ALL TABLES" in caught.value.next_step


def test_it_is_copied_with_todays_schema(older: Path, tmp_path: Path) -> None:
    before = older.read_bytes()
    rows = export(older, tmp_path / "copy.duckdb", 0).rows
    assert rows["sticky_validation"] == 10
    assert version(tmp_path / "copy.duckdb") == SECOND.version
    assert run_query(tmp_path / "copy.duckdb", "leaderboard").rows
    assert run_query(tmp_path / "copy.duckdb", "SELECT * FROM made_up_rows").rows == []
    assert older.read_bytes() == before


def test_pruning_upgrades_it_first(older: Path) -> None:
    assert prune(older, 0, Keep(audits=0), dry_run=True) == []
    assert version(older) == NEWEST
    assert {one.table for one in prune(older, 0, Keep(audits=0))} == set(DETAIL_TABLES)
    assert version(older) == SECOND.version
