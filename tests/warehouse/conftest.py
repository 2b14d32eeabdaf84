"""Fixtures of the warehouse's tests: a fresh database each, processes that can be killed, disks that can be full."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from plausible import plausible_rows, stage_all

from embaudit.warehouse.publish import StagedTable

TESTS = Path(__file__).resolve().parent.parent


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Where a warehouse will be; its folder does not exist yet."""
    return tmp_path / "home" / "warehouse.duckdb"


@pytest.fixture
def staged(tmp_path: Path) -> list[StagedTable]:
    """One audit's staged files."""
    return stage_all(tmp_path / "staging", plausible_rows())


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts Python code in a process of its own, with the tests' modules; what still runs at the end is killed."""
    started = []

    def start(code: str, *arguments: object) -> subprocess.Popen[str]:
        running = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(TESTS)},
        )
        started.append(running)
        return running

    yield start
    for running in started:
        if running.poll() is None:
            running.kill()
        running.communicate()


class SmallDisk:
    """A tmpfs of a few megabytes that can grow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def mount(self, megabytes: int) -> None:
        self._call("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(self.folder))

    def grow(self, megabytes: int) -> None:
        self._call("mount", "-o", f"remount,size={megabytes}m", str(self.folder))

    def unmount(self) -> None:
        self._call("umount", "--lazy", str(self.folder))

    @staticmethod
    def _call(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], SmallDisk]]:
    """Mounts a small disk of its own, or skips where this user may not mount."""
    disk = SmallDisk(tmp_path / "disk")
    disk.folder.mkdir()
    mounted = False

    def mount(megabytes: int) -> SmallDisk:
        nonlocal mounted
        if os.geteuid() != 0:
            pytest.skip("needs root to mount a small disk")
        try:
            disk.mount(megabytes)
        except (subprocess.CalledProcessError, FileNotFoundError) as error:
            pytest.skip(f"cannot mount a small disk here: {error}")
        mounted = True
        return disk

    yield mount
    if mounted:
        disk.unmount()
