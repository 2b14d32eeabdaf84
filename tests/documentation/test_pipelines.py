"""What other people's pipelines take: the action's step, the hook, the model card's block, and what an image copies."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from datetime import date
from pathlib import Path

import pytest
import yaml
from some_rows import mostly_slow
from tiny import tiny_bert

from embaudit.cli.hook import checkpoints_of, main
from embaudit.declared.rule import Finding
from embaudit.pages.ci import card_of
from embaudit.questions.check.check import CheckReport

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
RUN = ROOT / "action/run.sh"


def step(folder: Path, command: str, arguments: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """The action's last step, and the summary that it wrote."""
    summary = folder / "summary.md"
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "EMBAUDIT_COMMAND": command,
        "EMBAUDIT_ARGUMENTS": arguments,
        "EMBAUDIT_HOME": str(folder / "home"),
        "GITHUB_STEP_SUMMARY": str(summary),
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(["bash", str(RUN)], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done, summary.read_text() if summary.exists() else ""


@pytest.mark.slow
def test_the_step_keeps_the_exit_code_and_writes_the_summary(tmp_path: Path) -> None:
    """Of a folder whose name has a space, by files alone."""
    tiny_bert(tmp_path / "my model")
    done, summary = step(tmp_path, "check", "'./my model' --files --device cpu")
    assert done.returncode == 1, done.stderr
    assert summary.startswith("# Check of")
    assert "**problem**" in summary
    assert summary.endswith("exit code 1\n")
    assert done.stdout.strip() in summary


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    mostly_slow(
        [
            ("audit", "./model", "or gate, not 'audit'"),
            ("check", "'./model", "a quote is open"),
            ("gate", "latest --policy $(touch run) --policy `touch run`", ""),
            ("check", "./none", "none"),
        ],
        1,
    ),
)
def test_what_cannot_be_run_is_said(command: str, arguments: str, said: str, tmp_path: Path) -> None:
    done, _ = step(tmp_path, command, arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr + done.stdout
    # Nothing in the arguments is run.
    assert not (tmp_path / "run").exists()


def test_the_action_passes_on_all_its_inputs() -> None:
    text = (ROOT / "action.yml").read_text()
    assert set(re.findall(r"inputs\.([a-z-]+)", text)) == set(ACTION["inputs"])
    assert "action/run.sh" in ACTION["runs"]["steps"][-1]["run"]
    # Inputs reach the shell as variables, never as its own text.
    assert not any("${{" in one.get("run", "") for one in ACTION["runs"]["steps"])


def test_extras_of_the_action_and_the_image_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = re.findall(r"\.\[([a-z,]+)\]", (ROOT / "Dockerfile").read_text())
    assert {one for some in (*named, ACTION["inputs"]["extras"]["default"]) for one in some.split(",")} <= set(extras)


def test_the_image_copies_what_is_there_and_does_not_run_as_root() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = [
        word for line in lines if line.startswith("COPY ") and "--from" not in line for word in line.split()[1:-1]
    ]
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-dir"]
    assert set(packages.values()) <= set(copied)
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name}" in ignored, name
    last = [line for line in lines if line.startswith("USER ")][-1]
    assert last != "USER root"
    assert lines.index(last) < next(place for place, line in enumerate(lines) if line.startswith("ENTRYPOINT"))


def test_the_hook_finds_each_checkpoint_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tiny_bert(tmp_path / "a")
    tiny_bert(tmp_path / "b" / "c")
    (tmp_path / "notes.json").write_text("{}")
    files = ["a/config.json", "a/1_Pooling/config.json", "b/c/model.safetensors", "notes.json", "gone/x.json"]
    assert checkpoints_of(files) == [Path("a"), Path("b/c")]


def test_the_hook_ends_with_the_worst_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tiny_bert(tmp_path / "a")
    assert main(["a/config.json"]) == 1
    assert capsys.readouterr().out.startswith("a: Do not serve")
    assert main(["none.json"]) == 0
    # What cannot be looked at: no network, as its modules say.
    (tmp_path / "static").mkdir()
    module = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.StaticEmbedding"}
    (tmp_path / "static" / "modules.json").write_text(json.dumps([module]))
    assert main(["a/config.json", "static/modules.json"]) == 2
    told = capsys.readouterr()
    assert told.out.startswith("a: Do not serve")
    assert told.err.startswith("static: ")
    assert "StaticEmbedding" in told.err
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert all(one["entry"].split()[-1] == "embaudit.cli.hook" for one in hooks)


def test_a_card_begins_with_the_verdict_and_shows_text_as_text() -> None:
    found = (
        Finding("look", "A <b>name</b> of *a file*.", "", "Look at it.", "one"),
        Finding("ok", "Fine.", name="two"),
    )
    score = {"value": 0.5, "low": None, "high": None}
    figures = {"data": [{"metric": "nDCG@10", "name": "the queries", "score": score, "baselines": {}}]}
    card = card_of(CheckReport("m", "abc", found, figures), date(2026, 11, 27))
    first, *_ = card.splitlines()
    assert re.fullmatch(r"> \*\*embaudit [\d.]+: look first\*\* · 2026-11-27 · content `abc`", first)
    assert "&lt;b&gt;name" in card
    assert "Fine" not in card
    assert "0.50" in card
    assert all(line.startswith(">") for line in card.splitlines())
