"""How fast the command line answers."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measured import Measured


def run() -> Iterator[Measured]:
    command = str(Path(sys.executable).parent / "embaudit")
    seconds = []
    for _ in range(7):
        started = time.perf_counter()
        subprocess.run([command, "--help"], check=True, capture_output=True)
        seconds.append(time.perf_counter() - started)
    yield Measured("`embaudit --help`, median of 7", f"{statistics.median(seconds):.2f} s", "< 0.5 s")
