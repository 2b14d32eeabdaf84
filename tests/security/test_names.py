"""Names of checkpoints, folders and corpora reach no path and no statement as anything but themselves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from commands import run_here
from hostile import NAMES
from plausible import SCHEMAS, audit_record, measure_runs, plausible_rows, stage_all

from embaudit.checkpoint import CheckpointRef, LoadOptions, resolve
from embaudit.checkpoint.load import describe
from embaudit.corpora.load import load_corpus
from embaudit.system.settings import warehouse_at
from embaudit.warehouse.publish import publish
from embaudit.warehouse.query import run_query
from embaudit.words.errors import EmbauditError

MISSING = [
    *("../../x", "./../x", "/nowhere/at/all", "~nobody/x", "~/../x", "packaged:../../x", "packaged:/etc/passwd"),
    *("packaged:", "packaged:a'; DROP TABLE audit; --", "owner/..", "../owner", "owner/../../x", "owner//name"),
    *("owner/na'me", 'owner/na"me', "owner/name;x", "owner/name@../../../../etc/passwd", "owner/name@/etc/passwd"),
    *("owner／name", "owner/name\n", "owner/n\u202eame", "owner/name\x1b[31m", "file:///etc/passwd", "x" * 5000),
    *("https://user:canary@hub.example/owner/name", "owner/<script>", "owner/%2e%2e", "owner/..%2f..", "", " ", "*"),
    *NAMES.values(),
]
# duckdb takes a question mark for the start of a database's parameters, and a backslash for a "/" where it globs.
NESTS = [
    Path(*(name.replace("?", "") for name in NAMES.values() if not set(name) & set(without)))
    for without in ("\\", "*?[")
]


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., tuple[object, str]]:
    """A command in an empty folder; its exit code and what it printed."""
    (tmp_path / "here").mkdir()

    def run(*arguments: str) -> tuple[object, str]:
        done = run_here(arguments, os.environ, tmp_path / "here")
        return done.returncode, done.stdout + done.stderr

    return run


@pytest.mark.parametrize("name", MISSING, ids=lambda name: ascii(name[:40]))
def test_a_checkpoint_that_is_not_there_is_one_paragraph(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    # Where nothing is called x two folders up.
    monkeypatch.chdir(tmp_path / "a" / "b")
    with pytest.raises(EmbauditError) as caught:
        resolve(CheckpointRef.parse(name))
    assert caught.value.next_step
    assert "canary" not in str(caught.value)
    assert "root:" not in str(caught.value)  # what /etc/passwd begins with


def test_nul_is_no_name() -> None:
    """No program can be given one, but a deployment's parameter can hold it."""
    for name in ("a\0b", "owner/na\0me", "packaged:\0", "/etc/passwd\0.safetensors"):
        with pytest.raises(EmbauditError):
            resolve(CheckpointRef.parse(name))
    with pytest.raises(EmbauditError):
        load_corpus("wikipedia", "a\0b.txt")


@pytest.mark.parametrize("name", [name for name in MISSING if "owner" not in name], ids=lambda name: ascii(name[:40]))
def test_what_the_command_prints_of_it_is_one_line_of_text(
    command: Callable[..., tuple[object, str]], name: str, tmp_path: Path
) -> None:
    code, printed = command("audit", "--", name)
    assert code == 2
    assert printed.startswith("Error: ")
    assert printed.count("\n") == 1
    assert "\x1b" not in printed
    assert not list(tmp_path.rglob("*.duckdb"))


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_folder_of_that_name_is_a_checkpoint_like_any_other(tiny_checkpoint: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.symlink_to(tiny_checkpoint)
    _, identity = describe(resolve(str(folder)), LoadOptions())
    assert identity == describe(resolve(str(tiny_checkpoint)), LoadOptions())[1]
    assert resolve(str(folder)).folder == tiny_checkpoint


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_file_of_that_name_is_a_corpus_like_any_other(tmp_path: Path, name: str) -> None:
    path = tmp_path / f"{name}.txt"
    path.write_text("the river runs to the sea\n")
    corpus = load_corpus("wikipedia", str(path))
    assert (corpus.source, [text.text for text in corpus.texts]) == (str(path), ["the river runs to the sea"])


@pytest.mark.parametrize("name", [*NAMES.values(), "../../wikipedia", "wikipedia/../sts", "audit; --"], ids=ascii)
def test_no_corpus_is_called_that(command: Callable[..., tuple[object, str]], name: str, tmp_path: Path) -> None:
    code, printed = command("ingest", "--", name, "sample")
    assert code == 2
    assert printed.startswith("Error: Unknown corpus")
    assert printed.count("\n") == 1
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.slow
@pytest.mark.parametrize("nest", NESTS, ids=["without a backslash", "without glob characters"])
def test_a_warehouse_and_staged_files_in_folders_of_such_names(tmp_path: Path, nest: Path) -> None:
    warehouse = tmp_path / "w" / nest / "warehouse.duckdb"
    rows = {table: plausible_rows()[table] for table in ("checkpoint", "token", "socm_pair", "socm_summary")}
    counts = publish(warehouse, 0, audit_record(), measure_runs(), [], stage_all(tmp_path / "s" / nest, rows))
    assert counts == {table: len(found) for table, found in rows.items()}
    assert run_query(warehouse, "SELECT count(*) FROM token").rows == [(len(rows["token"]),)]
    assert {path.name for path in (tmp_path / "w").iterdir()} == {nest.parts[0]}


def test_a_question_mark_in_the_warehouse_s_path_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(EmbauditError, match="question mark") as caught:
        warehouse_at(tmp_path / "why?" / "warehouse.duckdb")
    assert "--warehouse" in caught.value.next_step


@pytest.mark.slow
def test_every_text_of_every_table_comes_back_as_it_went_in(tmp_path: Path) -> None:
    """Each text column of the tables that hold outside text, with each name, into the warehouse and back."""
    columns = {
        "checkpoint": ("source", "architecture", "modules"),
        "corpus": ("source",),
        "text": ("text", "title", "label", "external_id"),
        "text_pair": ("first", "second"),
        "token": ("token", "text"),
        "sticky_pair": ("first", "second"),
        "sticky_sentence": ("sentence",),
    }
    names = list(NAMES.values())
    rows = {table: found for table, found in plausible_rows().items() if table in columns}
    expected: dict[tuple[str, str], list[str]] = {}
    for table, texts in columns.items():
        for column in texts:
            for index, row in enumerate(rows[table]):
                row[column] = f"{names[index % len(names)]} {table} {index} {''.join(names)}"
            expected[table, column] = sorted(row[column] for row in rows[table])
    record = audit_record()
    record.settings["source"] = "".join(names)
    warehouse = tmp_path / "warehouse.duckdb"
    publish(warehouse, 0, record, measure_runs(), [], stage_all(tmp_path / "staged", rows))
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        for (table, column), texts in expected.items():
            assert column in SCHEMAS[table]
            found = sorted(row[0] for row in connection.execute(f"SELECT {column} FROM {table}").fetchall())
            assert found == texts, (table, column)
        (settings,) = connection.execute("SELECT settings FROM audit").fetchone() or ("",)
        assert json.loads(settings)["source"] == "".join(names)
        assert connection.execute("SELECT count(*) FROM audit").fetchall() == [(1,)]
