"""Peak memory of this process."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_memory() -> int:
    """Peak resident memory of this process in bytes.

    On Linux ``ru_maxrss`` includes the memory of the parent process at the time of the fork, so a command started by a
    large program would report that program's memory: ``VmHWM`` is read instead where available.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # KiB on Linux, bytes on macOS.
    return peak if sys.platform == "darwin" else peak * 1024
