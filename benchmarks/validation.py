"""What half precision does to the validation of sticky tokens: how fast it is here, and how far figures move."""

from __future__ import annotations

import csv
import statistics
import time
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from benchmarks.measured import Measured
from benchmarks.search import CHECKPOINT, LIST, LISTED, U, sentence_set
from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.vocabulary import read_vocabulary
from embaudit.measures.sticky.effects import measure_effects
from embaudit.measures.sticky.moments import insert_tokens
from embaudit.measures.sticky.plan import choose_controls
from embaudit.measures.sticky.points import VALIDATION_GROUPS, every_against_every
from embaudit.measures.sticky.steps.verdicts import ACCEPTED_SHARE, differences

DRAWS, RESAMPLES = 30, 400
HALVES = ("bfloat16", "float16")


def run() -> Iterator[Measured]:
    exact = Encoder(load_checkpoint(CHECKPOINT))
    checkpoint = exact.checkpoint
    with LIST.open(encoding="utf-8", newline="") as file:
        worst = [int(row["token_id"]) for row in csv.DictReader(file) if int(row["slope_rank"]) <= LISTED]
    entries = [asdict(entry) for entry in read_vocabulary(checkpoint.tokenizer, checkpoint.vocabulary_size)]
    controls = choose_controls(entries, np.array(worst), LISTED, 0)
    tokens = np.union1d(worst, controls)
    chosen = sentence_set("stsb-en-dev.csv", DRAWS, 1)
    points = every_against_every(exact, chosen.draws, chosen.anchors, U, 8, 1, VALIDATION_GROUPS)
    seconds, effects = {}, {}
    for dtype in ("float32", *HALVES):
        encoder = Encoder(load_checkpoint(checkpoint.resolved, LoadOptions(device=checkpoint.device, dtype=dtype)))
        since = time.perf_counter()
        moments = insert_tokens(encoder, points, tokens, range(DRAWS))
        seconds[dtype] = time.perf_counter() - since
        effects[dtype] = measure_effects(points, moments, np.isin(tokens, controls), RESAMPLES, 0)
    for half in HALVES:
        shares = differences(effects["float32"], effects[half])
        yield Measured(
            f"validation of {len(tokens)} tokens over {DRAWS} draws in {half} on {checkpoint.device}: against float32",
            f"{seconds['float32'] / seconds[half]:.2f}× ({seconds['float32']:.0f} s in float32)",
        )
        yield Measured(
            f"the same: largest and median difference of a figure ({len(shares)}), in widths of its interval",
            f"{max(shares):.3f}; {statistics.median(shares):.3f}",
            f"≤ {ACCEPTED_SHARE}",
        )
