"""`python -m benchmarks defects` on two copies that are quickly made: rows, harm, and mistakes on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.defects.command import main
from embaudit.checkpoint import Checkpoint


@pytest.mark.slow
def test_each_copy_gets_a_row_with_its_harm(minilm: Checkpoint, capsys: pytest.CaptureFixture[str]) -> None:
    main(["--harm", "--pairs", "10", "--only", "lower-casing lost: in both|git-lfs pointer: weights|unchanged"])
    header, rule, *rows = capsys.readouterr().out.splitlines()
    assert header == "| copy | kind | ρ lost, sample | 1 − cos, farthest kind | counts |"
    assert [line.count("|") for line in (header, rule, *rows)] == [6] * 5
    capitals, pointer, unchanged = rows
    assert "(capitals)" in capitals
    assert capitals.endswith("| yes |")
    assert "not loaded: model.safetensors in the folder is a git-lfs pointer, not the file itself." in pointer
    assert pointer.endswith("| yes |")
    assert "+0.000" in unchanged
    assert unchanged.endswith("| – |")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "no such copy"], "no copy matches 'no such copy'"),
        (["--sts", "nowhere.csv"], "there is no file nowhere.csv"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err
