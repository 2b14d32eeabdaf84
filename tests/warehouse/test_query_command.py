"""``embaudit query`` and ``embaudit list``: questions by name or in SQL, three formats, and no way to write."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from embaudit.cli.main import cli, main
from embaudit.cli.query import print_result
from embaudit.warehouse.query import QueryResult, named_queries, run_query
from embaudit.words.errors import UsageError, WarehouseError


@dataclass(frozen=True)
class Ended:
    returncode: object
    stdout: str
    stderr: str


Embaudit = Callable[..., Ended]


@pytest.fixture
def filled(published_once: Path) -> Path:
    """For reading: nothing that is typed here may change it."""
    return published_once


@pytest.fixture
def embaudit(
    filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Embaudit:
    """The whole command with its ending: exit code, standard output, standard error."""

    def run(*arguments: str, warehouse: Path = filled) -> Ended:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["embaudit", *arguments, "--warehouse", str(warehouse)])
        with pytest.raises(SystemExit) as ending:
            main()
        printed = capsys.readouterr()
        return Ended(ending.value.code, printed.out, printed.err)

    return run


def output(*arguments: str) -> str:
    """What the command prints, in this process."""
    result = CliRunner().invoke(cli, list(arguments), catch_exceptions=False, standalone_mode=False)
    if result.exception:
        raise result.exception
    return result.stdout


def is_one_paragraph(text: str) -> bool:
    return text.startswith("Error: ") and "\n" not in text.strip() and "Traceback" not in text


def test_without_an_argument_it_lists_the_questions() -> None:
    rows = json.loads(output("query", "--format", "json"))
    assert [row["name"] for row in rows] == list(named_queries())
    assert all(row["question"].endswith("?") for row in rows)


def test_json_is_json(filled: Path) -> None:
    rows = json.loads(output("query", "audits", "--warehouse", str(filled), "--format", "json"))
    assert rows[0]["audit_id"] == "a1"
    assert datetime.fromisoformat(rows[0]["finished"]).year == 2026


def test_json_has_numbers_lists_and_nulls_for_what_it_cannot_say(filled: Path) -> None:
    sql = (
        "SELECT 'nan'::DOUBLE AS a, 1.5 AS b, [1.0, 'inf'::DOUBLE] AS c, {'x': '-inf'::DOUBLE} AS d, DATE '2026-01-02' "
        "AS e, NULL AS f, 9007199254740993::HUGEINT AS g, uuid() IS NULL AS h, 'ང' AS i, INTERVAL 1 DAY AS j"
    )
    text = output("query", sql, "--warehouse", str(filled), "--format", "json")

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    (row,) = json.loads(text, parse_constant=refuse)
    assert list(row.values())[:9] == [None, 1.5, [1.0, None], {"x": None}, "2026-01-02", None, 2**53 + 1, False, "ང"]


def test_json_keeps_columns_of_one_name_apart(filled: Path) -> None:
    text = output("query", "SELECT 1 AS a, 2 AS a, 3 AS a_2, 4 AS a", "--warehouse", str(filled), "--format", "json")
    assert json.loads(text) == [{"a": 1, "a_2": 2, "a_2_2": 3, "a_3": 4}]


def test_csv_parses(filled: Path) -> None:
    sql = "SELECT 'a,\"b\"\nc' AS text, NULL AS nothing, 0.1 + 0.2 AS number, token FROM token ORDER BY token_id"
    rows = list(csv.DictReader(io.StringIO(output("query", sql, "--warehouse", str(filled), "--format", "csv"))))
    assert len(rows) == 8
    assert rows[4] == {"text": 'a,"b"\nc', "nothing": "", "number": "0.3", "token": "龸"}


def test_a_table_in_a_pipe_is_not_cut(filled: Path) -> None:
    text = output("query", "SELECT repeat('long ', 200) AS a, NULL AS b", "--warehouse", str(filled))
    assert "long " * 199 in text
    assert "NULL" in text
    assert text.endswith("\n1 row\n")


def test_a_table_shows_brackets_and_control_characters_as_they_are(filled: Path) -> None:
    sql = "SELECT '[bold]x[/bold]' AS \"[/red]\", chr(27) || '[31m' || chr(10) || 'end' AS escape"
    text = output("query", sql, "--warehouse", str(filled))
    assert "[bold]x[/bold]" in text
    assert "[/red]" in text
    assert "\\x1b[31m\\nend" in text
    assert "\x1b" not in text


def test_an_empty_answer_has_its_columns(filled: Path) -> None:
    sql = "SELECT token, script FROM token WHERE false"
    assert output("query", sql, "--warehouse", str(filled), "--format", "csv") == "token,script\n"
    assert json.loads(output("query", sql, "--warehouse", str(filled), "--format", "json")) == []
    assert "0 rows" in output("query", sql, "--warehouse", str(filled))


@pytest.mark.parametrize("what", ["audits", "checkpoints"])
@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_list_is_the_query_of_that_name(filled: Path, what: str, form: str) -> None:
    listed = output("list", what, "--warehouse", str(filled), "--format", form)
    assert listed == output("query", what, "--warehouse", str(filled), "--format", form)
    assert "c1" in listed or "a1" in listed


def test_a_pivot_is_one_question(filled: Path) -> None:
    assert len(run_query(filled, "PIVOT token ON origin USING count(*)").rows) == 8


@pytest.mark.parametrize(
    ("typed", "near"), [("leaderbord", "leaderboard"), ("sticky_by_script", "sticky-by-script"), ("audit", "audits")]
)
def test_a_mistyped_name_is_answered_with_the_nearest(filled: Path, typed: str, near: str) -> None:
    with pytest.raises(UsageError, match=f"Unknown query '{typed}'") as caught:
        run_query(filled, typed)
    assert f"Did you mean {near}?" in caught.value.next_step


@pytest.mark.parametrize("typed", ["", "  ", "zzzzzz"])
def test_a_name_near_to_none_lists_them_all(filled: Path, typed: str) -> None:
    with pytest.raises(UsageError, match="Unknown query") as caught:
        run_query(filled, typed)
    assert "Did you mean" not in caught.value.next_step
    assert all(name in caught.value.next_step for name in named_queries())


@pytest.mark.parametrize("sql", ["SELECT 1; SELECT 2", "-- only a comment", "SELECT 1; DROP TABLE token; SELECT 2"])
def test_a_query_is_one_statement(filled: Path, sql: str) -> None:
    with pytest.raises(UsageError, match="must be a single statement"):
        run_query(filled, sql)


@pytest.mark.parametrize(
    "sql",
    ["DELETE FROM token", "CREATE TABLE mine AS SELECT 1", "UPDATE audit SET status = 'x'", "DROP VIEW leaderboard"],
)
def test_writing_is_refused_in_one_paragraph(embaudit: Embaudit, filled: Path, sql: str) -> None:
    before = filled.read_bytes()
    done = embaudit("query", sql)
    assert done.returncode == 2
    assert is_one_paragraph(done.stderr)
    assert "open read-only" in done.stderr
    assert done.stdout == ""
    assert filled.read_bytes() == before


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT nosuch FROM token", "nosuch"),
        ("SELECT * FROM tokn", 'Did you mean "token"'),
        ("SELEC 1", "syntax error"),
        ("SELECT 1 +", "syntax error"),
        ("SELECT CAST('x' AS INTEGER)", "Could not convert"),
        ("SELECT * FROM read_csv('/etc/passwd')", "disabled by configuration"),
        ("SET memory_limit = '1GB'", "locked"),
        ("CALL enable_logging(storage='file', storage_config={'path': 'logs'})", "CALL is not allowed in queries"),
    ],
)
def test_an_sql_error_is_one_paragraph_with_exit_code_2(
    embaudit: Embaudit, tmp_path: Path, sql: str, says: str
) -> None:
    done = embaudit("query", sql)
    assert done.returncode == 2
    assert is_one_paragraph(done.stderr), done.stderr
    assert says in done.stderr
    assert "LINE 1" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_warehouse_is_said_and_not_made(embaudit: Embaudit, tmp_path: Path) -> None:
    done = embaudit("query", "audits", warehouse=tmp_path / "no" / "such.duckdb")
    assert done.returncode == 2
    assert is_one_paragraph(done.stderr)
    assert "There is no warehouse at" in done.stderr
    assert "embaudit audit" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_folder_or_another_file_is_no_warehouse(embaudit: Embaudit, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes" * 1_000)
    assert embaudit("list", "audits", warehouse=tmp_path).returncode == 2
    done = embaudit("list", "audits", warehouse=tmp_path / "notes.txt")
    assert done.returncode == 2
    assert "is not a DuckDB database" in done.stderr


def test_another_database_is_no_warehouse(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "other.duckdb")) as connection:
        connection.execute("CREATE TABLE audit AS SELECT 1 AS a")
    with pytest.raises(WarehouseError, match="not an embaudit warehouse"):
        run_query(tmp_path / "other.duckdb", "audits")


def test_an_unknown_format_is_usage(embaudit: Embaudit) -> None:
    done = embaudit("query", "audits", "--format", "xml")
    assert done.returncode == 2
    assert "xml" in done.stderr


ASKING = """
import importlib, threading
from embaudit.cli.main import main

queries = importlib.import_module("embaudit.warehouse.query")
real = queries._require_single_query

def announced(*arguments):
    real(*arguments)
    # A moment later, when DuckDB is at work.
    threading.Timer(0.1, print, ["asking"], {"flush": True}).start()

queries._require_single_query = announced
main()
"""


def test_ctrl_c_in_a_long_query_exits_130(filled: Path, tmp_path: Path) -> None:
    sql = "SELECT count(*) FROM range(100000000000) r(i) WHERE i % 7 = 3"
    running = subprocess.Popen(
        [sys.executable, "-c", ASKING, "query", sql, "--warehouse", str(filled)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "asking\n"
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=120)
    finally:
        running.kill()
    assert running.returncode == 130, errors
    assert "Traceback" not in errors


def test_print_result_knows_values_of_every_kind(capsys: pytest.CaptureFixture[str]) -> None:
    result = QueryResult(["a", "b"], [(0.1 + 0.2, "x"), (None, True)])
    print_result(result, "table")
    assert "0.3" in capsys.readouterr().out
    print_result(result, "json")
    assert json.loads(capsys.readouterr().out) == [{"a": 0.1 + 0.2, "b": "x"}, {"a": None, "b": True}]
