"""How many processors a process may use, by its affinity and its container's quota, and what its threads do waiting."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from benchmarks.sharing import one_processor
from embaudit.system.processors import processors, share_processors

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
OWN, CPU = "proc/self/cgroup", "sys/fs/cgroup/cpu"
QUOTA, PERIOD = "cpu.cfs_quota_us", "cpu.cfs_period_us"
# What lies below the root, and the processors that it allows; more than there are says nothing.
ALLOWED: dict[str, tuple[Mapping[str, str], float]] = {
    "no control groups": ({}, CORES),
    "no limit": ({OWN: "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, CORES),
    "a container of one": ({OWN: "0::/\n", "sys/fs/cgroup/cpu.max": "100000 100000\n"}, 1),
    "a container of half a processor": ({OWN: "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
    "a container of more than there are": ({OWN: "0::/\n", "sys/fs/cgroup/cpu.max": "99900000 100000\n"}, CORES),
    "a service with a quota": ({OWN: "0::/a.slice/b\n", "sys/fs/cgroup/a.slice/b/cpu.max": "90000 100000\n"}, 1),
    "a quota around a service": (
        {
            OWN: "0::/a.slice/b\n",
            "sys/fs/cgroup/a.slice/b/cpu.max": "max 100000\n",
            "sys/fs/cgroup/a.slice/cpu.max": "100000 100000\n",
        },
        1,
    ),
    "version 1": (
        {OWN: "3:cpuset:/\n1:cpu,x:/d\n", f"{CPU}/d/{QUOTA}": "100000\n", f"{CPU}/d/{PERIOD}": "100000\n"},
        1,
    ),
    # The path is the host's, which a container does not see.
    "a container of version 1": (
        {OWN: "1:cpu:/docker/4f\n", f"{CPU}/{QUOTA}": "100000\n", f"{CPU}/{PERIOD}": "100000\n"},
        1,
    ),
    "version 1 without a quota": ({OWN: "1:cpu:/\n", f"{CPU}/{QUOTA}": "-1\n", f"{CPU}/{PERIOD}": "100000\n"}, CORES),
    "other controllers": ({OWN: "2:memory:/\n", f"{CPU}/{QUOTA}": "1\n", f"{CPU}/{PERIOD}": "100000\n"}, CORES),
    "what nobody can read": ({OWN: "nonsense\n", "sys/fs/cgroup/cpu.max": "100000 100000\n"}, CORES),
    "a quota that is no number": ({OWN: "0::/\n", "sys/fs/cgroup/cpu.max": "one two\n"}, CORES),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_processors_are_those_of_the_quota(case: str, tmp_path: Path) -> None:
    files, allowed = ALLOWED[case]
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert processors(tmp_path) == allowed


@pytest.mark.parametrize("given", [{"OMP_WAIT_POLICY": "ACTIVE"}, {"GOMP_SPINCOUNT": "5"}, {"KMP_BLOCKTIME": "200"}])
def test_what_a_user_has_set_stays(given: dict[str, str]) -> None:
    environment = {**given, "OMP_NUM_THREADS": "3"}
    share_processors(environment)
    assert environment == {**given, "OMP_NUM_THREADS": "3"}


SAID = """
import {package}
import os, torch
print(os.environ.get("OMP_WAIT_POLICY"), torch.get_num_threads())
"""
MINE = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_", "KMP_", "MKL_"))}


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group with the time of one processor."""
    with one_processor(f"embaudit-test-{os.getpid()}") as made:
        if made is None:
            pytest.skip("no control group of version 1 can be made here")
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("package", ["embaudit_flows", pytest.param("embaudit_tasks", marks=pytest.mark.slow)])
def test_flows_and_tasks_keep_to_a_containers_limit(package: str, group: Path) -> None:
    script = SAID.format(package=package)
    command = f'echo $$ > {group}/cgroup.procs && exec "$0" -c "$1"'
    done = subprocess.run(["sh", "-c", command, sys.executable, script], env=MINE, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()) == (0, ["PASSIVE", "1"]), done.stderr
