"""``python -m benchmarks coverage``: encode once, draw often, and print the coverage of every interval."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from statistics import median

from benchmarks.coverage import pairs, switch, texts
from benchmarks.coverage.draws import Coverage, Population, coverage
from benchmarks.measured import REAL_DATA, SCIFACT, Measured, sentences
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.corpora.draw import Draw, TextPair
from embaudit.corpora.load import load_corpus

CHECKPOINT = "packaged:all-MiniLM-L6-v2"
TARGET = ".93 to .97"
DRAWS = 200
TEXTS = 12_000
# Passages for the switch.
PASSAGES, SWITCHED = REAL_DATA / "msmarco" / "passages-5k", 4_000
STS_TRAIN = REAL_DATA / "sts" / "stsb" / "stsb-en-train.csv"
STS = [REAL_DATA / "sts" / "stsb" / f"stsb-en-{part}.csv" for part in ("dev", "test")]


def run() -> Iterator[Measured]:
    """Everything, on real data where it lies beside the checkout, for ``make bench``."""
    # ``python -m benchmarks switch`` prints that of the switch.
    yield from lines({name: one for name, one in populations().items() if name != "switch"}, DRAWS)


def main(arguments: Sequence[str]) -> None:
    """Print a line for each figure of the chosen measures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks coverage", description=__doc__)
    names = list(populations())
    parser.add_argument("--only", metavar="NAME", nargs="+", choices=names, default=names, help=", ".join(names))
    parser.add_argument(
        "--corpus", metavar="FILE", type=Path, help="texts to draw from; default: Wikipedia or the sample"
    )
    parser.add_argument("--texts", metavar="N", type=int, default=TEXTS, help=f"texts encoded; default {TEXTS:,}")
    parser.add_argument("--draws", metavar="N", type=int, default=DRAWS, help=f"default {DRAWS}")
    chosen = parser.parse_args(arguments)
    if chosen.corpus is not None and not chosen.corpus.is_file():
        parser.error(f"there is no file {chosen.corpus}")
    known = populations(chosen.corpus, chosen.texts)
    print("| what | measured | target |\n|---|---|---|")
    for line in lines({name: known[name] for name in chosen.only}, chosen.draws):
        print(f"| {line.what} | {line.found} | {line.target} |", flush=True)


def populations(corpus: Path | None = None, most: int = TEXTS) -> dict[str, Callable[[], Iterable[Population]]]:
    """What can be drawn from, by measure; nothing is read or encoded before it is asked for."""
    encoder = cache(lambda: Encoder(load_checkpoint(CHECKPOINT)))
    read = cache(lambda: _texts(corpus, most))
    return {
        "geometry": lambda: [texts.geometry(encoder(), read())],
        "layers": lambda: [texts.layers(encoder(), read())],
        "socm": lambda: texts.socm(encoder(), read()),
        "length": lambda: [texts.length(encoder(), read())],
        "occurrence": lambda: [texts.occurrence(encoder(), read())],
        "pairs": lambda: pairs.of_pairs(encoder(), _scored_pairs()),
        "queries": lambda: pairs.of_queries(encoder(), str(SCIFACT)) if SCIFACT.is_dir() else [],
        "switch": lambda: _switches(encoder()),
    }


def lines(measures: Mapping[str, Callable[[], Iterable[Population]]], draws: int) -> Iterator[Measured]:
    for population in chain.from_iterable(measure() for measure in measures.values()):
        by_figure: dict[str, list[Coverage]] = {}
        for found in coverage(population, draws):
            by_figure.setdefault(re.sub(r" \[.*\]", "", found.figure), []).append(found)
        for figure, of_figure in by_figure.items():
            several = f", {len(of_figure)} of them: medians (range)" if len(of_figure) > 1 else ""
            yield Measured(
                f"{figure}{several}; {draws} draws of {population.size:,} of {population.items:,}",
                f"{_range([one.held for one in of_figure], 3)}; {_range([one.ratio for one in of_figure], 2)}",
                TARGET,
            )


def _range(values: Sequence[float], digits: int) -> str:
    def shown(value: float) -> str:
        return f"{value:.{digits}f}".removeprefix("0")

    whole = shown(median(values))
    return whole if len(values) == 1 else f"{whole} ({shown(min(values))}–{shown(max(values))})"


def _texts(corpus: Path | None, most: int) -> list[str]:
    if corpus is None:
        return sentences(most)[0]
    return [text.text for text in load_corpus("wikipedia", str(corpus), limit=most).texts]


def _switches(encoder: Encoder) -> Iterator[Population]:
    yield switch.of_pairs(encoder.checkpoint, _scored_pairs([*STS, STS_TRAIN]))
    source = str(PASSAGES) if PASSAGES.is_dir() else "sample"
    documents = load_corpus("msmarco", source, draw=Draw(rows=SWITCHED, seed=0)).texts
    yield from switch.of_documents(encoder.checkpoint, [text.text for text in documents])


def _scored_pairs(wanted: Sequence[Path] = STS) -> list[TextPair]:
    files = [file for file in wanted if file.is_file()]
    sources = [str(file) for file in files] or ["sample"]
    return [pair for source in sources for pair in load_corpus("sts", source).pairs]
