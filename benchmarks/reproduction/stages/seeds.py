"""How much of a shortlist the protocol's random third decides: two of our own runs with different places.

The score is linear in its operators, so a run with other random places is ours plus 0.30 × the difference of the random
operator's scores; prefix and suffix are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.reproduction import published
from benchmarks.reproduction.bench import Bench, rows_of
from benchmarks.reproduction.compared import Comparison
from benchmarks.reproduction.stages.sticky import run_protocol
from embaudit.measures.sticky import StickySettings, inspect
from embaudit.measures.sticky.inspect import decoded
from embaudit.measures.sticky.steps.files import TokenShard, read_pairs, token_shards
from embaudit.measures.sticky.steps.reference import SCORED_TOKENS_PER_SHARD
from embaudit.statistics import spearman
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.step import Outputs, step

OTHER_SEED = 1
SCHEMA = {"token_id": "int32", "score": "float64"}


@step("sticky", version=1, tables=("random_scores",), name="scores of random places", reads=("copies",))
def random_scores(
    out: Outputs, spec: CheckpointSpec, pairs: Staged, shard: TokenShard, settings: StickySettings, seed: int
) -> None:
    """The random operator's score of some tokens, for one draw of the places."""
    encoder = encoder_of(spec)
    chosen = [(pair.first, pair.second) for pair in read_pairs(pairs, "reference_scoring")]
    inputs = inspect.prepare_reference(encoder, chosen, settings.copies, seed)
    texts = [decoded(encoder.checkpoint, token) for token in shard.token_ids]
    each = inputs.texts_by(["random"])
    with tracked(shard.label, len(texts) * each, of_all=shard.total * each) as advance:
        after = inspect.distances(encoder, inputs, texts, advance, ["random"])
    scores = inspect.operator_scores(encoder, inputs, texts, after)[:, 0]
    rows = [{"token_id": token, "score": float(score)} for token, score in zip(shard.token_ids, scores, strict=True)]
    out.rows("random_scores", rows, SCHEMA, encodes=encoder.texts)


def measure(bench: Bench) -> dict[str, Any]:
    run, staged, _ = run_protocol(bench)
    rows = rows_of(staged, "sticky_reference")
    ids, first = np.array([row["token_id"] for row in rows]), np.array([row["score"] for row in rows])
    parts = {}
    for seed in (run.seed, OTHER_SEED):
        files = run.sharded(
            random_scores,
            token_shards(ids, SCORED_TOKENS_PER_SHARD, len(ids), f"scores of random places, seed {seed}"),
            spec=run.spec,
            pairs=staged[0],
            settings=run.settings(StickySettings),
            seed=seed,
        )
        by_id = {row["token_id"]: row["score"] for row in rows_of(files, "random_scores")}
        parts[seed] = np.array([by_id[token] for token in ids])
    second = first + inspect.SCORE_WEIGHTS["random"] * (parts[OTHER_SEED] - parts[run.seed])
    theirs = {one.token_id: one.score for one in published.published_shortlist()}
    known = np.isin(ids, list(theirs))
    lists = [np.isin(np.arange(len(ids)), inspect.shortlist(scores)) for scores in (first, second)]
    return {
        "tokens": len(ids),
        "shortlisted": [int(one.sum()) for one in lists],
        "common": int((lists[0] & lists[1]).sum()),
        "published_on_ours": [int((one & known).sum()) for one in lists],
        "published": int(known.sum()),
        "fall_of_ours": float(np.median((second - first)[lists[0]])),
        "fall_of_published": _median(first[known] - np.array([theirs[token] for token in ids[known]])),
        "spearman": spearman(first, second),
        "spread_of_difference": float(np.std(second - first)),
    }


def _median(values: np.ndarray) -> float | None:
    """None in a limited run without any of these tokens."""
    return float(np.median(values)) if len(values) else None


def compare(found: dict[str, Any]) -> Iterator[Comparison]:
    common, listed = found["common"], found["shortlisted"][0]
    first, second = found["published_on_ours"]
    yield Comparison(
        "shortlists in common: published and ours; ours and ours with other random places",
        f"{first} of {found['published']}, {second} of {found['published']}",
        f"{common} of {listed}",
        f"{abs(first / found['published'] - common / listed):.0%}",
    )
    yield Comparison(
        "median change of a shortlisted token's score in the other run",
        f"{found['fall_of_published']:+.2f}",
        f"{found['fall_of_ours']:+.2f}",
        f"{abs(found['fall_of_published'] - found['fall_of_ours']):.2f}",
    )


def said(found: dict[str, Any]) -> str:
    return (
        "“Published” is the published run against ours, “ours” one of our runs against another that only draws other "
        f"random places. Over all {found['tokens']:,} tokens the scores of the two correlate at "
        f"{found['spearman']:.2f} (Spearman); they differ by {found['spread_of_difference']:.1f} points (standard "
        "deviation), since each pair without a rising step is worth about five."
    )
