"""``python -m benchmarks serving --passport``: serve the checkpoint in every way, and verify its passport."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.measured import Measured
from benchmarks.serving.faults import GOOD, Serving
from benchmarks.serving.server import serving
from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.questions.parity.compare import HALF
from embaudit.questions.passport.make import make_passport
from embaudit.questions.passport.passport import Passport
from embaudit.questions.passport.verify import PassportReport, verify_with


@dataclass(frozen=True)
class Verified:
    """What a verification says of one way to serve."""

    serving: Serving
    report: PassportReport
    seconds: float

    @property
    def is_caught(self) -> bool:
        return self.report.verdict == "another function"

    @property
    def where(self) -> str:
        """The kinds that differ, or the way of asking that does."""
        ways = [
            f"asked {one.how}" for one in self.report.asked if one.difference.failures or one.difference.worst > HALF
        ]
        kinds = self.report.differing
        everywhere = len(kinds) == len(self.report.kinds)
        return "every kind" if everywhere else ", ".join(kinds or ways)


def print_verified(ways: Sequence[Serving]) -> None:
    """Print a row for each way to serve, and the totals."""
    print("| served | verdict | s | differing | probable |\n|---|---|---|---|---|")
    found = []
    for one in verified(ways):
        row = (one.serving.name, one.report.verdict, f"{one.seconds:.1f}", one.where, one.report.probable)
        print(f"| {' | '.join(row)} |", flush=True)
        found.append(one)
    print("\n| what | measured | target |\n|---|---|---|")
    for line in totals(found):
        print(f"| {line.what} | {line.found} | {line.target} |")


def verified(ways: Sequence[Serving]) -> Iterator[Verified]:
    options = LoadOptions(device="cpu")
    checkpoint = load_checkpoint(GOOD, options)
    passport = make_passport(CheckpointFunction(checkpoint), options)
    for way in ways:
        yield verified_as(way, checkpoint, passport)


def verified_as(way: Serving, checkpoint: Checkpoint, passport: Passport) -> Verified:
    with serving(way.served(checkpoint)) as address:
        started = time.perf_counter()
        with open_endpoint(address) as endpoint:
            report = verify_with(passport, endpoint)
    return Verified(way, report, time.perf_counter() - started)


def totals(found: Sequence[Verified]) -> Iterator[Measured]:
    """The figures that a passport is held to."""
    faults = [one for one in found if one.serving.is_fault]
    harmless = [one for one in found if not one.serving.is_fault]
    if faults:
        caught = [one for one in faults if one.is_caught]
        yield Measured("serving faults caught", f"{len(caught)} of {len(faults)}", "those that move a canary")
        named = [one for one in caught if one.where]
        yield Measured("of these, kind or way of asking named", f"{len(named)} of {len(caught)}", "all")
    if harmless:
        alarms = [one for one in harmless if one.is_caught]
        yield Measured("harmless ways called another function", f"{len(alarms)} of {len(harmless)}", "0")
    if found:
        seconds = [one.seconds for one in found]
        yield Measured("seconds each without the start: median, most", f"{median(seconds):.1f}, {max(seconds):.1f}")
