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
from statistics import mean

from benchmarks.measured import Measured

TEXTS = 3_000
# As long as embaudit's flows are imported first, threads are as they are in an audit.
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
# What libgomp does where nothing is set, and the user's word, which embaudit leaves alone.
SPINNING = {"GOMP_SPINCOUNT": "300000"}
GROUP = Path("/sys/fs/cgroup/cpu/embaudit-benchmark")


def run() -> Iterator[Measured]:
    alone: dict[str, float] = {}
    for name, environment, at_once in (("threads that wait sleep", {}, (1, 2, 3)), ("they spin", SPINNING, (1, 2, 3))):
        for count in at_once:
            seconds = mean(_together(count, environment))
            alone.setdefault(name, seconds)
            yield Measured(
                f"{TEXTS:,} texts encoded by {count} at once, {name} (`sharing`)",
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
