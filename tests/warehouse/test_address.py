"""Addresses of DuckLakes: read, written back, and never with a password in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from embaudit.system.settings import Lake, Settings, warehouse_at
from embaudit.words.errors import UsageError

ADDRESS = "ducklake:postgres:dbname=audits host=db.example port=5432?data_path=/srv/embaudit/lake"


def test_an_address_is_read_and_written_back() -> None:
    lake = warehouse_at(ADDRESS)
    assert lake == Lake("dbname=audits host=db.example port=5432", Path("/srv/embaudit/lake"))
    assert str(lake) == ADDRESS
    # Whoever took it for a path has not spoilt it.
    assert warehouse_at(Path(ADDRESS)) == lake
    assert warehouse_at(lake) is lake


@pytest.mark.parametrize("folder", ["/srv/a b", "/srv/ö&x=1", "/srv/what?", "/srv/100%"])
def test_odd_folders_and_schemas_survive(folder: str) -> None:
    lake = Lake("service=audits", Path(folder), "team_a")
    assert warehouse_at(str(lake)) == lake


def test_everything_else_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert warehouse_at("w.duckdb") == tmp_path / "w.duckdb"
    assert warehouse_at("~/w.duckdb") == Path.home() / "w.duckdb"


def test_the_environment_names_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBAUDIT_WAREHOUSE", ADDRESS)
    assert str(Settings().warehouse_path) == ADDRESS
    monkeypatch.setenv("EMBAUDIT_WAREHOUSE", str(tmp_path / "own.duckdb"))
    assert Settings().warehouse_path == tmp_path / "own.duckdb"
    monkeypatch.delenv("EMBAUDIT_WAREHOUSE")
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path))
    assert Settings().warehouse_path == tmp_path / "warehouse.duckdb"


@pytest.mark.parametrize(
    "secret",
    [
        "ducklake:postgres:dbname=audits password=hunter2?data_path=/srv/lake",
        "ducklake:postgres:dbname=audits PASSWORD = 'hunter2'?data_path=/srv/lake",
        "ducklake:postgres:dbname=audits sslpassword=hunter2?data_path=/srv/lake",
        "ducklake:postgres:postgresql://me:hunter2@db.example/audits?data_path=/srv/lake",
        "ducklake:postgresql://me:hunter2@db.example/audits?data_path=/srv/lake",
        "ducklake:mysql:host=db password=hunter2?data_path=/srv/lake",
        "ducklake:postgres:dbname=audits?data_path=/srv/lake&password=hunter2",
    ],
)
def test_a_password_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(UsageError) as caught:
        warehouse_at(secret)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("ducklake:sqlite:catalog.sqlite?data_path=/srv/lake", "not PostgreSQL"),
        ("ducklake:postgres:dbname=audits", "names no data_path"),
        ("ducklake:postgres:dbname=audits?data_path=", "names no data_path"),
        ("ducklake:postgres:dbname=audits?data_path=lake", "not an absolute path"),
        ("ducklake:postgres:dbname=audits?data_path=s3://bucket/lake", "URI"),
        ("ducklake:postgres:dbname=audits?data_path=/srv/lake&shema=x", "no setting shema"),
        ("ducklake:postgres:dbname=audits?data_path=/srv/lake&schema=a'b", "not a plain name"),
    ],
)
def test_what_is_wrong_is_said(address: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as caught:
        warehouse_at(address)
    assert "It looks like this: ducklake:postgres:" in caught.value.next_step
