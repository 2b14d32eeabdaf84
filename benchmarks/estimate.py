"""How long an audit says that it takes, and how long it takes: measure by measure, in a fresh home.

With half precision wherever this machine is faster with it, and once more without such instructions. Seconds of the
process are a processor's time: beside other work they say more than those of the clock.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

from benchmarks.measured import Measured
from embaudit.steps.progress import NoDisplay, shown_on

# Widths of oneDNN: the last without half precision of any kind.
WAYS = {"with half precision where it is faster": {}, "without such units": {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI"}}
CHECKPOINT, PROFILE = "packaged:all-MiniLM-L6-v2", "quick"


def run() -> Iterator[Measured]:
    for way, environment in WAYS.items():
        with tempfile.TemporaryDirectory() as home:
            done = subprocess.run(
                [sys.executable, "-m", __name__],
                env={
                    **os.environ,
                    "EMBAUDIT_HOME": home,
                    "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL": "CRITICAL",
                    **environment,
                },
                check=True,
                stdout=subprocess.PIPE,
                text=True,
            )
        found = json.loads(done.stdout.splitlines()[-1])
        yield Measured(f"an audit's estimate {way}", _said(found), "within 25 %")


def _said(found: dict[str, Any]) -> str:
    parts = ", ".join(
        f"{name} {one['expected']:.0f} and {one['seconds']:.0f} s ({one['processor']:.0f} of a processor)"
        for name, one in found["measures"].items()
    )
    whole = found["expected"] / found["seconds"]
    return (
        f"{found['expected']:.0f} s were expected, and {found['seconds']:.0f} s taken: {whole:.2f} of it ({parts}); "
        f"{found['before']:.0f} s before, {found['after']:.0f} s after the measures; GFLOP/s {found['rates']}"
    )


class Recorded(NoDisplay):
    """What an audit says, and when each measure was done."""

    def __init__(self) -> None:
        self.measures: dict[str, dict[str, float]] = {}
        self.processor = self.until = 0.0

    def say(self, line: str, level: int = logging.INFO) -> None:
        print(line, file=sys.stderr)

    def measured(self, what: str, seconds: float) -> None:
        before, self.processor, self.until = self.processor, time.process_time(), time.monotonic()
        self.measures[what.partition(" ")[0]] = {"seconds": seconds, "processor": self.processor - before}


def child() -> None:
    """One audit in this process; prints what was expected and what it took as JSON."""
    began = time.monotonic()

    import embaudit
    from embaudit.checkpoint import precision
    from embaudit_flows import audit, measure

    display, rates = Recorded(), dict[str, int]()
    expected: dict[str, float] = {}
    before = 0.0

    def say_how_long(*given: Any) -> Any:
        nonlocal before
        found = measure.say_how_long(*given)
        if found is not None:
            expected.update(found.seconds)
        before, display.processor = time.monotonic() - began, time.process_time()
        return found

    def operations_per_second(device: str, dtype: str, widths: tuple[int, int]) -> float:
        rate = precision.operations_per_second(device, dtype, widths)
        rates.setdefault(dtype, round(rate / 1e9))
        return rate

    with (
        mock.patch.object(audit, "say_how_long", say_how_long),
        mock.patch.object(measure, "operations_per_second", operations_per_second),
        shown_on(display),
    ):
        embaudit.audit(CHECKPOINT, PROFILE, device="cpu")
    ended = time.monotonic()
    found = {
        "expected": sum(expected.values()) + measure.FIXED_SECONDS,
        "seconds": ended - began - before,
        "before": before,
        "after": ended - display.until,
        "rates": rates,
        "measures": {name: {"expected": expected[name], **one} for name, one in display.measures.items()},
    }
    print(json.dumps(found))


if __name__ == "__main__":
    child()
