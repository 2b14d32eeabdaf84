"""``python -m benchmarks serving --commands``: whole commands beside a faithful server of the checkpoint, timed."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.serving.faults import GOOD, faithful
from benchmarks.serving.server import Served, serving
from embaudit.checkpoint import LoadOptions, load_checkpoint

RUNS = 3


def print_commands() -> None:
    """Print the median and the range of each command, start included; the server is on the same cores."""
    served = Served(faithful(load_checkpoint(GOOD, LoadOptions(device="cpu"))))
    print("| command | s, median (range) | texts asked for |\n|---|---|---|")
    with TemporaryDirectory() as folder, serving(served) as address:
        passport = str(Path(folder) / "passport.json")
        _run("passport", GOOD, "--out", passport)
        for name, arguments in {
            "verify": ("verify", passport, "--with", address),
            "check": ("check", address, "--fresh"),
            "check, a second time": ("check", address),
            "parity": ("parity", GOOD, "--with", address),
        }.items():
            served.requests.clear()
            seconds = [_run(*arguments) for _ in range(RUNS)]
            inputs = (asked.get("input", asked.get("inputs")) for asked in served.requests)
            texts = sum(len(given) if isinstance(given, list) else 1 for given in inputs)
            span = f"{median(seconds):.1f} ({min(seconds):.1f}–{max(seconds):.1f})"
            print(f"| `{name}` | {span} | {texts // RUNS:,} |", flush=True)


def _run(*arguments: str) -> float:
    """Seconds of a command that succeeds."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "embaudit", *arguments], check=True, capture_output=True)
    return time.perf_counter() - start
