"""The whole of ``make audit``: wall time and peak memory of the process tree's largest member, in a fresh home."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measured import Measured


def run() -> Iterator[Measured]:
    command = str(Path(sys.executable).parent / "embaudit")
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "EMBAUDIT_HOME": home}
        arguments = [command, "audit", "packaged:all-MiniLM-L6-v2", "--profile", "quick"]
        seconds = []
        for _ in range(2):
            started = time.perf_counter()
            subprocess.run(arguments, env=environment, check=True, capture_output=True)
            seconds.append(time.perf_counter() - started)
    # The largest finished child: on Linux in KiB.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024**2
    yield Measured(
        "`make audit` after set-up, profile quick",
        f"{seconds[0]:.0f} s, peak memory {peak:.1f} GiB; the same command again {seconds[1]:.0f} s",
        "≤ 300 s, < 3 GB",
    )
