"""``embaudit filter``: which audit and which tokens, the file and its readers, and the example of the docs."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from plausible import audit_record, measure_runs, plausible_rows
from plausible_sticky import CONTROL_SLOPE, SLOPES
from ready_warehouses import put_audit

from embaudit.cli.main import cli
from embaudit.remedies.screening.tokens import read_token_list
from embaudit.words.errors import EmbauditError, UsageError

DOCS = (Path(__file__).parents[2] / "docs/screen.md").read_text()
(EXAMPLE,) = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
STICKY = ("sticky_validation", "sticky_summary", "sticky_severity", "sticky_score")


@pytest.fixture(scope="module")
def warehouse(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """a1 of owner/one; later a2, which did not look for sticky tokens; a3 of owner/two."""
    place = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("filter") / "warehouse.duckdb"))
    one = plausible_rows("c1", "owner/one")
    others = [run for run in measure_runs() if run.measure != "sticky"]
    for audit_id, minutes, rows, runs in (
        ("a1", 0, one, measure_runs()),
        ("a2", 1, {name: rows for name, rows in one.items() if name not in STICKY}, others),
    ):
        record = audit_record(audit_id, "c1", minutes=minutes)
        record = replace(record, settings={**record.settings, "source": "owner/one"})
        put_audit(place, record, rows, runs)
    put_audit(place, audit_record("a3", "c2", minutes=2), plausible_rows("c2", "owner/two", shift=0.2), measure_runs())
    return place


def run(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["filter", *arguments, "--warehouse", str(warehouse)])


def listed(warehouse: Path, *arguments: str) -> dict[str, Any]:
    result = run(warehouse, *arguments)
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def test_the_severe_tokens_of_an_audit_the_worst_first(warehouse: Path) -> None:
    found = listed(warehouse, "a1")
    assert [one["token_id"] for one in found["tokens"]] == [4, 5, 6]
    assert [one["severity"] for one in found["tokens"]] == ["strong", "moderate", "moderate"]
    worst, _, mask = found["tokens"]
    loss = 1 - SLOPES[4] / CONTROL_SLOPE
    assert (worst["token"], worst["text"], worst["is_reachable"]) == ("龸", "龸", True)
    assert [worst["loss"], worst["loss_low"], worst["loss_high"]] == pytest.approx([loss, loss - 0.1, loss + 0.1])
    assert not mask["is_reachable"]
    assert (found["checkpoint"], found["checkpoint_id"], found["audit_id"]) == ("owner/one", "c1", "a1")
    assert (found["copies"], found["validated"], found["severity"]) == (8, 3, "moderate")
    (row,) = (row for row in plausible_rows()["checkpoint"] if row["checkpoint_id"] == "c1")
    assert found["tokenizer_sha256"] == row["tokenizer_sha256"]
    assert found["max_length"] == row["max_length"]
    (estimate,) = (row for row in plausible_rows()["sticky_severity"] if row["severity"] == "moderate")
    assert [found[name] for name in ("estimated", "estimated_low", "estimated_high")] == [
        estimate[name] for name in ("estimated", "estimated_low", "estimated_high")
    ]


def test_how_severe_is_chosen_and_none_is_a_list_too(warehouse: Path) -> None:
    assert [one["token_id"] for one in listed(warehouse, "a1", "--severity", "strong")["tokens"]] == [4]
    # The slopes of a3 are .2 higher: its worst token loses .36.
    assert [one["token_id"] for one in listed(warehouse, "a3", "--severity", "strong")["tokens"]] == []
    assert [one["token_id"] for one in listed(warehouse, "a3", "--severity", "weak")["tokens"]] == [4, 5]


@pytest.mark.parametrize(("name", "audit"), [("owner/one", "a1"), ("owner/two", "a3"), ("latest", "a3"), ("a1", "a1")])
def test_a_checkpoint_stands_for_its_newest_audit_that_looked(warehouse: Path, name: str, audit: str) -> None:
    assert listed(warehouse, name)["audit_id"] == audit


def test_an_audit_that_did_not_look_says_what_to_type(warehouse: Path) -> None:
    error = run(warehouse, "a2").exception
    assert isinstance(error, UsageError)
    assert "did not look for sticky tokens" in error.happened
    assert error.next_step == "Run: embaudit audit owner/one --measures sticky"
    assert isinstance(run(warehouse, "owner/three").exception, UsageError)


def test_a_written_list_is_read_back(warehouse: Path, tmp_path: Path) -> None:
    out = tmp_path / "severe.json"
    result = run(warehouse, "a1", "--out", str(out))
    assert result.stdout == f"{out}: 3 tokens of owner/one, audit a1.\n"
    assert "龸" in out.read_text(encoding="utf-8")
    read = read_token_list(out)
    assert read.model_dump(mode="json") == json.loads(run(warehouse, "a1").stdout)
    assert [one.token for one in read.unreachable] == ["[MASK]"]
    assert read.losses == pytest.approx({4: 1 - SLOPES[4] / CONTROL_SLOPE, 5: 1 - SLOPES[5] / CONTROL_SLOPE})
    result = run(warehouse, "a1", "--out", str(out / "below"))
    assert isinstance(result.exception, EmbauditError)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not a list of tokens"),
        ("[]", "is not a list of tokens"),
        ('{"version": 2}', "version"),
        ('{"version": 1, "tokens": [{"token_id": -1}]}', "checkpoint"),
    ],
)
def test_a_file_that_is_no_list_is_refused(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "severe.json"
    path.write_text(content)
    with pytest.raises(UsageError, match=words) as error:
        read_token_list(path)
    assert "embaudit filter" in error.value.next_step
    with pytest.raises(UsageError, match="cannot be read"):
        read_token_list(tmp_path / "missing.json")


def test_the_example_of_the_docs_strips_and_measures(
    warehouse: Path, tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(warehouse, "a1", "--out", str(tmp_path / "severe.json")).exit_code == 0
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_checkpoint, "my-checkpoint")
    names: dict[str, Any] = {}
    exec(EXAMPLE, names)
    assert len([line for line in EXAMPLE.split("\n") if line.strip() and "import" not in line]) <= 10
    tokenizer = names["tokenizer"]
    names["severe"].clear()
    names["severe"] |= {tokenizer.token_to_id(token) for token in ("river", "##ing", "[MASK]")}
    long = "stone " * 200
    for text, stripped, share in (
        ("The river was old.", "The  was old.", 1 / 5),
        ("river river stone", "  stone", 2 / 3),
        ("working", "work", 1 / 2),
        ("stone [MASK] iron", "stone  iron", 1 / 3),
        ("Rivers of iron", "s of iron", 1 / 4),
        (long + "river", long, 1 / 201),
        ("", "", 0.0),
    ):
        assert names["strip"](text) == (stripped, pytest.approx(share)), text
