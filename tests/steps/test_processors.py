"""How many processors a process may use, by its affinity and its container's quota, and what its threads do waiting."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import tiny_bert

from benchmarks.sharing import one_processor
from embaudit.measures import MEASURES
from embaudit.measures.integrity.work import checkpoint_integrity
from embaudit.measures.quality.work import checkpoint_quality
from embaudit.pages.write import _queries
from embaudit.steps.results import CheckpointSpec, checkpoint_of
from embaudit.system.processors import processors, share_processors
from embaudit.words.errors import NotMeasurable, UsageError

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


# ---- A measure runs without Prefect, DuckDB and Great Expectations, and stages what it stages in an audit ----


ALONE = """
import sys
for name in ("prefect", "duckdb", "great_expectations"):
    sys.modules[name] = None
from embaudit.checkpoint import load_checkpoint
from embaudit.corpora.load import load_corpus
from embaudit.measures import MEASURES
from embaudit.measures.run import Run
from embaudit.measures.listed import load_profile
from embaudit.steps.corpora import stage_corpus
from embaudit.steps.results import CheckpointSpec

folder, staging, profile = sys.argv[1:]
checkpoint = load_checkpoint(folder)
spec = CheckpointSpec(reference=folder, checkpoint_id=checkpoint.checkpoint_id, device="cpu", dtype="float32")
settings = load_profile(profile)
corpora = {name: stage_corpus(load_corpus(name, "sample"), staging) for name in ("wikipedia", "msmarco")}
run = Run(spec=spec, staging=staging, seed=0, profile=settings, widths=(32, 64), corpora=corpora)
for name in ("integrity", "layers", "socm", "geometry"):
    print(name, *sorted({part.table for part in MEASURES[name].parts().measure(run) if part.rows}))
"""
PROFILE = """
name = "p"
version = 1
description = "d"
[socm]
texts = 12
[layers]
texts = 12
[geometry]
texts = 12
"""


@pytest.mark.slow
def test_measures_run_without_the_engine(tmp_path: Path) -> None:
    (tmp_path / "profile.toml").write_text(PROFILE)
    checkpoint = tiny_bert(tmp_path / "tiny")
    arguments = [str(checkpoint), str(tmp_path / "staging"), str(tmp_path / "profile.toml")]
    done = subprocess.run([sys.executable, "-c", ALONE, *arguments], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    staged = {line.split()[0]: set(line.split()[1:]) for line in done.stdout.splitlines()}
    assert {"weight", "integrity_finding"} <= staged["integrity"]
    assert {"layer_text", "layer_stat", "pooled_stat"} <= staged["layers"]
    assert {"socm_text", "socm_pair", "socm_summary"} <= staged["socm"]
    assert {"geometry", "geometry_dimension"} <= staged["geometry"]


def test_a_page_asks_nothing_under_a_name_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _queries()
    monkeypatch.setitem(MEASURES, "another", replace(MEASURES["geometry"], name="another", package="a_package"))
    with pytest.raises(UsageError, match=r"the measure another \(a_package\) takes the name 'geometry"):
        _queries()


# ---- A device on which the audit's precision fits, and float32 does not ----


# On the processor and on Apple's devices, torch has no class of its own for it.
LACKS = [
    torch.OutOfMemoryError("CUDA out of memory"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("MPS backend out of memory (MPS allocated: 9.01 GB)"),
    MemoryError(),
]


@pytest.mark.parametrize("lack", LACKS, ids=["CUDA", "CPU", "MPS", "Python"])
def test_what_does_not_fit_is_not_measured_and_leaves_nothing(
    lack: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tiny_bert(tmp_path / "tiny"))

    def too_small(*_: object, **__: object) -> None:
        raise lack

    monkeypatch.setattr("embaudit.steps.results.load_checkpoint", too_small)
    checkpoint_of.cache_clear()
    spec = CheckpointSpec(reference=folder, checkpoint_id="c1", device="cpu", dtype="float32")
    for name, step, arguments in (
        ("integrity", checkpoint_integrity, (spec,)),
        ("quality", checkpoint_quality, (spec, [], False, False)),
    ):
        with pytest.raises(NotMeasurable, match=f"too small for {name} in float32"):
            step.compute(str(tmp_path / "staging"), *arguments)  # type: ignore[attr-defined]
    assert not list((tmp_path / "staging").rglob("*.parquet")), "it is tried again on a larger device"
