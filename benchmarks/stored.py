"""How often the interval of the share of rows that a checkpoint did not build covers it, over simulated indexes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measured import Measured
from embaudit.intervals import exact_count
from embaudit.measures.stored.rows import RowBatch
from embaudit.measures.stored.sample import RowDraw

INDEXES, SAMPLED, SEEDS = 200, 1_000, 2
CASES = ((2_000, 0.003), (2_000, 0.03), (100_000, 0.001), (100_000, 0.03), (100_000, 0.4))


def run() -> Iterator[Measured]:
    for rows, share in CASES:
        covered = [_covers(rows, round(rows * share), seed) for seed in range(INDEXES * SEEDS)]
        by_run = [float(np.mean(covered[start : start + INDEXES])) for start in range(0, len(covered), INDEXES)]
        yield Measured(
            f"the share of rows that a checkpoint did not build, {share:.1%} of {rows:,} rows, {SAMPLED:,} encoded: "
            f"how often its interval covers, {SEEDS} × {INDEXES} simulated indexes (`stored`)",
            f"{np.mean(covered):.3f} ({min(by_run):.3f} to {max(by_run):.3f} in one run)",
            "≥ 93 %",
        )


def _covers(rows: int, foreign: int, seed: int) -> bool:
    """Draw as the command does: from a stream of batches, in an order in which the foreign rows stand together."""
    draw = RowDraw(SAMPLED, seed)
    nothing = np.zeros((4_096, 1), dtype=np.float32)
    for start in range(0, rows, 4_096):
        part = nothing[: min(4_096, rows - start)]
        places = np.arange(len(part))
        draw.add(RowBatch(start, len(part), {1: (places, part)}), places, part)
    hits = int((draw.rows().numbers < foreign).sum())
    low, high = exact_count(hits, SAMPLED, rows)
    return low <= foreign <= high
