"""``python -m benchmarks situations``: ask about every situation and its twin, and count what is said."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measured import Measured
from benchmarks.situations.clients import CLIENTS
from benchmarks.situations.folders import FOLDERS
from benchmarks.situations.servers import SERVERS
from benchmarks.situations.situation import Outcome, Situation, findings
from embaudit.questions.report import Report

SITUATIONS: tuple[Situation, ...] = (*CLIENTS, *SERVERS, *FOLDERS)


def run() -> Iterator[Measured]:
    """The totals alone, for ``make bench``."""
    yield from totals([outcome_of(one) for one in SITUATIONS])


def main(arguments: Sequence[str]) -> None:
    """Print a row for each situation, and the totals."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks situations", description=__doc__)
    parser.add_argument("--only", metavar="REGEX", default="", help="situations whose name or command matches")
    chosen = parser.parse_args(arguments)
    some = [one for one in SITUATIONS if re.search(chosen.only, f"{one.command} {one.name}", re.IGNORECASE)]
    if not some:
        parser.error(f"no situation matches {chosen.only!r}")
    print("| situation | command | judged | said | its twin | said |\n|---|---|---|---|---|---|")
    found = []
    for situation in some:
        outcome = outcome_of(situation)
        twin = "false alarm" if outcome.is_false_alarm else "right"
        row = (situation.name, situation.command, outcome.judged, _said(outcome.report), twin, _said(outcome.twin))
        print(f"| {' | '.join(part.replace('|', chr(92) + '|') for part in row)} |", flush=True)
        found.append(outcome)
    print("\n| what | measured | target |\n|---|---|---|")
    for line in totals(found):
        print(f"| {line.what} | {line.found} | {line.target} |")


def outcome_of(situation: Situation) -> Outcome:
    with TemporaryDirectory() as place:
        reports = []
        for is_broken in (True, False):
            folder = Path(place) / ("situation" if is_broken else "twin")
            folder.mkdir()
            reports.append(situation.ask(folder, is_broken))
    return Outcome(situation, *reports)


def _said(report: Report) -> str:
    """The verdict, and what else is to be looked at."""
    looks = [one.sentence for one in findings(report) if one.level in ("look", "not measured")]
    return " ".join([report.line, *(f"({one})" for one in looks if one not in report.line)])


def totals(found: Sequence[Outcome]) -> Iterator[Measured]:
    """The figures that commands are held to."""
    judged = [outcome.judged for outcome in found]
    of = f"of {len(found)}"
    yield Measured("situations named", f"{judged.count('named')} {of}", "≥ 22 of 27")
    yield Measured("found, not named", f"{judged.count('found, not named')} {of}")
    yield Measured("missed", f"{judged.count('missed')} {of}", "0")
    yield Measured("healthy twins called broken", f"{sum(one.is_false_alarm for one in found)} {of}", "0")
