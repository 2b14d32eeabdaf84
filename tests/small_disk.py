"""Disks that can be full: a tmpfs of a few megabytes. A plugin of ``tests/conftest.py``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest


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
