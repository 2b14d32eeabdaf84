"""``python -m benchmarks defects``: make every copy, measure what it costs, check it, and print the table."""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.defects.copies import Copy
from benchmarks.defects.harm import Harm, Yardstick, scored_pairs
from benchmarks.defects.harmless import HARMLESS_COPIES
from benchmarks.defects.kept import Kept
from benchmarks.defects.packaging import PACKAGING_COPIES
from benchmarks.defects.pipeline import PIPELINE_COPIES
from benchmarks.defects.tokenizer import TOKENIZER_COPIES
from benchmarks.defects.verdicts import Outcome, ask, looks_of
from benchmarks.defects.weights import WEIGHTS_COPIES
from benchmarks.measured import REAL_DATA, Measured
from embaudit.checkpoint.reference import resolve

GOOD = "packaged:all-MiniLM-L6-v2"
STS_BENCHMARK = REAL_DATA / "sts" / "stsb" / "stsb-en-test.csv"
DEFECTS = (*WEIGHTS_COPIES, *TOKENIZER_COPIES, *PIPELINE_COPIES, *PACKAGING_COPIES)
COPIES = (*DEFECTS, *HARMLESS_COPIES)
# The scores of 600 pairs are within .01 of those of all 1 379, and take less than half of the time.
PAIRS = 600


def run() -> Iterator[Measured]:
    """The totals alone, for ``make bench``."""
    sts = STS_BENCHMARK if STS_BENCHMARK.is_file() else None
    yield from totals(list(outcomes(COPIES, sts, PAIRS)))


def main(arguments: Sequence[str]) -> None:
    """Print the table of the chosen copies, the totals and every miss."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks defects", description=__doc__)
    parser.add_argument("--only", metavar="REGEX", default="", help="copies whose kind and name match")
    parser.add_argument(
        "--sts", metavar="FILE", type=Path, help="scored pairs to measure the harm on, beside the sample"
    )
    parser.add_argument(
        "--pairs", metavar="N", type=int, default=PAIRS, help=f"of each data set, at most; default {PAIRS}"
    )
    parser.add_argument("--harm", action="store_true", help="measure what each copy costs and check none")
    parser.add_argument(
        "--keep", metavar="FILE", type=Path, help="a line per copy; a second run continues where the first stopped"
    )
    parser.add_argument("--again", action="store_true", help="check again what FILE has, at the harm that it has")
    chosen = parser.parse_args(arguments)
    copies = [copy for copy in COPIES if re.search(chosen.only, f"{copy.kind} {copy.label}", re.IGNORECASE)]
    if not copies:
        parser.error(f"no copy matches {chosen.only!r}")
    if chosen.sts is not None and not chosen.sts.is_file():
        parser.error(f"there is no file {chosen.sts}")
    data = ["sample", *(["STS"] if chosen.sts else [])]
    print("| copy | kind |", *(f"ρ lost, {name} |" for name in data), "1 − cos, farthest kind | counts |", end="")
    print("" if chosen.harm else " verdict | called | s | right? |")
    print("|---|---|" + "---|" * (len(data) + 2 + 4 * (not chosen.harm)))
    found = []
    for outcome in outcomes(
        copies, chosen.sts, chosen.pairs, is_checked=not chosen.harm, keep=chosen.keep, is_again=chosen.again
    ):
        print(_row(outcome, data), flush=True)
        found.append(outcome)
    if not chosen.harm:
        print("\n| what | measured | target |\n|---|---|---|")
        for line in totals(found):
            print(f"| {line.what} | {line.found} | {line.target} |")
        for miss in misses(found):
            print(f"\n- {miss}")


def outcomes(
    copies: Sequence[Copy],
    sts: Path | None,
    most: int,
    *,
    is_checked: bool = True,
    keep: Path | None = None,
    is_again: bool = False,
) -> Iterator[Outcome]:
    """Each copy, made in a folder that is gone afterwards.

    Args:
        keep: a file with earlier outcomes, which are taken from there, and new ones added.
        is_again: check again what is there; what it costs stays.
    """
    good = resolve(GOOD).folder
    sources = {"sample": "sample"} | ({"STS": str(sts)} if sts is not None else {})
    kept = None if keep is None else Kept(keep, (*sources, most))
    yardstick: Yardstick | None = None
    usual: frozenset[str] | None = None
    for copy in copies:
        found = kept.outcome(copy) if kept is not None else None
        if found is not None and not is_again and (found.said is not None or not is_checked):
            yield found
            continue
        with tempfile.TemporaryDirectory(prefix="embaudit-defects-") as place:
            folder = Path(place) / copy.label.replace("/", "-")
            copy.make(good, folder)
            said = None
            if is_checked:
                # Also imports what the check needs, so that the first copy's seconds are like the others'.
                usual = looks_of(good) if usual is None else usual
                # Before the harm is measured, which leaves the model loaded.
                said = ask(folder, usual)
            if found is None:
                yardstick = yardstick or Yardstick(good, {name: scored_pairs(at, most) for name, at in sources.items()})
                found = Outcome(copy, yardstick.harm(folder, copy.served_as), None)
            outcome = replace(found, said=said)
        if kept is not None:
            kept.keep(outcome)
        yield outcome


def totals(found: Sequence[Outcome]) -> Iterator[Measured]:
    """The figures that the check is held to."""
    defects = [outcome for outcome in found if not outcome.copy.is_harmless]
    costly = [outcome for outcome in defects if outcome.harm.counts]
    harmless = [outcome for outcome in found if outcome.copy.is_harmless]
    named = [outcome for outcome in costly if outcome.is_found and outcome.is_named]
    yield Measured("defects found, of those that count", _share([o for o in costly if o.is_found], costly), "≥ 95 %")
    yield Measured("of these, said not to be served", _share([o for o in costly if o.is_broken], costly))
    yield Measured("named right as first cause, of those that count", _share(named, costly), "≥ 80 %")
    free = [outcome for outcome in defects if not outcome.harm.counts]
    yield Measured("defects that cost less than counts: found", _share([o for o in free if o.is_found], free))
    alarms = [outcome for outcome in harmless if outcome.is_broken]
    yield Measured("harmless variants called a problem", _share(alarms, harmless), "0")
    looks = [outcome for outcome in harmless if outcome.is_found and not outcome.is_broken]
    yield Measured("harmless variants to be looked at", _share(looks, harmless))
    seconds = [outcome.said.seconds for outcome in found if outcome.said is not None]
    if seconds:
        yield Measured("seconds a check, imports aside: median, most", f"{median(seconds):.1f}, {max(seconds):.1f}")


def misses(found: Sequence[Outcome]) -> Iterator[str]:
    """Everything that the check is wrong about, in a sentence each."""
    for outcome in found:
        label, said = outcome.copy.label, outcome.said
        if said is None:
            continue
        called = f" “{said.called.sentence}”" if said.called is not None else ""
        if outcome.judged == "false alarm":
            yield f"**{label}** does no harm and is called a problem:{called}"
        elif outcome.judged == "missed":
            yield f"**{label}** costs {_cost(outcome.harm)} and is not found."
        elif outcome.judged == "found, misnamed":
            yield f"**{label}** is found, but called something else:{called}"


def _row(outcome: Outcome, data: Sequence[str]) -> str:
    harm, said = outcome.harm, outcome.said
    cells = [outcome.copy.label, outcome.copy.kind]
    if harm.refused:
        cells += [*("–" for _ in data), f"not loaded: {_shortened(harm.refused)}"]
    else:
        kind, moved = harm.farthest
        cells += [*(f"{harm.lost[name]:+.3f}" for name in data), f"{_moved(moved)} ({kind})"]
    # Another limit moves long texts, as whoever set it wanted.
    cells.append("–" if outcome.copy.is_harmless else "yes" if harm.counts else "no")
    if said is not None:
        called = "" if said.called is None else f"{said.called.name}: {_shortened(said.called.sentence)}"
        cells += [said.verdict, called, f"{said.seconds:.1f}", outcome.judged]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _cost(harm: Harm) -> str:
    if harm.refused:
        return "all (it cannot be loaded)"
    kind, moved = harm.farthest
    losses = ", ".join(f"{lost:+.3f} of ρ on {name}" for name, lost in harm.lost.items())
    return f"{losses}, 1 − cos {_moved(moved)} on {kind}"


def _moved(value: float) -> str:
    return (
        "not encoded, or another dimension"
        if value == float("inf")
        else f"{value:.1e}"
        if value < 1e-3
        else f"{value:.3f}"
    )


def _shortened(sentence: str, most: int = 110) -> str:
    return sentence if len(sentence) <= most else f"{sentence[: most - 1]}…"


def _share(part: Sequence[Outcome], whole: Sequence[Outcome]) -> str:
    return f"{len(part)} of {len(whole)}" + (f" ({len(part) / len(whole):.0%})" if whole else "")
