"""Worker processes of a command: which there are, and waiting for what they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def wait_for(condition: Callable[[], object], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    """Worker processes that descend from one: those that multiprocessing spawned."""
    parents, commands = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            commands[int(folder.name)] = (folder / "cmdline").read_bytes()
    family = {pid}
    while more := {child for child, parent in parents.items() if parent in family} - family:
        family |= more
    # A worker of Dask gives itself a title, where there is room for it.
    marks = (b"spawn_main", b"dask worker [")
    return sorted(child for child in family - {pid} if any(mark in commands.get(child, b"") for mark in marks))


def alive(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
