"""Every measure of an audit on this machine's CPU and on its GPU, in float32: seconds, and how far figures differ.

The measures run in this process, without Prefect, DuckDB and Great Expectations, in the order of an audit.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.measured import Measured
from embaudit.checkpoint import load_checkpoint
from embaudit.checkpoint.load import choose_device
from embaudit.checkpoint.precision import widths_of
from embaudit.measures import MEASURES
from embaudit.measures.listed import load_profile
from embaudit.measures.run import Run
from embaudit.steps.corpora import stage_source
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.warehouse.tables import TABLES

CHECKPOINT = "packaged:all-MiniLM-L6-v2"
# They need another checkpoint, or repeat what another measure computes.
LEFT_OUT = ("change", "mitigation")


def run() -> Iterator[Measured]:
    gpu = choose_device("auto")
    if gpu == "cpu":
        yield Measured("measures on a GPU against the CPU", "not measured: torch finds no GPU here")
        return
    chosen = [name for name in MEASURES if name not in LEFT_OUT]
    on_cpu, on_gpu = _measured(chosen, "cpu"), _measured(chosen, gpu)
    for name in chosen:
        (seconds, figures), (gpu_seconds, gpu_figures) = on_cpu[name], on_gpu[name]
        where, difference = _farthest(figures, gpu_figures)
        yield Measured(
            f"{name}, `quick`, embedded sample, float32: CPU; GPU",
            f"{seconds:.1f} s; {gpu_seconds:.1f} s: {seconds / gpu_seconds:.1f}×; of {len(figures)} figures the "
            f"farthest apart is {where}, by {difference:.0e}",
        )


def _measured(names: list[str], device: str) -> dict[str, tuple[float, dict[str, float]]]:
    """By measure, its seconds and its figures; the model is loaded beforehand."""
    checkpoint = load_checkpoint(CHECKPOINT)
    spec = CheckpointSpec(reference=CHECKPOINT, checkpoint_id=checkpoint.checkpoint_id, device=device, dtype="float32")
    encoder_of(spec).encode_texts(["The first product on a device waits for its libraries."])
    profile = load_profile("quick")
    measured: dict[str, tuple[float, dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as staging:
        read = {corpus for name in names for corpus in profile.of(MEASURES[name].settings).corpora}
        run = Run(
            spec=spec,
            staging=staging,
            seed=0,
            profile=profile,
            widths=widths_of(checkpoint.resolved.folder / checkpoint.recipe.transformer_path),
            corpora={corpus.name: corpus for name in sorted(read) for corpus in stage_source(name, "sample", staging)},
        )
        for name in names:
            since = time.perf_counter()
            staged = MEASURES[name].parts().measure(run)
            measured[name] = time.perf_counter() - since, _figures(staged)
            run = replace(run, earlier=[*run.earlier, *staged])
    return measured


def _figures(staged: list[Staged]) -> dict[str, float]:
    """Every figure by its table, the row's keys and its column."""
    figures = {}
    for part in staged:
        table = TABLES.get(part.table)
        if table is None or not part.rows:
            continue
        columns = [name for name, column in table.columns.items() if column.figure]
        for row in read_rows([part.path]) if columns else []:
            place = ", ".join(str(row[key]) for key in table.keys)
            for column in columns:
                if isinstance(row[column], int | float) and not isinstance(row[column], bool):
                    figures[f"{column} of {table.name} ({place})"] = float(row[column])
    return figures


def _farthest(first: dict[str, float], second: dict[str, float]) -> tuple[str, float]:
    """The figure that differs most, relative to its size where that is above 1."""
    differences = {
        name: abs(value - second.get(name, float("inf"))) / max(1.0, abs(value)) for name, value in first.items()
    }
    return max(differences.items(), key=lambda item: item[1], default=("none", 0.0))
