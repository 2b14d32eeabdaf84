"""The first experiment of arXiv 2507.18171: eight copies after the second sentence of 1 000 pairs, token by token."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.reproduction import published
from benchmarks.reproduction.bench import Bench, rows_of
from benchmarks.reproduction.compared import Comparison, compared
from benchmarks.search import LIST
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.plan import choose_controls
from embaudit.measures.sticky.steps.evidence import shifts
from embaudit.measures.sticky.steps.files import Sample
from embaudit.measures.sticky.steps.sentences import choose_sentences, read_tokens, token_similarity
from embaudit.statistics import mean_with_interval
from embaudit.steps.staging.stage import read_rows

TOKENS = 10
STS = "sts/stsb/stsb-en-test.csv"
GROUPS = ("published sticky", "lowest retention", "ordinary")
FIGURES = {
    "shift": "mean shift of the similarity",
    "compression": "SD after / SD before",
    "slope": "slope of after on before",
    "pull": "pull towards u on pairs below u",
}


def measure(bench: Bench) -> dict[str, Any]:
    run = bench.run({"sts": str(bench.file(STS))}, sticky={"shift_pairs": max(10, bench.most(1_000))})
    settings = run.settings(StickySettings)
    (tokens,) = run(read_tokens, bench.spec)
    similarity, _ = token_similarity(run, tokens, None)
    sentences, pairs = run(
        choose_sentences, bench.spec, run.corpora["sts"], {}, settings, settings.shift_pairs, run.seed
    )
    sample = Sample(sentences=sentences, pairs=pairs, similarity=similarity, copies=settings.copies, seed=run.seed)
    entries = read_rows([tokens.path])
    sticky, worst = _most_sticky(len(entries)), _lowest_retention(len(entries))
    ordinary = choose_controls(entries, np.array([*sticky, *worst]), TOKENS, run.seed).tolist()
    staged = run(shifts, bench.spec, sample, [*sticky, *worst], ordinary)
    by_token: dict[int, list[tuple[float, float]]] = {}
    for row in rows_of(staged, "sticky_shift"):
        by_token.setdefault(row["token_id"], []).append((row["before"], row["after"]))
    names = {row["token_id"]: row["token"] for row in entries}
    groups = dict(zip(GROUPS, (sticky, worst, ordinary), strict=True))
    return {
        "pairs": pairs.rows,
        "u": sample.u,
        "tokens": [
            {"token_id": token, "token": names[token], "group": group, **_effect(np.array(by_token[token]), sample.u)}
            for group, members in groups.items()
            for token in members
        ],
    }


def _effect(similarities: np.ndarray, u: float) -> dict[str, float]:
    """From (P, 2) similarities before and after."""
    before, after = similarities.T
    below = before < u
    return {
        "shift": float((after - before).mean()),
        "compression": float(after.std() / before.std()),
        "slope": float(np.polyfit(before, after, 1)[0]),
        "pull": float(1 - np.abs(after[below] - u).mean() / np.abs(before[below] - u).mean()),
    }


def _most_sticky(size: int) -> list[int]:
    """The published sticky tokens of highest value."""
    listed = [one for one in published.published_shortlist() if one.is_sticky and one.token_id < size]
    return [one.token_id for one in sorted(listed, key=lambda one: -(one.value or 0))[:TOKENS]]


def _lowest_retention(size: int) -> list[int]:
    """The tokens that lose most in the exhaustive search (docs/exhaustive.md)."""
    with LIST.open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["slope_rank"]))
    return [int(row["token_id"]) for row in rows if int(row["token_id"]) < size][:TOKENS]


def compare(found: dict[str, Any]) -> Iterator[Comparison]:
    for group in GROUPS:
        for name, what in FIGURES.items():
            values = np.array([row[name] for row in found["tokens"] if row["group"] == group])
            mean, low, high = mean_with_interval(values)
            yield compared(f"{len(values)} {group}: {what}", None, {"value": mean, "low": low, "high": high})


def said(found: dict[str, Any]) -> str:
    means = {
        group: np.mean([row["compression"] for row in found["tokens"] if row["group"] == group]) for group in GROUPS
    }
    return (
        f"{found['pairs']:,} pairs of STS Benchmark over the whole range of similarities; means over tokens with "
        "Student's interval. The paper shows curves of another checkpoint and no numbers. What it calls sticky narrows "
        f"the similarities to {means['published sticky']:.2f} of their spread, ordinary tokens to "
        f"{means['ordinary']:.2f}, and the tokens of lowest retention to {means['lowest retention']:.2f}."
    )
