"""Ctrl-C in a terminal goes to everything in the command's process group; the temporary server is not in it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fault_table import Record
from runs import wait_for
from terminal import InTerminal

from embaudit.cli.doctor import temporary_servers

pytestmark = [
    pytest.mark.xdist_group("faults"),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc"),
]

Begin = Callable[[], InTerminal]
Moment = Callable[[InTerminal], object]
MAIN = [sys.executable, "-m", "embaudit"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def begin(tmp_path: Path, home: Path, tiny_checkpoint: Path, tiny_profile: Path) -> Iterator[Begin]:
    """Starts an audit in a terminal; no server is named for it."""
    begun: list[InTerminal] = []

    def start() -> InTerminal:
        places = {"EMBAUDIT_HOME": str(home), "PREFECT_API_URL": "", "HF_HUB_OFFLINE": "1", "COLUMNS": "300"}
        words = ["audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", "socm"]
        begun.append(InTerminal.start([*MAIN, *words], {**os.environ, **places}, tmp_path))
        return begun[-1]

    yield start
    for one in begun:
        one.close()


def server_of(command: InTerminal) -> bool:
    return any(server.command == command.pid for server in temporary_servers())


def moments(home: Path) -> dict[str, Moment]:
    """Ten moments of a command, from its first line to the transaction that publishes."""

    def staged(table: str) -> Moment:
        return lambda _: any(home.glob(f"staging/**/{table}-*.parquet"))

    return {
        "it says what it does": lambda command: "Auditing" in command.text,
        "its server was started": server_of,
        "its server migrates": lambda command: server_of(command) and any(home.glob("prefect/*/prefect.db*")),
        "its server serves": lambda command: server_of(command) and any(home.glob("prefect/*/migrated")),
        "a corpus is staged": staged("corpus"),
        "the checkpoint is described": staged("checkpoint"),
        "it says how long it takes": lambda command: "This takes about" in command.text,
        "a step is done": staged("socm_text"),
        "the last step is done": staged("socm_poolings"),
        "the warehouse is there": lambda _: any(home.glob("warehouse.duckdb*")),
    }


def interrupt(command: InTerminal, moment: Moment, presses: int) -> None:
    """Press Ctrl-C, and see the command end in a few words, with 130, or with 0 if it was done."""
    command.wait_for(moment)
    for _ in range(presses):
        if command.is_running():
            command.press()
    code = command.end()
    assert code in (130, 0), command.text
    assert "Traceback" not in command.text, command.text
    assert "Exception ignored" not in command.text, command.text
    wait_for(lambda: not server_of(command), pause=0.05)
    if code and presses == 1:
        assert "Run the same command again" in command.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moment", "presses"),
    [("its server was started", 3), pytest.param("the checkpoint is described", 1, marks=pytest.mark.slow)],
)
def test_ctrl_c_at_two_moments(begin: Begin, home: Path, moment: str, presses: int) -> None:
    """While the server starts; and while a flow runs, whose end the server is still to be told."""
    interrupt(begin(), moments(home)[moment], presses)
    assert not (home / "warehouse.duckdb").exists()


@pytest.mark.slow
@pytest.mark.fault("Ctrl-C in a terminal, once, twice and three times, at ten moments")
def test_ctrl_c_at_ten_moments(begin: Begin, home: Path, record_fault: Record) -> None:
    for presses in (3, 2, 1):
        # What a first command does once, such as the migration, comes again.
        shutil.rmtree(home, ignore_errors=True)
        for moment in moments(home).values():
            for made in home.glob("[!p]*"):
                shutil.rmtree(made) if made.is_dir() else made.unlink()
            interrupt(begin(), moment, presses)
    last = begin()
    last.wait_for(lambda _: False)
    assert last.code == 0, last.text
    record_fault(
        "each command ended at once with exit code 130 and no traceback, its server with it",
        "every staged file, whole; the published tables as they were",
        "ended with 0",
    )
