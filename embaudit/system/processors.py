"""The processors that a command may use, and threads that leave them to others while they wait.

OpenMP's threads spin while they wait for one another. Beside another busy process that is time taken from a thread that
could compute, for which the spinning one waits: of two processes that encode on two cores, each takes 3.2 times as long
as one alone, and 1.7 times if their threads sleep, which alone costs 6 % (benchmarks/README.md). And OpenMP
starts as many as the machine has processors, also where a container gives this process the time of one.

Peak memory of this process.
"""

from __future__ import annotations

import math
import os
import resource
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path

# How waiting threads behave, in libgomp and in LLVM's and Intel's OpenMP.
WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
SLEEP_AT_ONCE = {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "0"}
THREADS = "OMP_NUM_THREADS"
ROOT = Path("/")


def share_processors(environment: MutableMapping[str, str] = os.environ) -> None:
    """Have threads that wait sleep, and start no more of them than there are processors to use.

    To be called before torch is imported, which reads these variables once; processes that are started inherit them.
    What a user has set stays.
    """
    if not any(name in environment for name in WAITING):
        environment.update(SLEEP_AT_ONCE)
    allowed = processors()
    if THREADS not in environment and allowed < _of_affinity():
        environment[THREADS] = str(allowed)


def threads_of_duckdb(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Its setting, if there is a number of threads to keep to: it reads no variable of OpenMP.

    A warehouse that is opened with two threads takes a fifth more time of processors than with one.
    """
    number = environment.get(THREADS, "").split(",")[0].strip()
    return {"threads": number} if number.isdecimal() and int(number) else {}


def processors(root: Path = ROOT) -> int:
    """Number of processors that this process may keep busy: those of its affinity, or fewer by its cgroups' quota.

    Args:
        root: where ``/proc`` and ``/sys`` are.
    """
    return max(1, min([_of_affinity(), *(math.ceil(quota) for quota in _quotas(root))]))


def _of_affinity() -> int:
    # os.process_cpu_count, from Python 3.13 on; macOS has no affinity.
    known = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return len(known)


def _quotas(root: Path) -> Iterator[float]:
    """Processors by the quota of each control group that this process is in."""
    for group in control_groups(root, "cpu"):
        yield from _quota_of(group)


def control_groups(root: Path, controller: str) -> Iterator[Path]:
    """Folders of the control groups that this process is in, its own and those around it, of ``cpu`` or ``memory``."""
    groups = root / "sys/fs/cgroup"
    with suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            # A container sees its own group as the root, whatever path the kernel names.
            mount = groups / controller if controllers else groups
            own = mount / path.lstrip("/")
            for folder in (own, *own.parents):
                yield folder
                if folder == mount:
                    break


def _quota_of(folder: Path) -> Iterator[float]:
    with suppress(OSError, ValueError):
        quota, period = (folder / "cpu.max").read_text().split()
        if quota != "max":
            yield int(quota) / int(period)
    with suppress(OSError, ValueError):
        quota_us, period_us = ((folder / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        if int(quota_us) > 0:
            yield int(quota_us) / int(period_us)


def peak_memory() -> int:
    """Peak resident memory of this process in bytes.

    On Linux ``ru_maxrss`` includes the memory of the parent process at the time of the fork, so a command started by a
    large program would report that program's memory: ``VmHWM`` is read instead where available.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # KiB on Linux, bytes on macOS.
    return peak if sys.platform == "darwin" else peak * 1024
