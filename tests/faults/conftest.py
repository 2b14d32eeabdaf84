"""Fixtures of the fault tests: the command under test, and an audit that nothing disturbed to compare with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs import Command, Finished, Make, Rows, content, release
from tiny import tiny_bert


@pytest.fixture(autouse=True)
def _released() -> Iterator[None]:
    """Files that ``staged`` holds open are let go with their test."""
    yield
    release()


@pytest.fixture
def command(
    prefect_api: str, new_home: Path, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path
) -> Iterator[Make]:
    """An audit of the tiny checkpoint that can be started, killed and run; what still runs at the end is killed."""
    made: list[Command] = []

    def make(*more: str, checkpoint: Path = tiny_checkpoint, measures: str = "socm", **environment: str) -> Command:
        chosen = ("--measures", measures) if measures else ()
        arguments = ("audit", str(checkpoint), "--profile", str(tiny_profile), *chosen, *more)
        places = {"EMBAUDIT_HOME": str(new_home), "PREFECT_API_URL": prefect_api, "HF_HUB_OFFLINE": "1"}
        made.append(Command(arguments, {**os.environ, **places, **environment}, tmp_path))
        return made[-1]

    yield make
    for one in made:
        for process in one.started:
            if process.is_alive():
                process.kill()
            process.join()


@pytest.fixture(scope="session")
def finished(
    prefect_api: str, tiny_checkpoint: Path, tiny_profile: Path, tmp_path_factory: pytest.TempPathFactory
) -> Finished:
    """An audit that is done, for faults that hit it afterwards; each test leaves it done again."""
    folder = tmp_path_factory.mktemp("finished")
    home = folder / "home"
    places = {"EMBAUDIT_HOME": str(home), "PREFECT_API_URL": prefect_api, "HF_HUB_OFFLINE": "1"}
    arguments = ("audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", "socm")
    command = Command(arguments, {**os.environ, **places}, folder)
    result = command.run()
    assert result.returncode == 0, result.stderr
    return Finished(command, home, content(home / "warehouse.duckdb"))


@pytest.fixture
def undisturbed(finished: Finished) -> Rows:
    """What an audit leaves that nothing disturbed."""
    return finished.content


@pytest.fixture(scope="session")
def other_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Other random weights: another checkpoint by content."""
    return tiny_bert(tmp_path_factory.mktemp("other") / "tiny", seed=1)
