"""``python -m benchmarks serving``: serve the checkpoint in every way, and hold what ``parity`` says against it."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.measured import Measured
from benchmarks.serving.commands import print_commands
from benchmarks.serving.faults import FAULTS, GOOD, HARMLESS, Serving
from benchmarks.serving.server import serving
from benchmarks.serving.verifying import print_verified
from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.embedders.endpoint.client import Endpoint
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.embedders.object.carrier import ObjectFunction
from embaudit.measures.quality.material import Material, sample_material
from embaudit.questions.parity.parity import ParityReport, compare_with


@dataclass(frozen=True)
class Outcome:
    """What parity says of one way to serve."""

    serving: Serving
    report: ParityReport
    seconds: float

    @property
    def is_found(self) -> bool:
        return self.report.verdict == "another function"

    @property
    def sentences(self) -> str:
        return " ".join(finding.sentence for finding in self.report.findings if finding.level == "problem")

    @property
    def is_explained(self) -> bool:
        return self.is_found and bool(re.search(self.serving.called, self.sentences))

    @property
    def judged(self) -> str:
        if not self.serving.is_fault:
            return "false alarm" if self.is_found else "right"
        return "missed" if not self.is_found else "right" if self.is_explained else "found, not explained"


def run() -> Iterator[Measured]:
    """The totals alone, for ``make bench``."""
    yield from totals(list(outcomes((*FAULTS, *HARMLESS), sample_material())))


def main(arguments: Sequence[str]) -> None:
    """Print a row for each way to serve, and the totals."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks serving", description=__doc__)
    parser.add_argument("--only", metavar="REGEX", default="", help="ways whose name matches")
    parser.add_argument("--kinds-only", action="store_true", help="leave out pairs and queries, which decide nothing")
    parser.add_argument("--as-object", action="store_true", help="ask each server through an object of a program")
    parser.add_argument("--passport", action="store_true", help="verify a passport in place of a comparison")
    parser.add_argument("--commands", action="store_true", help="time whole commands beside a faithful server instead")
    chosen = parser.parse_args(arguments)
    if chosen.commands:
        print_commands()
        return
    ways = [one for one in (*FAULTS, *HARMLESS) if re.search(chosen.only, one.name, re.IGNORECASE)]
    if chosen.passport:
        print_verified(ways)
        return
    print("| served | API | verdict | s | right? | said |\n|---|---|---|---|---|---|")
    found = []
    material = Material() if chosen.kinds_only else sample_material()
    for outcome in outcomes(ways, material, as_object=chosen.as_object):
        said = outcome.report.line.replace("|", "\\|")
        row = (
            outcome.serving.name,
            outcome.serving.api,
            outcome.report.verdict,
            f"{outcome.seconds:.1f}",
            outcome.judged,
        )
        print(f"| {' | '.join(row)} | {said} |", flush=True)
        found.append(outcome)
    print("\n| what | measured | target |\n|---|---|---|")
    for line in totals(found):
        print(f"| {line.what} | {line.found} | {line.target} |")


def outcomes(ways: Sequence[Serving], material: Material, *, as_object: bool = False) -> Iterator[Outcome]:
    checkpoint = load_checkpoint(GOOD, LoadOptions(device="cpu"))
    for way in ways:
        yield outcome_of(way, checkpoint, material, as_object=as_object)


def outcome_of(way: Serving, checkpoint: Checkpoint, material: Material, *, as_object: bool = False) -> Outcome:
    with serving(way.served(checkpoint)) as address:
        started = time.perf_counter()
        with open_endpoint(address) as endpoint:
            other = ObjectFunction(Client(endpoint), "a client", takes_many_at_once=True) if as_object else endpoint
            report = compare_with(CheckpointFunction(checkpoint), other, material)
    return Outcome(way, report, time.perf_counter() - started)


class Client:
    """An object of a program that asks a server, as LangChain's do: what it asks for together is one request."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._endpoint.ask(texts).tolist()

    def embed_query(self, text: str) -> list[float]:
        return self._endpoint.ask([text])[0].tolist()


def totals(found: Sequence[Outcome]) -> Iterator[Measured]:
    """The figures that parity is held to."""
    faults = [outcome for outcome in found if outcome.serving.is_fault]
    harmless = [outcome for outcome in found if not outcome.serving.is_fault]
    if faults:
        yield Measured("serving faults found", _share([one for one in faults if one.is_found], faults), "≥ 95 %")
        yield Measured("explained right", _share([one for one in faults if one.is_explained], faults), "≥ 80 %")
    if harmless:
        alarms = [one for one in harmless if one.is_found]
        yield Measured("harmless ways called another function", _share(alarms, harmless), "0")
    if found:
        seconds = [one.seconds for one in found]
        yield Measured("seconds each: median, most", f"{median(seconds):.1f}, {max(seconds):.1f}")


def _share(part: Sequence[Outcome], whole: Sequence[Outcome]) -> str:
    return f"{len(part)} of {len(whole)} ({len(part) / len(whole):.0%})"
