"""Python code in a process of its own, which a test hears, can tell something, and kills. A plugin of conftest.py."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


class OwnProcess(subprocess.Popen[str]):
    def says(self, line: str) -> None:
        """Wait for its next line, which is this one."""
        assert self.stdout is not None
        assert self.stdout.readline() == f"{line}\n", self.communicate()

    def kill_9(self) -> None:
        self.kill()
        self.wait()


Start = Callable[..., OwnProcess]


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Start]:
    """Starts code with arguments and the tests' modules; what still runs at the end of the test is killed."""
    started: list[OwnProcess] = []

    def start(code: str, *arguments: object) -> OwnProcess:
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        places = {"PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", code, *map(str, arguments)]
        started.append(OwnProcess(command, **pipes, text=True, cwd=tmp_path, env={**os.environ, **places}))
        return started[-1]

    yield start
    for running in started:
        if running.poll() is None:
            running.kill()
        running.communicate()
