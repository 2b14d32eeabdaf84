"""Encoding beside itself: how long it takes alone, with another, with two, and in a container of one processor.

Each is timed as embaudit starts it, and with threads that spin while they wait, as OpenMP has them by itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean, median

from benchmarks.measured import Measured

TEXTS = 3_000
# The flows are imported first, as in an audit: that is where threads are told how to wait.
ENCODING = f"""
import embaudit_flows, time
from benchmarks.measured import sentences
from embaudit.checkpoint import Encoder, load_checkpoint
encoder, (texts, _) = Encoder(load_checkpoint("packaged:all-MiniLM-L6-v2")), sentences({TEXTS})
encoder.encode_texts(texts[:100])
since = time.perf_counter()
encoder.encode_texts(texts)
print(time.perf_counter() - since)
"""
# How often a waiting thread looks before it sleeps; the last is what libgomp does where nothing is set.
WAYS: dict[str, dict[str, str]] = {
    "threads that wait sleep": {},
    "they look a thousand times first": {"GOMP_SPINCOUNT": "1000"},
    "they spin": {"GOMP_SPINCOUNT": "300000"},
}
AT_ONCE, TURNS = (2, 3), 3


def run() -> Iterator[Measured]:
    # By turns, so that a machine that becomes slower is slower for all.
    turns = [{name: _together(1, environment)[0] for name, environment in WAYS.items()} for _ in range(TURNS)]
    for name, environment in WAYS.items():
        times = [turn[name] for turn in turns]
        alone = median(times)
        span = f"{alone:.1f} s ({min(times):.1f}–{max(times):.1f})"
        beside = (f"{count} at once {mean(_together(count, environment)) / alone:.1f} ×" for count in AT_ONCE)
        yield Measured(f"{TEXTS:,} texts, {name} (`sharing`): alone; each of several", f"{span}; {', '.join(beside)}")
    with one_processor("embaudit-benchmark") as group:
        if group is None:
            return
        # As many threads as the machine has processors, which the time of one must do for.
        everything = WAYS["they spin"] | {"OMP_NUM_THREADS": str(len(os.sched_getaffinity(0)))}
        for name, environment in (("as embaudit starts it", {}), ("a spinning thread per core", everything)):
            (seconds,) = _together(1, environment, group)
            yield Measured(f"the same in the time of one processor, {name}", f"{seconds:.0f} s")


def _together(count: int, environment: dict[str, str], group: Path | None = None) -> list[float]:
    """Seconds that each of some processes encodes, which start at the same time."""
    others = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    command: Sequence[str] = (sys.executable, "-c", ENCODING)
    if group is not None:
        command = ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh", *command)
    started = [subprocess.Popen(command, env={**others, **environment}, stdout=subprocess.PIPE) for _ in range(count)]
    return [float(one.communicate()[0]) for one in started]


@contextmanager
def one_processor(name: str) -> Iterator[Path | None]:
    """A control group (version 1) with the time of one processor; None where none can be made."""
    group = Path("/sys/fs/cgroup/cpu") / name
    try:
        group.mkdir()
        (group / "cpu.cfs_period_us").write_text("100000")
        (group / "cpu.cfs_quota_us").write_text("100000")
    except OSError:
        with suppress(OSError):
            group.rmdir()
        yield None
        return
    try:
        yield group
    finally:
        group.rmdir()
