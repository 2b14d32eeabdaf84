"""``python -m benchmarks [NAME …]``: run the benchmarks and print one Markdown table.

``python -m benchmarks defects [OPTION …]`` prints a table of its own: a row for each broken copy of a checkpoint; so
does ``python -m benchmarks coverage [OPTION …]``: a row for each interval; ``python -m benchmarks reproduction
[OPTION …]``, the papers' tables beside ours; ``python -m benchmarks cost [OPTION …]``, what larger checkpoints would
take, on paper; ``python -m benchmarks bound [OPTION …]``, where the published bound on σ_a fails; ``python -m
benchmarks field DIR``, what is said of every store in a folder; and ``python -m benchmarks fingerprints DIR --models
FILE``, whether its builder is told from the vectors alone.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator

from benchmarks import (
    anchors,
    audit,
    bound,
    cost,
    coverage,
    crowding,
    defects,
    devices,
    encoding,
    estimate,
    field,
    fingerprints,
    found,
    help_page,
    impact,
    large,
    layers,
    length,
    placement,
    precision,
    probes,
    queries,
    reproduction,
    runners,
    screening,
    search,
    serving,
    severe,
    sharing,
    situations,
    socm,
    stored,
    switch,
    validation,
)
from benchmarks.measured import Measured

BENCHMARKS: dict[str, Callable[[], Iterator[Measured]]] = {
    "help": help_page.run,
    "anchors": anchors.run,
    "search": search.run,
    "encoding": encoding.run,
    "estimate": estimate.run,
    "precision": precision.run,
    "validation": validation.run,
    "socm": socm.run,
    "layers": layers.run,
    "length": length.run,
    "placement": placement.run,
    "screening": screening.run,
    "impact": impact.run,
    "probes": probes.run,
    "queries": queries.run,
    "runners": runners.run,
    "audit": audit.run,
    "devices": devices.run,
    "defects": defects.run,
    "coverage": coverage.run,
    "serving": serving.run,
    "situations": situations.run,
    "stored": stored.run,
    "crowding": crowding.run,
    "found": found.run,
    "large": large.run,
    "switch": switch.run,
    "sharing": sharing.run,
    "severe": severe.run,
}
# These have options, and print tables of their own.
WITH_OPTIONS = {
    "defects": defects.main,
    "coverage": coverage.main,
    "serving": serving.main,
    "situations": situations.main,
    "reproduction": reproduction.main,
    "cost": cost.main,
    "bound": bound.main,
    "field": field.main,
    "fingerprints": fingerprints.main,
}


def main() -> None:
    if sys.argv[1:] and sys.argv[1] in WITH_OPTIONS:
        WITH_OPTIONS[sys.argv[1]](sys.argv[2:])
        return
    chosen = sys.argv[1:] or list(BENCHMARKS)
    unknown = [name for name in chosen if name not in BENCHMARKS]
    if unknown:
        known = dict.fromkeys([*BENCHMARKS, *WITH_OPTIONS])
        sys.exit(f"No benchmark is called {unknown[0]!r}: there are {', '.join(known)}.")
    print(f"{platform.system()}, Python {platform.python_version()}, {os.cpu_count()} cores\n")
    print("| what | measured | target |\n|---|---|---|")
    for name in chosen:
        for line in BENCHMARKS[name]():
            print(f"| {line.what} | {line.found} | {line.target} |", flush=True)


if __name__ == "__main__":
    main()
