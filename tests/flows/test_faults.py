"""Interrupts, kills, locks and full disks: nothing is half-written, and the same command finishes the job."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from commands import CLI, Embaudit

HOLD_LOCK = "import duckdb, sys, time; c = duckdb.connect(sys.argv[1]); print('held', flush=True); time.sleep(600)"


def start(command_environment: dict[str, str], cwd: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*CLI, *arguments],
        env=command_environment,
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition: object, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen in time")


def published(home: Path) -> dict[str, int]:
    with duckdb.connect(str(home / "warehouse.duckdb"), read_only=True) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # type: ignore[index]
            for table in ("socm_pair", "socm_text", "sticky_score", "sticky_validation", "token")
        }


def test_ctrl_c_exits_130_and_the_same_command_continues(
    embaudit: Embaudit,
    command_environment: dict[str, str],
    tiny_checkpoint: Path,
    tiny_profile: Path,
    home: Path,
    tmp_path: Path,
) -> None:
    arguments = ("audit", str(tiny_checkpoint), "--profile", str(tiny_profile))
    process = start(command_environment, tmp_path, *arguments)
    # Once the scores are staged, every scan task before them is on record as done.
    wait_for(lambda: list(home.rglob("sticky_score-*.parquet")))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Run the same command again" in errors
    assert "Traceback" not in errors
    kept = {path: path.stat().st_mtime_ns for path in home.rglob("scan-*.parquet")}
    assert kept
    result = embaudit(*arguments)
    assert result.returncode == 0, result.stderr
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert all(published(home).values())


@pytest.mark.slow
def test_kill_at_random_moments_loses_nothing(
    embaudit: Embaudit,
    command_environment: dict[str, str],
    tiny_checkpoint: Path,
    tiny_profile: Path,
    home: Path,
    tmp_path: Path,
) -> None:
    arguments = ("audit", str(tiny_checkpoint), "--profile", str(tiny_profile))
    generator = random.Random(0)
    for _ in range(5):
        process = start(command_environment, tmp_path, *arguments)
        time.sleep(generator.uniform(3, 14))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert not [path for path in home.rglob("*.parquet") if path.stat().st_size == 0]
        if (home / "warehouse.duckdb").is_file():
            counts = published(home)
            assert all(counts.values()) or not any(counts.values()), counts
    result = embaudit(*arguments)
    assert result.returncode == 0, result.stderr
    first = published(home)
    assert all(first.values())
    assert embaudit(*arguments).returncode == 0
    assert published(home) == first


@pytest.mark.slow
def test_a_locked_warehouse_is_left_for_the_same_command_to_finish(
    embaudit: Embaudit, tiny_checkpoint: Path, tiny_profile: Path, home: Path
) -> None:
    home.mkdir(parents=True)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(home / "warehouse.duckdb")], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline().strip() == "held"
        arguments = ("audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", "socm")
        result = embaudit(*arguments, EMBAUDIT_LOCK_WAIT_SECONDS="1")
        assert result.returncode == 2
        assert "Another process has the warehouse" in result.stderr
        assert "staged" in result.stderr
        assert "Traceback" not in result.stderr
    finally:
        holder.kill()
        holder.wait()
    staged = {path: path.stat().st_mtime_ns for path in home.rglob("socm_*.parquet")}
    assert embaudit(*arguments).returncode == 0
    assert {path: path.stat().st_mtime_ns for path in staged} == staged
    assert published(home)["socm_pair"] > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with 3 MB; making one takes root."""
    folder = tmp_path / "small"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip("needs the right to mount a small tmpfs")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.mark.slow
def test_a_full_disk_is_named_and_the_same_command_finishes_when_there_is_room(
    embaudit: Embaudit, tiny_checkpoint: Path, tiny_profile: Path, small_disk: Path
) -> None:
    home = small_disk / "home"
    home.mkdir()
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * (3 * 1024**2 - 200_000))
    arguments = ("audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", "socm")
    environment = {"EMBAUDIT_HOME": str(home)}
    result = embaudit(*arguments, **environment)
    assert result.returncode == 2, result.stdout
    assert "Traceback" not in result.stderr, result.stderr
    assert "disk is full" in result.stderr or "No space left" in result.stderr, result.stderr
    assert "same command again" in result.stderr
    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    result = embaudit(*arguments, **environment)
    assert result.returncode == 0, result.stderr
    assert published(home)["socm_pair"] > 0
