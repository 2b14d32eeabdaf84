"""``python -m benchmarks cost``: how an audit's cost grows with its checkpoint, on paper; nothing is measured.

A token in a sequence of n tokens takes 2N + 4Lnd operations, N = 12Ld² (``embaudit.measures.measure``). How many
sequences of which length a measure encodes is what its settings estimate (``MeasureSettings.work``).
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files

from embaudit.measures import MEASURES, MeasureSettings
from embaudit.measures.listed import load_profile
from embaudit.measures.measure import Readable, Work
from embaudit.measures.sticky import StickySettings

# The default measures of `quick`; exhaustive is `standard` with all draws of every token.
MEASURED = ("integrity", "quality", "sticky", "socm", "layers", "length")
PROFILES = ("quick", "standard", "exhaustive", "paper")
# Mean tokens of STS Benchmark, Wikipedia, MS MARCO; of movie reviews, what 512 positions take. The probes search
# passages such as MS MARCO's.
TOKENS = {"sts": 14.0, "wikipedia": 24.6, "msmarco": 82.4, "longdocs": 512.0, "retrieval": 82.4}
ROWS = 20_000
# Layers, heads of each, width, entries: all-MiniLM-L6-v2, BERT base and large, with their own or a multilingual
# vocabulary; 7 B with the vocabulary of Mistral or of Qwen.
SHAPES = (
    (6, 12, 384, 30_522),
    (6, 12, 384, 250_002),
    (12, 12, 768, 30_522),
    (12, 12, 768, 250_002),
    (24, 16, 1_024, 30_522),
    (24, 16, 1_024, 250_002),
    (32, 32, 4_096, 32_000),
    (32, 32, 4_096, 152_000),
)
# What is looked at measure by measure: layers, heads of each, width, entries, as Qwen's of 1.5, 4 and 8 billion.
DECODERS = {"1.5 B": (28, 12, 1_536, 151_936), "4 B": (36, 32, 2_560, 151_665), "8 B": (36, 32, 4_096, 151_665)}
TERA = 1e12


def main(arguments: Sequence[str]) -> None:
    """Print what each measure encodes, and by checkpoint the operations of each profile and the time they take."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks cost", description=__doc__)
    parser.add_argument("--rate", metavar="TFLOPS", type=float, default=0.166, help="throughput; default 0.166")
    parser.add_argument("--scan-rate", metavar="TFLOPS", type=float, help="that of the scan, in its own precision")
    parser.add_argument("--cores", metavar="N", type=int, default=2, help="for other work; default 2")
    chosen = parser.parse_args(arguments)
    scan_rate = chosen.scan_rate or chosen.rate
    shapes = [readable_of(*shape) for shape in SHAPES]
    by_profile = [works_of(profile, shapes[0]) for profile in PROFILES]
    rows = [(name, *(_said(works[name], shapes[0]) for works in by_profile)) for name in MEASURED]
    _print(("measure", *(f"{name}: texts, TFLOP, core s" for name in PROFILES)), rows)
    print(f"\nAt {chosen.rate:g} TFLOP/s, the scan at {scan_rate:g}, other work on {chosen.cores} cores:\n")
    rows = []
    for readable in shapes:
        totals, times = [], []
        for profile in PROFILES:
            every = [one for work in works_of(profile, readable).values() for one in work]
            whole = operations(every, readable)
            scan = operations((one for one in every if one.runs_in == "scan"), readable)
            other = sum(one.core_seconds for one in every) / chosen.cores
            totals.append(f"{whole / TERA:,.0f}")
            times.append(_duration((scan / scan_rate + (whole - scan) / chosen.rate) / TERA + other))
        rows.append((f"{readable.layers}", f"{readable.hidden_size:,}", f"{readable.vocabulary:,}", *totals, *times))
    _print(("layers", "d", "entries", *(f"{name}, TFLOP" for name in PROFILES), *PROFILES), rows)
    print("\nBy measure, TFLOP of decoders:\n")
    _print(("measure", "profile", *DECODERS), of_decoders())


def of_decoders() -> Iterator[tuple[str, ...]]:
    """What each measure of `quick` and of `probes` takes; what the probes share is a row of its own."""
    sizes = [readable_of(*shape) for shape in DECODERS.values()]
    probes = [name for name in load_profile("probes").measures if name not in MEASURED]
    for profile, names in (("quick", MEASURED), ("probes", probes)):
        works = [{name: works_of_one(profile, name, one) for name in names} for one in sizes]
        for name in names:
            own = [[work for work in by_name[name] if not work.is_shared] for by_name in works]
            yield name, profile, *(_tera(operations(*one)) for one in zip(own, sizes, strict=True))
        shared = [{work for some in by_name.values() for work in some if work.is_shared} for by_name in works]
        if any(shared):
            yield "their collection", profile, *(_tera(operations(*one)) for one in zip(shared, sizes, strict=True))


def _tera(of: float) -> str:
    return f"{of / TERA:,.0f}"


def readable_of(layers: int, heads: int, width: int, entries: int) -> Readable:
    return Readable(layers, layers * heads, width, entries, entries, 512, dict.fromkeys(TOKENS, ROWS), TOKENS)


def works_of(profile: str, readable: Readable) -> dict[str, list[Work]]:
    """What the measures encode, by measure."""
    return {name: works_of_one(profile, name, readable) for name in MEASURED}


def works_of_one(profile: str, name: str, readable: Readable) -> list[Work]:
    return list((_sticky(profile) if name == "sticky" else _settings(profile, name)).work(readable))


def operations(works: Iterable[Work], readable: Readable) -> float:
    return sum(map(readable.operations, works))


def _sticky(profile: str) -> StickySettings:
    settings = StickySettings.model_validate(_table(profile, "sticky"))
    return settings.everything() if profile == "exhaustive" else settings


def _settings(profile: str, name: str) -> MeasureSettings:
    return MEASURES[name].settings.model_validate(_table(profile, name))


def _table(profile: str, name: str) -> Mapping[str, object]:
    file = files("embaudit") / "measures" / "profiles" / f"{'standard' if profile == 'exhaustive' else profile}.toml"
    found: Mapping[str, object] = tomllib.loads(file.read_text(encoding="utf-8")).get(name, {})
    return found


def _said(works: Sequence[Work], readable: Readable) -> str:
    texts, cores = (sum(getattr(one, name) for one in works) for name in ("texts", "core_seconds"))
    return f"{texts:,.0f}, {operations(works, readable) / TERA:,.1f}, {cores:,.0f}"


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3_600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.{0 if seconds >= 10 * size else 1}f} {unit}"
    return f"{seconds:.0f} s"


def _print(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
