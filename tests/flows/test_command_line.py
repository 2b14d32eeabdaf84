"""The command line as a person meets it: output, exit codes, one paragraph for every expected failure."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from commands import Embaudit
from small_audits import Audited

from embaudit.cli.main import LazyCommand, cli, is_of_interrupt
from embaudit.cli.server import prepare_prefect
from embaudit.measures import DEFAULT_MEASURES, MEASURES
from embaudit_flows.server.set_up import SILENCE


def refuses(result: subprocess.CompletedProcess[str], *words: str, code: int = 2) -> str:
    """The command ended with one paragraph that says all the words, and no traceback."""
    assert result.returncode == code, result.stderr
    assert "Traceback" not in result.stderr, result.stderr
    paragraph = result.stderr.strip().split("\n")[-1]
    assert paragraph.startswith("Error: "), result.stderr
    for word in words:
        assert word in paragraph, paragraph
    return paragraph


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import atexit, sys; from embaudit.cli.main import main; "
        "atexit.register(lambda: print(*sorted({m.split('.')[0] for m in sys.modules}))); main()"
    )
    answer = subprocess.run([sys.executable, "-c", code, "--help"], check=True, capture_output=True, text=True).stdout
    page, _, imported = answer.rstrip().rpartition("\n")
    assert "Start with: embaudit check" in page
    assert page.index("Check and audit:") < page.index("Look at results:") < page.index("Look after the warehouse:")
    assert "click" in imported.split()
    heavy = {"torch", "rich", "pydantic", "numpy", "prefect", "great_expectations", "transformers", "duckdb", "pandas"}
    assert not heavy & set(imported.split())


def test_an_unknown_command_is_answered_with_the_nearest(embaudit_here: Embaudit) -> None:
    result = embaudit_here("audti")
    assert result.returncode == 2
    assert "Did you mean 'audit'?" in result.stderr


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_every_command_is_the_one_that_the_list_names(command: str) -> None:
    listed = cli.commands[command]
    assert isinstance(listed, LazyCommand)
    assert listed.load().name == command
    assert listed.short_help is not None
    assert listed.short_help.endswith(".")


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_every_command_explains_itself(command: str) -> None:
    shown = CliRunner().invoke(cli, [command, "--help"], catch_exceptions=False)
    assert shown.exit_code == 0
    assert len(shown.stdout.split("\n")[2].strip()) > 20


@pytest.mark.parametrize("page", ["commands", "settings"])
def test_pages_of_commands_and_settings_are_what_make_docs_writes(page: str) -> None:
    # In a process of its own: click remembers the help option of a command that another test called by itself.
    written = subprocess.run(
        [sys.executable, "-m", "embaudit.cli.reference", page], capture_output=True, text=True, check=True
    ).stdout
    assert (Path(__file__).parents[2] / f"docs/{page}.md").read_text(encoding="utf-8") == written, "make docs"


def test_a_checkpoint_that_must_not_be_served_ends_its_audit_red(
    computed_home: Path, tiny_checkpoint: Path, tiny_profile: Path, embaudit_here: Embaudit
) -> None:
    """As it is by default; other tests audit such a checkpoint for other reasons (tests/conftest.py)."""
    asked = ("audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", "integrity")
    red = embaudit_here(*asked, EMBAUDIT_PROBLEMS="fail")
    assert red.returncode == 1, red.stderr
    assert "Do not serve: " in red.stdout
    assert "The audit is published" in red.stderr
    assert embaudit_here(*asked).returncode == 0


@pytest.mark.usefixtures("audited_home")
def test_a_warehouse_answers_what_is_asked_of_it(audited: Audited, embaudit_here: Embaudit) -> None:
    shown = embaudit_here("show", "--full")
    assert shown.returncode == 0
    assert "Sticky tokens" in shown.stdout
    facts = json.loads(embaudit_here("show", "--json").stdout)
    assert (facts["audit_id"], facts["status"]) == (audited.outcome.audit_id, "published")
    assert facts["tokens"][0]["loss"] == max(token["loss"] for token in facts["tokens"])
    assert embaudit_here("show", facts["audit_id"][:6]).returncode == 0
    refuses(embaudit_here("show", "zzzz"), "no audit 'zzzz'", "embaudit list audits")

    audits = json.loads(embaudit_here("list", "audits", "--format", "json").stdout)
    assert [row["audit_id"] for row in audits] == [facts["audit_id"]]
    assert "BertModel" in embaudit_here("list", "checkpoints").stdout
    rows = list(csv.DictReader(io.StringIO(embaudit_here("query", "socm", "--format", "csv").stdout)))
    assert {row["corpus"] for row in rows} == {"wikipedia", "msmarco", "msmarco-hard-negatives"}
    refuses(embaudit_here("query", "worst-token"), "Did you mean worst-tokens")
    refuses(embaudit_here("query", "DELETE FROM audit"), "read-only")


def test_every_measure_is_listed_with_its_question() -> None:
    shown = CliRunner().invoke(cli, ["list", "measures", "--format", "json"], catch_exceptions=False)
    listed = {row["measure"]: row for row in json.loads(shown.stdout)}
    assert listed.keys() == MEASURES.keys()
    assert all(row["question"].endswith("?") for row in listed.values())
    assert {name for name, row in listed.items() if not row["only with"]} == set(DEFAULT_MEASURES)


def test_ingest_reports_what_it_dropped_and_is_idempotent(embaudit_here: Embaudit, tmp_path: Path) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_bytes(b"one sentence\n\none sentence\nanother sentence\n\xff\xfe broken bytes\n")
    for _ in range(2):
        result = embaudit_here("ingest", "wikipedia", str(texts))
        assert result.returncode == 0, result.stderr
        assert "5 rows read: 2 kept, 1 duplicate, 1 blank, 0 broken, 1 not UTF-8" in result.stdout
    rows = json.loads(
        embaudit_here("query", "SELECT position, text FROM text ORDER BY position", "--format", "json").stdout
    )
    assert rows == [{"position": 0, "text": "one sentence"}, {"position": 1, "text": "another sentence"}]
    assert len(json.loads(embaudit_here("query", "corpora", "--format", "json").stdout)) == 1


@pytest.mark.usefixtures("new_home")
def test_doctor_says_what_is_there_and_what_to_do(embaudit_here: Embaudit) -> None:
    result = embaudit_here("doctor")
    assert result.returncode == 0, result.stdout
    for word in ("torch", "device", "model hub", "HF_HUB_OFFLINE", "warehouse", "none yet", "disk", "answers"):
        assert word in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("audit", "packaged:all-MiniLM-L6"), ("packaged:all-MiniLM-L6-v2?",)),
        (("audit", "./no/such/folder"), ("Unknown checkpoint", "local folder")),
        (("audit", "packaged:all-MiniLM-L6-v2", "--profile", "quik"), ("quik", "quick")),
        (("audit", "packaged:all-MiniLM-L6-v2", "--measures", "sticky,scom"), ("scom", "socm")),
        (("audit", "packaged:all-MiniLM-L6-v2", "--corpus", "sts"), ("NAME=SOURCE",)),
        (("ingest", "wikpedia", "sample"), ("wikpedia", "wikipedia")),
        (("ingest", "wikipedia", "missing.txt"), ("missing.txt",)),
        (("query", "SELECT 1", "--warehouse", "missing.duckdb"), ("missing.duckdb", "embaudit audit")),
        (("show",), ("There is no warehouse",)),
    ],
)
@pytest.mark.usefixtures("new_home")
def test_wrong_words_are_answered_with_what_to_type(
    embaudit_here: Embaudit, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    refuses(embaudit_here(*arguments), *words)


def test_an_unknown_option_is_a_usage_error(embaudit_here: Embaudit) -> None:
    result = embaudit_here("audit", "x", "--colour")
    assert result.returncode == 2
    assert "--colour" in result.stderr


@pytest.mark.slow
def test_a_hub_checkpoint_without_a_hub_is_one_paragraph(embaudit: Embaudit) -> None:
    refuses(
        embaudit("audit", "nobody/nothing@main", HF_ENDPOINT="http://127.0.0.1:9"), "hub", "packaged:all-MiniLM-L6-v2"
    )


def copy_without(checkpoint: Path, folder: Path, *patterns: str) -> Path:
    import shutil

    shutil.copytree(checkpoint, folder)
    for pattern in patterns:
        for path in folder.rglob(pattern):
            path.unlink()
    return folder


def test_a_folder_without_tokenizer_or_weights_is_named(
    embaudit_here: Embaudit, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    without_tokenizer = copy_without(tiny_checkpoint, tmp_path / "a", "tokenizer*", "vocab*", "special_tokens*")
    refuses(embaudit_here("audit", str(without_tokenizer)), "tokenizer", str(without_tokenizer))
    without_weights = copy_without(tiny_checkpoint, tmp_path / "b", "*.safetensors")
    refuses(embaudit_here("audit", str(without_weights)), "no weights")


@pytest.mark.parametrize(("content", "words"), [("", ("empty",)), ("only one line\n", ("at least two",))])
def test_an_empty_or_one_line_corpus_is_named(
    embaudit_here: Embaudit,
    tiny_checkpoint: Path,
    tiny_profile: Path,
    tmp_path: Path,
    content: str,
    words: tuple[str, ...],
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text(content)
    arguments = ("audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", "socm")
    refuses(embaudit_here(*arguments, "--corpus", f"wikipedia={corpus}"), *words)


@pytest.mark.usefixtures("new_home")
def test_token_answers_without_a_scan(embaudit_here: Embaudit, tiny_checkpoint: Path, tmp_path: Path) -> None:
    wanted = tmp_path / "tokens.txt"
    wanted.write_text("river\n##ing\n")
    pairs = tmp_path / "pairs.csv"
    sentences = ["the river runs to the sea", "a star is a sun", "the old town has a church", "iron and gold"]
    pairs.write_text("sentence1,sentence2\n" + "".join(f"{a},{b}\n" for a in sentences for b in sentences if a != b))
    result = embaudit_here(
        *("token", str(tiny_checkpoint), f"@{wanted}", "17", "--pairs", str(pairs), "--controls", "12", "--json"),
        *("--protocol", "definition", "--protocol", "reference"),
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert [row["token"] for row in found][:2] == ["river", "##ing"]
    assert found[2]["id"] == 17
    names = {
        *("id", "token", "category", "origin", "rho_0", "rho_prefix", "rho_suffix", "rho_random"),
        *("pull", "pull_low", "pull_high", "retention", "loss", "focal_point", "severity", "value", "score"),
    }
    assert all(names <= set(row) for row in found)
    # The mean over the operators is the one over all points: every pair has all three.
    for row in found:
        operators = [row[f"rho_{operator}"] for operator in ("prefix", "suffix", "random")]
        assert row["rho"] == pytest.approx(sum(operators) / 3, abs=1e-9)
        assert row["pull"] == pytest.approx(1 - row["rho"] / row["rho_0"], abs=1e-9)
    assert not list(tmp_path.rglob("warehouse.duckdb"))

    table = embaudit_here("token", str(tiny_checkpoint), "river", "--pairs", str(pairs), "--controls", "12")
    assert "severity" in table.stdout
    assert "river" in table.stdout
    # The definition's u is of every entry, whatever a profile estimates it from.
    (tmp_path / "own.toml").write_text(
        'name = "own"\nversion = 1\ndescription = ""\n[sticky]\nsimilarity_entries = 100\ncontrols = 12\n'
    )
    few = embaudit_here(
        *("token", str(tiny_checkpoint), "river", "--pairs", str(pairs), "--profile", str(tmp_path / "own.toml")),
        *("--json", "--protocol", "definition"),
    )
    (row,) = json.loads(few.stdout)
    assert (row["u"], row["rho_0"], row["dtype"]) == (found[0]["u"], found[0]["rho_0"], "float32")
    half = embaudit_here(
        *("token", str(tiny_checkpoint), "river", "--pairs", str(pairs), "--controls", "12", "--dtype", "bfloat16")
    )
    assert "All in bfloat16." in " ".join(half.stdout.split())
    refuses(embaudit_here("token", str(tiny_checkpoint), "rivers"), "'rivers' is not a token")
    refuses(embaudit_here("token", str(tiny_checkpoint), "@missing.txt"), "missing.txt")
    (tmp_path / "empty.txt").touch()
    refuses(embaudit_here("token", str(tiny_checkpoint), "@empty.txt"), "no token")
    both = ("--pairs", str(pairs), "--pairs", f"validation={pairs}")
    refuses(embaudit_here("token", str(tiny_checkpoint), "river", *both), "two files for validation")
    refuses(embaudit_here("token", str(tiny_checkpoint), "river", "--pairs", "missing.csv"), "missing.csv")


@pytest.mark.slow
def test_without_a_home_prefect_gets_a_place_beside_the_warehouse(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "environ", {"HOME": str(tmp_path / "none"), "EMBAUDIT_HOME": str(tmp_path / "here")})
    with click.Context(cli):
        prepare_prefect(show_logs=True)
    assert os.environ["PREFECT_HOME"] == str(tmp_path / "here/prefect")


@pytest.mark.slow
def test_heartbeats_go_to_a_lasting_server_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        get_current_settings,
        temporary_settings,
    )

    monkeypatch.setattr(os, "environ", {"HOME": os.environ["HOME"], "EMBAUDIT_HOME": str(tmp_path)})
    for url, seconds in (("http://127.0.0.1:4200/api", 180), (None, None)):
        with temporary_settings({PREFECT_API_URL: url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: 180}):
            with click.Context(cli):
                prepare_prefect(show_logs=False)
                assert get_current_settings().flows.heartbeat_frequency == seconds
            assert get_current_settings().flows.heartbeat_frequency == 180
    # What a process reads that starts with this environment: three of them are within the automation's patience.
    assert int(os.environ["PREFECT_FLOWS_HEARTBEAT_FREQUENCY"]) * 3 <= SILENCE.seconds


def test_an_interrupt_is_one_whatever_error_the_cleaning_up_ends_in() -> None:
    def cleaned_up_badly(first: type[BaseException]) -> BaseException:
        try:
            try:
                raise first("first")
            finally:
                raise RuntimeError("generator didn't yield")
        except RuntimeError as error:
            return error

    assert is_of_interrupt(cleaned_up_badly(KeyboardInterrupt))
    assert not is_of_interrupt(cleaned_up_badly(ValueError))
