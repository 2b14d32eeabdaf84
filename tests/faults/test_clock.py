"""A clock that goes backwards: keys and resumption hang on content, so that time decides nothing."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from commands import CLI
from fault_table import Record
from runs import Finished, Make, Rows, content, staged, staged_files, wait_for

pytestmark = pytest.mark.xdist_group("faults")

DAY = 86_400
Skewed = Callable[[int], dict[str, str]]


@pytest.fixture
def skewed(tmp_path: Path) -> Skewed:
    """An environment whose wall clock is so many seconds off; called again, it moves under a running process."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs Linux and a C compiler to skew a process' clock")
    library, setting = tmp_path / "skewed_clock.so", tmp_path / "offset"
    source = Path(__file__).with_name("skewed_clock.c")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source], check=True)

    def to(seconds: int) -> dict[str, str]:
        if setting.exists():
            with setting.open("r+b") as file:
                file.write(struct.pack("q", seconds))
        else:
            setting.write_bytes(struct.pack("q", seconds))
        return {"LD_PRELOAD": str(library), "CLOCK_OFFSET_FILE": str(setting)}

    return to


def test_the_clock_goes_back(skewed: Skewed) -> None:
    """A test of the test: one process sees its wall clock go back and its durations go on."""
    code = (
        "import sys, time; print(time.time(), flush=True); sys.stdin.readline(); started = time.monotonic(); "
        "time.sleep(0.05); print(time.time(), time.monotonic() - started)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **skewed(3 * DAY)},
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        first = float(running.stdout.readline())
        skewed(-2 * DAY)
        output, _ = running.communicate("go\n", timeout=60)
    second, lasted = map(float, output.split())
    assert first - time.time() == pytest.approx(3 * DAY, abs=600)
    assert second - first == pytest.approx(-5 * DAY, abs=600)
    assert 0.04 < lasted < 600


@pytest.mark.slow
@pytest.mark.fault("the clock goes backwards in an audit")
def test_a_clock_that_goes_back_under_a_running_audit(
    command: Make,
    undisturbed: Rows,
    home: Path,
    tmp_path: Path,
    skewed: Skewed,
    record_fault: Record,
) -> None:
    audit = command()
    running = subprocess.Popen(
        [*CLI, *audit.arguments],
        env={**audit.environment, **skewed(3 * DAY)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: staged_files(home) or running.poll() is not None, seconds=240)
    skewed(-2 * DAY)
    _, errors = running.communicate(timeout=300)
    assert running.returncode == 0, errors
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        (backwards,) = connection.execute("SELECT finished < started FROM audit").fetchone() or (None,)
    assert backwards is True, "the clock did not go back while the audit ran"
    kept = staged(home)
    assert content(home / "warehouse.duckdb") == undisturbed
    again = audit.run()
    assert again.returncode == 0, again.stderr
    assert staged(home) == kept
    assert content(home / "warehouse.duckdb") == undisturbed
    record_fault(
        "set back by five days between its first step and its end: ended with 0; finished lies before started",
        "the same rows as undisturbed",
        "at the right time: ended with 0, nothing computed again",
    )


@pytest.mark.slow
@pytest.mark.fault("the clock stands before the last audit")
def test_an_audit_from_the_future(finished: Finished, skewed: Skewed, record_fault: Record) -> None:
    """The same command a year before it last ran."""
    kept = staged(finished.home)
    result = subprocess.run(
        [*CLI, *finished.command.arguments],
        env={**finished.command.environment, **skewed(-365 * DAY)},
        cwd=finished.command.folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert staged(finished.home) == kept
    assert content(finished.warehouse) == finished.content
    record_fault(
        "the same command a year before it last ran: ended with 0",
        "the same rows; the audit's times are the new ones",
        "nothing computed again: what is done is known by content, not by time",
    )
