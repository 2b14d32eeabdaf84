"""A command in a pseudo-terminal: Ctrl-C goes to every process of the foreground group, as it does for a person."""

from __future__ import annotations

import os
import pty
import select
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

CTRL_C = b"\x03"
# Long enough for a busy machine, and much shorter than the minutes for which Prefect's client retries.
PATIENCE = 60


@dataclass
class InTerminal:
    """A running command, and what it has printed."""

    pid: int
    terminal: int
    printed: bytes = b""
    code: int | None = field(default=None)

    @classmethod
    def start(cls, words: list[str], environment: Mapping[str, str], folder: Path) -> InTerminal:
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(folder)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.execve(words[0], words, dict(environment))
        return cls(pid, terminal)

    def wait_for(self, condition: Callable[[InTerminal], object], seconds: float = 600) -> bool:
        """Whether the condition came true before the command ended."""
        deadline = time.monotonic() + seconds
        while not condition(self):
            if not self.is_running():
                return False
            assert time.monotonic() < deadline, f"it went on for {seconds} s: {self.text}"
            self._read()
        return True

    def press(self) -> None:
        """Ctrl-C; returns when the command has seen it, so that the next press is another one."""
        os.write(self.terminal, CTRL_C)
        self.wait_for(lambda _: not self._is_pending(), PATIENCE)

    def end(self) -> int:
        """The exit code; minus a signal's number if it ended by one."""
        self.wait_for(lambda _: False, PATIENCE)
        assert self.code is not None
        return self.code

    def is_running(self) -> bool:
        if self.code is None:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                while self._read():
                    pass
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is None

    def close(self) -> None:
        """kill -9, if it still runs."""
        if self.is_running():
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.terminal)

    @property
    def text(self) -> str:
        return self.printed.decode(errors="replace")

    def _read(self) -> bool:
        """Read what there is: a command that nobody reads stops when the terminal's buffer is full."""
        if not select.select([self.terminal], [], [], 0.01)[0]:
            return False
        try:
            more = os.read(self.terminal, 65536)
        except OSError:
            # Linux, when the last process of the terminal has gone.
            return False
        self.printed += more
        return bool(more)

    def _is_pending(self) -> bool:
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return False
        waiting = (int(line.split()[1], 16) for line in status.splitlines() if line.startswith(("SigPnd", "ShdPnd")))
        return any(mask >> (signal.SIGINT - 1) & 1 for mask in waiting)
