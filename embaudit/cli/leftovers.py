"""Finds temporary servers of this user that outlived their command (``server/process.py`` should prevent it)."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass

from embaudit_flows.server.process import MODULE

# Age of a process as ps prints it: [[dd-]hh:]mm:ss.
ELAPSED = re.compile(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)")
UNITS = ("d", "h", "min", "s")


@dataclass(frozen=True)
class TemporaryServerProcess:
    """A running temporary server of embaudit.

    ``command`` is the process that started it, ``age`` its age in the largest unit ("3 d"), ``memory`` its resident
    bytes.
    """

    pid: int
    parent: int
    command: int
    age: str
    memory: int

    @property
    def is_leftover(self) -> bool:
        """Whether the command has ended: an orphaned process gets another parent."""
        return self.parent != self.command


def temporary_servers() -> list[TemporaryServerProcess]:
    """Temporary servers of this user, from any command and environment; not Prefect servers of other programs.

    Raises:
        OSError: if there is no ``ps``, or it does not behave as POSIX says.
    """
    columns = [word for column in ("pid", "ppid", "etime", "rss", "args") for word in ("-o", f"{column}=")]
    listed = subprocess.run(
        ["ps", "-ww", "-U", str(os.getuid()), *columns], capture_output=True, text=True, errors="replace", check=False
    )
    if listed.returncode:
        raise OSError(listed.stderr.strip() or f"ps ended with {listed.returncode}")
    server = re.compile(rf"(\d+) +(\d+) +(\S+) +(\d+) .* -m {re.escape(MODULE)} \d+ (\d+)")
    found = (server.fullmatch(line.strip()) for line in listed.stdout.splitlines())
    return [
        TemporaryServerProcess(int(one[1]), int(one[2]), int(one[5]), _age(one[3]), int(one[4]) * 1024)
        for one in found
        if one
    ]


def _age(elapsed: str) -> str:
    match = ELAPSED.fullmatch(elapsed)
    numbers = [int(number or 0) for number in match.groups()] if match else []
    return next((f"{number} {unit}" for number, unit in zip(numbers, UNITS, strict=False) if number), "0 s")
