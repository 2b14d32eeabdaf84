"""docs/reproduction.md, from the committed figures: ``python -m benchmarks.reproduction.page``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.reproduction.compared import SOURCES, Comparison
from benchmarks.reproduction.kept import FIGURES, StageResult, read
from benchmarks.reproduction.stages import STAGES, sticky

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reproduction.md"
INTRODUCTION = """\
# The papers' tables, reproduced

all-MiniLM-L6-v2 as packaged, measured with the functions and the profile `paper` that `embaudit audit` uses, in
float32, by `python -m benchmarks reproduction`. That command writes this page from the figures in
[benchmarks/reproduction/figures](../benchmarks/reproduction/figures). “Agrees within” is the difference, rounded up;
brackets after our figures are 95 % intervals.
"""


def committed(folder: Path = FIGURES) -> dict[str, StageResult]:
    """The committed stages, in their order."""
    found = {name: read(name, folder) for name in STAGES}
    return {name: result for name, result in found.items() if result is not None}


def page(results: Mapping[str, StageResult]) -> str:
    """The page in Markdown; a stage without figures is named at its end."""
    parts = [INTRODUCTION]
    for name, result in results.items():
        stage = STAGES[name]
        parts.append(f"## {stage.title}\n\n{stage.said(dict(result.figures))}\n")
        parts.append("\n".join(table(list(stage.compare(dict(result.figures))))) + "\n")
        if name == "sticky":
            parts.append("\n".join(tokens(result)) + "\n")
    parts.append("## Sources and machines\n\n" + "\n".join(_sources()) + "\n")
    parts.append("\n".join(_machines(results)) + "\n")
    missing = [stage.title for name, stage in STAGES.items() if name not in results]
    if missing:
        parts.append(f"Not measured yet: {'; '.join(missing)}.\n")
    return "\n".join(parts)


def table(rows: Sequence[Comparison]) -> Iterator[str]:
    yield "| | published | ours | agrees within |"
    yield "|---|---|---|---|"
    for row in rows:
        yield f"| {row.what} | {row.published} | {row.ours} | {row.within} |"


def tokens(result: StageResult) -> Iterator[str]:
    """Every token that either side calls sticky."""
    yield "Every token that either run calls sticky, by our value:\n"
    yield "| token | id | published score; value | ours | called sticky by |"
    yield "|---|---|---|---|---|"
    for row in sticky.reasons(dict(result.figures)):
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |"


def _sources() -> Iterator[str]:
    for letter, source in SOURCES.items():
        yield f"- [{letter}] {source}"


def _machines(results: Mapping[str, StageResult]) -> Iterator[str]:
    yield "| stage | machine | seconds | torch, transformers, tokenizers |"
    yield "|---|---|---|---|"
    for name, result in results.items():
        versions = ", ".join(result.versions.get(one, "–") for one in ("torch", "transformers", "tokenizers"))
        yield f"| `{name}` | {result.machine} | {result.seconds:,.0f} | {versions} |"


if __name__ == "__main__":
    sys.stdout.write(page(committed()))
