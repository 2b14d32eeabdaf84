"""Audits beside one another: how long each takes alone, with another, with two, and in a container of one processor.

Each is timed as embaudit starts it, and with threads that spin while they wait, as OpenMP has them by itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from benchmarks.measured import Measured

AUDIT = ("audit", "packaged:all-MiniLM-L6-v2", "--measures", "sticky", "--limit-tokens", "300")
# What libgomp does where nothing is set, and the user's word, which embaudit leaves alone.
SPINNING = {"GOMP_SPINCOUNT": "300000"}
GROUP = Path("/sys/fs/cgroup/cpu/embaudit-benchmark")


def run() -> Iterator[Measured]:
    alone: dict[str, float] = {}
    for name, environment, at_once in (("threads that wait sleep", {}, (1, 2, 3)), ("they spin", SPINNING, (1, 2))):
        for count in at_once:
            seconds = mean(_together(count, environment))
            alone.setdefault(name, seconds)
            yield Measured(
                f"{count} sticky audits of 300 tokens at once, {name} (`sharing`)",
                f"{seconds:.0f} s each, {seconds / alone[name]:.1f} × one alone",
                "≤ 2.2 × for two" if count == 2 and not environment else "",
            )
    with _one_processor() as group:
        if group is None:
            return
        # As many threads as the machine has processors, which the time of one must do for.
        everything = {"OMP_NUM_THREADS": str(len(os.sched_getaffinity(0)))}
        for name, environment in (("as embaudit starts it", {}), ("a spinning thread per core", SPINNING | everything)):
            (seconds,) = _together(1, environment, group)
            yield Measured(f"one sticky audit with the time of one processor, {name}", f"{seconds:.0f} s")


def _together(count: int, environment: dict[str, str], group: Path | None = None) -> list[float]:
    """Seconds of each of some audits that start at the same time, each with a home of its own."""
    with TemporaryDirectory() as folder:
        since = time.perf_counter()
        audits = [_start(environment | {"EMBAUDIT_HOME": f"{folder}/{number}"}, group) for number in range(count)]
        return [_ended(audit) - since for audit in _as_they_end(audits)]


def _start(environment: dict[str, str], group: Path | None) -> subprocess.Popen[bytes]:
    others = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "EMBAUDIT_"))}
    command: Sequence[str] = (sys.executable, "-m", "embaudit", *AUDIT)
    if group is not None:
        command = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *command)
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command, env={**others, **environment}, stdout=quiet, stderr=quiet)


def _as_they_end(audits: list[subprocess.Popen[bytes]]) -> Iterator[subprocess.Popen[bytes]]:
    while audits:
        time.sleep(0.1)
        for audit in [one for one in audits if one.poll() is not None]:
            audits.remove(audit)
            yield audit


def _ended(audit: subprocess.Popen[bytes]) -> float:
    if audit.returncode:
        raise RuntimeError(f"an audit ended with {audit.returncode}")
    return time.perf_counter()


@contextmanager
def _one_processor() -> Iterator[Path | None]:
    """A control group with the time of one processor; None where none can be made."""
    try:
        GROUP.mkdir()
        (GROUP / "cpu.cfs_period_us").write_text("100000")
        (GROUP / "cpu.cfs_quota_us").write_text("100000")
    except OSError:
        with suppress(OSError):
            GROUP.rmdir()
        yield None
        return
    try:
        yield GROUP
    finally:
        GROUP.rmdir()
