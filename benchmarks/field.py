"""``python -m benchmarks field DIR``: what ``embaudit vectors`` says of every store in a folder, and how often.

Each file or folder in DIR is a store. Nothing of one is printed but counts, its dimension, and the rules of findings.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from embaudit.statistics import score_share

MOST_SECONDS, FEW = 180, 200
# A refusal of these is of nothing that could be read: pointers, empty files and collections, damage.
NOTHING = re.compile(
    r"pointers? of Git LFS|is empty|has no rows|holds no vector|has no collection|is an index without rows|truncated"
)
# What is said of every store, whatever it is.
NO_FAULT = ("builder", "how_it_is_read", "overlapping_chunks", "own_vectors", "role_of_rows")


@dataclass(frozen=True)
class LookedAt:
    """What came of one store, or of one of its collections.

    Attributes:
        store: its name in the folder.
        refused: why it was not read; empty if it was.
        seconds: of processor time, start included; peak: in GiB.
    """

    store: str
    refused: str = ""
    kind: str = ""
    rows: int = 0
    dimension: int = 0
    verdict: str = ""
    findings: tuple[str, ...] = ()
    seconds: float = 0.0
    peak: float = 0.0

    @property
    def is_whole(self) -> bool:
        """Whether there is something to read: no pointer, no empty collection, no damage."""
        return not NOTHING.search(self.refused) if self.refused else self.rows > 0


def looked_at(store: Path, function: str) -> Iterator[LookedAt]:
    """A store as a user would look at it: a line for each of its collections."""
    place = only_child(store)
    found, seconds, peak = asked(["vectors", *([function] if function else []), str(place)])
    name = store.name
    if "refused" in found:
        refused = found["refused"].replace(str(place), "STORE").replace(str(store), "STORE")
        yield LookedAt(name, refused or "took too long", seconds=seconds, peak=peak)
        return
    for part in found["collections"].values() if "collections" in found else [found]:
        if "vectors" not in part:
            yield LookedAt(name, part["error"].replace(str(place), "STORE"), seconds=seconds, peak=peak)
            continue
        dimension = next(iter(part["vectors"]["dimensions"]), 0)
        told = (one for one in part["findings"] if one["level"] != "ok" or one["name"] in NO_FAULT)
        rules = tuple(one["name"] for one in told)
        rows = int(part["vectors"]["rows"])
        yield LookedAt(name, "", part["kind"], rows, int(dimension), part["verdict"], rules, seconds, peak)


def only_child(store: Path) -> Path:
    """What a folder of one file or folder holds; otherwise itself."""
    while store.is_dir():
        inner = [one for one in store.iterdir() if not one.name.startswith(".")]
        if len(inner) != 1 or inner[0].name == "chroma.sqlite3":
            break
        store = inner[0]
    return store


def asked(arguments: Sequence[str]) -> tuple[dict[str, Any], float, float]:
    """What a command says, its processor seconds, and its peak memory in GiB."""
    with TemporaryFile("w+") as said, TemporaryFile("w+") as errors:
        command = [sys.executable, "-m", "embaudit", *arguments, "--json"]
        limited = ["timeout", str(MOST_SECONDS), *command]
        process = subprocess.Popen(limited, stdout=said, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        errors.seek(0)
        seconds, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20
        try:
            return json.loads(said.read()), seconds, peak
        except ValueError:
            return {"refused": next((line for line in errors if "rror" in line), "").strip()}, seconds, peak


def kept_lines(file: Path | None) -> dict[str, list[LookedAt]]:
    """What an earlier run kept, by store."""
    found: dict[str, list[LookedAt]] = {}
    for line in file.read_text("utf-8").splitlines() if file is not None and file.exists() else ():
        one = LookedAt(**{**json.loads(line), "findings": tuple(json.loads(line)["findings"])})
        found.setdefault(one.store, []).append(one)
    return found


def summary(all_of: Sequence[LookedAt]) -> Iterator[tuple[str, str]]:
    """The counts, with Wilson's intervals."""
    stores = {one.store for one in all_of}
    whole = {one.store for one in all_of if one.is_whole}
    read = [one for one in all_of if not one.refused and one.rows]
    yield "stores", f"{len(stores):,}"
    yield "read, of those that are whole", _share(len({one.store for one in read} & whole), len(whole))
    rows = np.array([one.rows for one in read] or [0])
    yield "rows: quartiles", ", ".join(f"{value:,.0f}" for value in np.quantile(rows, (0.25, 0.5, 0.75)))
    yield f"fewer than {FEW} rows", _share(int((rows < FEW).sum()), len(read))
    seconds, peaks = [one.seconds for one in all_of], [one.peak for one in all_of]
    yield "processor seconds: median, 95 %", f"{np.median(seconds):.1f}, {np.quantile(seconds, 0.95):.1f}"
    yield "peak memory: median, largest", f"{np.median(peaks):.2f}, {max(peaks):.2f} GiB"
    yield "with a finding", _share(sum(bool(set(one.findings) - set(NO_FAULT)) for one in read), len(read))
    counts = Counter(rule for one in read for rule in set(one.findings))
    for rule, count in counts.most_common():
        yield f"`{rule}`", _share(count, len(read))
    for kind, count in Counter(one.kind for one in read).most_common():
        yield f"kind: {kind}", f"{count:,}"


def _share(hits: int, trials: int) -> str:
    if not trials:
        return "0 of 0"
    low, high = score_share(hits, trials)
    return f"{hits:,} of {trials:,}: {hits / trials:.1%} [{low:.1%}, {high:.1%}]"


def main(arguments: Sequence[str]) -> None:
    """Look at every store of a folder, print a line for each, and the counts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks field", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument(
        "--function", default="", metavar="CHECKPOINT", help="that may have built them; none by default"
    )
    parser.add_argument("--keep", type=Path, metavar="FILE", help="a line per store; a second run goes on from there")
    chosen = parser.parse_args(arguments)
    if not chosen.folder.is_dir():
        parser.error(f"there is no folder {chosen.folder}")
    kept, all_of = kept_lines(chosen.keep), []
    print("| store | kind | rows | dimension | verdict, or why not | findings | s | GiB |")
    print("|---|---|---|---|---|---|---|---|")
    for store in sorted(one for one in chosen.folder.iterdir() if not one.name.startswith(".")):
        found = kept.get(store.name) or list(looked_at(store, chosen.function))
        all_of += found
        for one in found:
            said = one.verdict or one.refused[:160]
            rules = ", ".join(one.findings)
            print(
                f"| {one.store} | {one.kind} | {one.rows:,} | {one.dimension:,} | {said} | {rules} | {one.seconds:.1f} "
                f"| {one.peak:.2f} |",
                flush=True,
            )
            if chosen.keep is not None and store.name not in kept:
                with chosen.keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(one)) + "\n")
    print("\n| what | of the stores |\n|---|---|")
    for what, value in summary(all_of):
        print(f"| {what} | {value} |")
