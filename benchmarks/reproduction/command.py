"""``python -m benchmarks reproduction``: run the stages that are not there yet, and print published beside ours.

Each stage writes its figures to a file as soon as it is done, and its steps are staged, so that an interrupted run
continues where it stopped. It needs neither Prefect nor DuckDB nor Great Expectations.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.reproduction.bench import Bench
from benchmarks.reproduction.engine import say, with_lines
from benchmarks.reproduction.kept import StageResult, commit, read, write
from benchmarks.reproduction.page import PAGE, committed, page, table
from benchmarks.reproduction.stages import STAGES
from embaudit.checkpoint.load import choose_device
from embaudit.steps.results import versions_here
from embaudit.system.files import replace_atomically
from embaudit.system.settings import Settings
from embaudit.words.errors import EmbauditError

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
# Processes on one GPU, which one process would leave idle while it tokenises.
ON_GPU = 6


def main(arguments: Sequence[str]) -> None:
    """Run, print, and if asked for, commit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks reproduction", description=__doc__)
    names = list(STAGES)
    parser.add_argument("--only", metavar="NAME", nargs="+", choices=names, default=names, help=", ".join(names))
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="default: EMBAUDIT_HOME/reproduction")
    parser.add_argument(
        "--data", metavar="FOLDER", type=Path, default=DATA, help="the real data; default: beside the checkout"
    )
    parser.add_argument("--device", default="auto", help="default: a GPU if there is one")
    parser.add_argument("--processes", metavar="N", type=int, help=f"for shards; default: {ON_GPU} on a GPU, else 1")
    parser.add_argument("--limit", metavar="N", type=int, help="only try it: at most so many tokens, pairs and texts")
    parser.add_argument(
        "--commit", action="store_true", help="also put the figures beside this module, and write docs/reproduction.md"
    )
    chosen = parser.parse_args(arguments)
    if chosen.limit is not None and chosen.limit < 1:
        parser.error("--limit must be at least 1")
    if chosen.processes is not None and chosen.processes < 1:
        parser.error("--processes must be at least 1")
    try:
        results = run(_bench(chosen), chosen.only)
        if chosen.commit:
            commit(results)
            with replace_atomically(PAGE) as partial:
                partial.write_text(page(committed()), "utf-8")
    except EmbauditError as error:
        sys.exit(f"Error: {error}")
    if chosen.limit is not None:
        print(f"Only tried, with --limit {chosen.limit}: such figures are not compared.")
        return
    for name, result in results.items():
        print(f"\n{STAGES[name].title}\n")
        print("\n".join(table(list(STAGES[name].compare(dict(result.figures))))), flush=True)


def _bench(chosen: argparse.Namespace) -> Bench:
    device = choose_device(chosen.device)
    out = chosen.out or Path(Settings().home) / "reproduction"
    if chosen.limit is not None:
        # Never found by a whole run.
        out = out / f"limit-{chosen.limit}"
    out.mkdir(parents=True, exist_ok=True)
    processes = chosen.processes or (ON_GPU if device.startswith("cuda") else 1)
    return Bench(out, chosen.data, device, chosen.limit, processes)


def run(bench: Bench, names: Sequence[str]) -> dict[str, StageResult]:
    """The results of these stages; one whose file is there is read."""
    results = {}
    for name in names:
        known = read(name, bench.out)
        if known is not None:
            say(f"{name}: is there")
        else:
            known = _measured(bench, name)
            say(f"{name}: {known.seconds:.0f} s, {write(known, bench.out)}")
        results[name] = known
    return results


def _measured(bench: Bench, name: str) -> StageResult:
    say(f"{name}: {STAGES[name].title}")
    started = time.monotonic()
    with with_lines():
        figures = STAGES[name].measure(bench)
    return StageResult(
        stage=name,
        limit=bench.limit,
        checkpoint_id=bench.spec.checkpoint_id,
        machine=machine(bench.device),
        versions=versions_here(),
        seconds=round(time.monotonic() - started, 1),
        figures=figures,
    )


def machine(device: str) -> str:
    """In words."""
    import torch

    cores = f"{os.cpu_count()} cores, Python {platform.python_version()}"
    return f"{torch.cuda.get_device_name(device)}, {cores}" if device.startswith("cuda") else cores
