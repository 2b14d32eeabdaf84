"""The most memory that this process has used."""

from __future__ import annotations

import resource
import sys
from pathlib import Path


def peak_memory() -> int:
    """Peak resident memory of this process in bytes.

    Linux' ``ru_maxrss`` also counts what the process that started this one held at that moment, so a command started
    by a large program would report that program's memory: where there is ``VmHWM``, it is read instead.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Linux counts in KiB, macOS in bytes.
    return peak if sys.platform == "darwin" else peak * 1024
