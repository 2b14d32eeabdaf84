"""Weights that stay in their files: what is read of a mapped file is given back to the system soon after.

transformers maps safetensors files, so a page of one is in memory as soon as it is read, and stays there as long as the
mapping does. Where each tensor is looked at once (``embaudit check --files``), or copied into another precision (any
other command), that would be the whole file beside what is computed. The system reads a page again if it must.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

# Of mapped files, so many bytes may be in memory before they are given back, and how often that is looked at.
KEPT, SECONDS = 1 << 27, 0.02
PAGE = 4096
MADV_DONTNEED = 4


@contextmanager
def giving_back(files: Collection[Path]) -> Iterator[None]:
    """Keep no more than about ``KEPT`` bytes of these files in memory within the block, looked at by ``was_read``.

    A mapping that somebody has written to is left as it is: its pages are no longer the file's. Does nothing but on
    Linux.
    """
    if sys.platform != "linux" or not files:
        yield
        return
    outer = _WATCHED.set(Pages(files))
    try:
        yield
    finally:
        _WATCHED.reset(outer)


@contextmanager
def giving_back_meanwhile(files: Collection[Path]) -> Iterator[None]:
    """The same while a library loads a whole model, which asks nobody between two tensors: a thread looks.

    Only where nothing that was read stays mapped: what is written between the thread's look and its call would be lost.
    """
    if sys.platform != "linux" or not files:
        yield
        return
    pages, done = Pages(files), threading.Event()

    def watch() -> None:
        while not done.wait(SECONDS):
            pages.give_back()

    watcher = threading.Thread(target=watch, name="pages of weight files", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def was_read() -> None:
    """Said after each tensor by whatever looks at many, in the thread that alone uses them: nobody writes meanwhile."""
    if (pages := _WATCHED.get()) is not None:
        pages.give_back()


class Pages:
    """What of some files is in memory; nothing is given back but on Linux."""

    def __init__(self, files: Collection[Path]) -> None:
        self.names = {str(path.resolve()) for path in files}
        self.is_here = sys.platform == "linux"
        if not self.is_here:
            return
        # Libraries are mapped files, too.
        self.others = _of_files()
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def give_back(self) -> None:
        with suppress(OSError):
            if not self.is_here or _of_files() - self.others < KEPT:
                return
            for start, size in clean_mappings(self.names):
                self.libc.madvise(start, size, MADV_DONTNEED)
            # A library may have been loaded meanwhile.
            self.others = _of_files()


_WATCHED: ContextVar[Pages | None] = ContextVar("watched", default=None)


def _of_files() -> int:
    """Bytes of mapped files in this process's memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[2]) * PAGE


def clean_mappings(names: Collection[str]) -> Iterator[tuple[int, int]]:
    """(address, bytes) of the private mappings of these files that nobody has written to."""
    found: tuple[int, int] | None = None
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        first, _, rest = line.partition(" ")
        if not first.endswith(":"):
            start, _, end = first.partition("-")
            words = rest.split(maxsplit=4)
            is_ours = len(words) == 5 and words[0].endswith("p") and words[4] in names
            found = (int(start, 16), int(end, 16) - int(start, 16)) if is_ours else None
        elif first == "Anonymous:" and found is not None and rest.split()[0] == "0":
            yield found
