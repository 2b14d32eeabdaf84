"""The switch to another pooling: how long the command takes, and how often its intervals hold what they should."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.coverage.command import CHECKPOINT, DRAWS, lines, populations
from benchmarks.coverage.switch import NEW_POOLING
from benchmarks.measured import Measured
from embaudit.checkpoint import load_checkpoint
from embaudit.embedders.checkpoint import CheckpointFunction
from embaudit.questions.switch.question import SwitchQuestion
from embaudit.questions.switch.switch import switch_functions


def run() -> Iterator[Measured]:
    start, own = time.perf_counter(), time.process_time()
    old = load_checkpoint(CHECKPOINT)
    new = replace(old, recipe=replace(old.recipe, pooling=(NEW_POOLING,)))
    material = SwitchQuestion(old=CHECKPOINT, new=CHECKPOINT).switch_material()
    report = switch_functions(CheckpointFunction(old), CheckpointFunction(new), material.pairs, material.searches)
    took = f"{time.perf_counter() - start:.0f} s, {time.process_time() - own:.0f} s of processor time"
    yield Measured(
        f"`switch` on the embedded sample, two checkpoints of 22 M parameters: {report.line}", took, "≤ 30 s"
    )
    yield from lines({"switch": populations()["switch"]}, DRAWS)
