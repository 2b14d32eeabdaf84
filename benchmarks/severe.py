"""How many severe tokens there are, as searches with other pilots estimate it: by the pilot alone, and as audits do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.measured import Measured, as_scanned
from benchmarks.search import CHECKPOINT, MODERATE, count_severe, measure_every_token, play
from embaudit.checkpoint import Encoder, load_checkpoint
from embaudit.measures.sticky.plan import choose_tokens
from embaudit.measures.sticky.search import halves
from embaudit.measures.sticky.verdicts import losses, noise, shares_at_least

# Of the whole vocabulary with sixteen draws, every token takes as long as an audit of half an hour.
TOKENS, DRAWS, BUDGET = 8_000, 8, 10_000
PILOTS, HALVED = 24, 3_000


def run() -> Iterator[Measured]:
    exact = Encoder(load_checkpoint(CHECKPOINT))
    every = measure_every_token(exact, as_scanned(exact), DRAWS, TOKENS)
    whole = every.scores(np.arange(TOKENS), DRAWS)
    some = np.random.default_rng(1).choice(TOKENS, HALVED, replace=False)
    error = noise(halves(every.points, every.moments.at(some, range(DRAWS)), 0), every.ordinary[some])
    lost = losses(whole.slope, every.ordinary)
    truth = TOKENS * float(shares_at_least(lost, error, [MODERATE], np.ones((1, TOKENS)))[0, 0])
    searched = [every.entries[token] for token in every.token_ids]
    found: dict[str, list[tuple[float, float, float]]] = {"by the pilot alone": [], "what is kept counted": []}
    for seed in range(PILOTS):
        played = play(every, choose_tokens(searched, BUDGET, DRAWS, None, seed), seed)
        for name, by_pilot in zip(found, (True, False), strict=True):
            one = count_severe(every, played, whole, seed, by_pilot=by_pilot)
            found[name].append((one.estimated or 0.0, one.estimated_low or 0.0, one.estimated_high or 0.0))
    for name, rows in found.items():
        estimates, low, high = np.array(rows).T
        covers = int(((low <= truth) & (truth <= high)).sum())
        yield Measured(
            f"tokens that lose {MODERATE} of {TOKENS:,}, {BUDGET:,} of {TOKENS * DRAWS:,} encodes, {PILOTS} pilots, "
            f"{name} (`severe`): mean, spread, median width of the interval; it holds the {truth:.0f} of all draws",
            f"{estimates.mean():.0f}, {estimates.std():.0f}, {np.median(high - low):.0f}; {covers} of {PILOTS}",
        )
