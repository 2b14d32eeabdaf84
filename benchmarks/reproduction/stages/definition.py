"""ρ before and after insertion on the 250 published validation pairs, repeats counted; pull of the published tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.reproduction import published
from benchmarks.reproduction.bench import Bench
from benchmarks.reproduction.compared import Comparison, compared
from benchmarks.reproduction.stages.sticky import PAIRS
from embaudit.corpora.records import read_chosen_pairs
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.insertion import SentencePair
from embaudit.measures.sticky.inspect import inspect_tokens
from embaudit.measures.sticky.points import given_pairs
from embaudit.measures.sticky.steps.sentences import read_tokens
from embaudit.steps.progress import tracked
from embaudit.steps.staging.stage import read_rows

KEPT = ("id", "token", "rho_0", "rho_prefix", "rho_suffix", "pull", "pull_low", "pull_high", "excess_pull", "loss")


def measure(bench: Bench) -> dict[str, Any]:
    run = bench.run(sticky={"controls": max(10, bench.most(200)), "resamples": 1_000})
    settings = run.settings(StickySettings)
    (tokens,) = run(read_tokens, bench.spec)
    entries = read_rows([tokens.path])
    listed = read_chosen_pairs(bench.file(PAIRS["validation"])).pairs[: bench.most(250)]
    encoder = bench.encoder
    pairs = [SentencePair(first, second, 0.0) for first, second in listed]
    points = given_pairs(encoder, pairs, published.U, settings.copies, run.seed)
    sticky = [one.token_id for one in published.published_shortlist() if one.is_sticky]
    asked = [token for token in dict.fromkeys([*published.RHO, *sticky]) if token < len(entries)]
    with tracked("definition", (len(asked) + settings.controls) * len(points.draws)) as advance:
        found = inspect_tokens(encoder, points, asked, entries, settings, run.seed, advance)
    rows = [{name: row[name] for name in KEPT} for row in found]
    return {"pairs": len(pairs), "controls": found[0]["controls"], "tokens": rows}


def compare(found: dict[str, Any]) -> Iterator[Comparison]:
    rows = {row["id"]: row for row in found["tokens"]}
    yield compared("ρ_0, without insertion", published.RHO_0, found["tokens"][0]["rho_0"], "I", 6)
    for token, (prefix, suffix) in published.RHO.items():
        yield compared(f"ρ of `{rows[token]['token']}`, 8 copies before", prefix, rows[token]["rho_prefix"], "I", 6)
        yield compared(f"ρ of `{rows[token]['token']}`, 8 copies after", suffix, rows[token]["rho_suffix"], "I", 6)
    pulls = [row["pull"] for row in _published(found)]
    middle, low, high = published.PULL_OF_STICKY
    yield Comparison(
        "pull of the published sticky tokens: median (range)",
        f"{middle:.2f} ({low:.2f}–{high:.2f}) [S]",
        f"{np.median(pulls):.2f} ({min(pulls):.2f}–{max(pulls):.2f})",
        f"{abs(float(np.median(pulls)) - middle):.2f}",
    )
    ordinary = found["tokens"][0]["pull"] - found["tokens"][0]["excess_pull"]
    low, high = published.PULL_OF_ORDINARY
    yield Comparison(
        f"median pull of {found['controls']} ordinary tokens",
        f"between {low:.2f} and {high:.2f} [S]",
        f"{ordinary:.2f}",
        "inside" if low <= ordinary <= high else "outside",
    )


def _published(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows of the published sticky tokens."""
    sticky = {one.token_id for one in published.published_shortlist() if one.is_sticky}
    return [row for row in found["tokens"] if row["id"] in sticky]


def said(found: dict[str, Any]) -> str:
    mine = _published(found)
    clear = sum(row["pull_low"] is not None and row["pull_low"] > row["pull"] - row["excess_pull"] for row in mine)
    return (
        f"Of the {len(mine)} published sticky tokens, {clear} pull more than the median ordinary token by more than "
        f"their own interval; by loss of similarity they range from {min(row['loss'] for row in mine):.2f} to "
        f"{max(row['loss'] for row in mine):.2f}, where a quarter counts as moderate."
    )
