"""Which files of a folder a block of code opens, in whatever language: the kernel tells, through inotify."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

OPENED, IS_FOLDER = 0x20, 0x40000000
EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name


@contextmanager
def opened_files(folder: Path) -> Iterator[set[str]]:
    """A set that holds, after the block, the files opened in it, relative to the folder."""
    if not sys.platform.startswith("linux"):
        pytest.skip("needs Linux's inotify")
    libc = ctypes.CDLL(None, use_errno=True)
    watcher = libc.inotify_init1(os.O_NONBLOCK)
    folders = {
        libc.inotify_add_watch(watcher, os.fsencode(path), OPENED): path
        for path in (folder, *(path for path in folder.rglob("*") if path.is_dir()))
    }
    found: set[str] = set()
    try:
        yield found
        try:
            events = os.read(watcher, 1 << 20)
        except BlockingIOError:
            events = b""
        while events:
            watch, mask, _, length = EVENT.unpack_from(events)
            name = events[EVENT.size : EVENT.size + length].rstrip(b"\0")
            if name and not mask & IS_FOLDER:
                found.add((folders[watch] / os.fsdecode(name)).relative_to(folder).as_posix())
            events = events[EVENT.size + length :]
    finally:
        os.close(watcher)
