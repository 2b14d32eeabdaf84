"""The ``reference`` protocol as steps: its pairs, scores and validation values in shards, and verdicts."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from embaudit.measures.sticky import reference
from embaudit.measures.sticky.inspect import decoded
from embaudit.measures.sticky.settings import StickySettings
from embaudit.measures.sticky.tables import StickyPairRow, StickyReferenceRow, StickyReferenceSummaryRow
from embaudit.measures.sticky.thresholds import adaptive_threshold
from embaudit.warehouse.stage import read_rows
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CheckpointSpec, Staged, StagedCorpus, TokenShard, encoder_of
from embaudit_tasks.steps import Outputs, step
from embaudit_tasks.sticky_files import pair_rows, read_pairs, read_u

Purpose = Literal["reference_scoring", "reference_validation"]
# One row per token; ``number`` is its score, or its validation value.
SHARD_SCHEMA = {"token_id": "int32", "inserted": "string", "number": "float64"}


@step(
    "sticky",
    version=reference.MEASURE_VERSION,
    tables=(StickyPairRow,),
    name="choose reference pairs",
    reads=("sentences", "reference_pairs", "reference_validation_pairs"),
)
def choose_reference_pairs(
    out: Outputs,
    spec: CheckpointSpec,
    corpus: StagedCorpus,
    similarity: Staged,
    given: dict[str, Staged],
    settings: StickySettings,
    seed: int,
) -> None:
    """Pairs below u, chosen as in the published code, or the given pairs.

    Args:
        given: the user's own pairs by purpose (``scoring``, ``validation``).
    """
    counts = {"scoring": settings.reference_pairs, "validation": settings.reference_validation_pairs}
    chosen = {purpose: read_pairs(pairs, purpose) for purpose, pairs in given.items()}
    if len(chosen) < len(counts):
        texts = [row[side] for row in read_rows([corpus.content_path]) for side in ("first", "second")]
        u = read_u(similarity)
        found = reference.choose_reference_pairs(encoder_of(spec), texts, u, counts, settings.sentences, seed)
        chosen = {purpose: list(pairs) for purpose, pairs in found.items()} | chosen
    rows = [row for purpose in counts for row in pair_rows(f"reference_{purpose}", chosen[purpose])]
    found_of = {purpose: sum(row["purpose"] == purpose for row in rows) for purpose in get_args(Purpose)}
    out.rows(StickyPairRow, rows, detail=found_of)


@step(
    "sticky",
    version=reference.MEASURE_VERSION,
    tables=("reference",),
    name="reference protocol",
    run_name="{shard.label}, shard {shard.number}",
    reads=("copies",),
)
def reference_shard(
    out: Outputs,
    spec: CheckpointSpec,
    pairs: Staged,
    purpose: Purpose,
    shard: TokenShard,
    settings: StickySettings,
    seed: int,
) -> None:
    """Scores or validation values of some tokens."""
    encoder = encoder_of(spec)
    chosen = [(pair.first, pair.second) for pair in read_pairs(pairs, purpose)]
    inputs = reference.prepare_reference(encoder, chosen, settings.copies, seed)
    texts = [decoded(encoder.checkpoint, token) for token in shard.token_ids]
    shared = encoder.texts
    with tracked(
        shard.label, len(texts) * inputs.texts_per_token, of_all=shard.total * inputs.texts_per_token
    ) as advance:
        after = reference.distances(encoder, inputs, texts, advance)
    if purpose == "reference_scoring":
        numbers = reference.sticky_scores(encoder, inputs, texts, after)
    else:
        numbers = reference.validation_values(inputs, after)
    rows = [
        {"token_id": token, "inserted": text, "number": float(number)}
        for token, text, number in zip(shard.token_ids, texts, numbers, strict=True)
    ]
    out.rows("reference", rows, SHARD_SCHEMA, encodes=encoder.texts - shared)


@step(
    "sticky",
    version=reference.MEASURE_VERSION,
    tables=("reference_shortlist",),
    name="shortlist of the reference protocol",
)
def reference_shortlist(out: Outputs, scored: list[Staged]) -> None:
    """The tokens with the highest 2 % of scores."""
    rows = sorted(read_rows([part.path for part in scored]), key=lambda row: row["token_id"])
    scores = np.array([row["number"] for row in rows])
    places = reference.shortlist(scores)
    listed = [{"token_id": rows[place]["token_id"]} for place in places]
    cutoff = {"cutoff": float(scores[places].min())}
    out.rows("reference_shortlist", listed, {"token_id": "int32"}, detail=cutoff)


@step(
    "sticky",
    version=reference.MEASURE_VERSION,
    tables=(StickyReferenceRow, StickyReferenceSummaryRow),
    name="judge by the reference protocol",
)
def judge_reference(out: Outputs, scored: list[Staged], validated: list[Staged], summary: dict[str, float]) -> None:
    """Ranks, threshold and verdicts (tables ``sticky_reference`` and ``sticky_reference_summary``)."""
    ranked = sorted(read_rows([part.path for part in scored]), key=lambda row: (-row["number"], row["token_id"]))
    values = {row["token_id"]: row["number"] for row in read_rows([part.path for part in validated])}
    threshold = adaptive_threshold(np.array(list(values.values())), above=True)

    def verdict(value: float | None) -> str | None:
        if value is None:
            return None
        return "no_threshold" if threshold is None else "sticky" if value > threshold else "not_sticky"

    rows = [
        {
            "token_id": row["token_id"],
            "inserted": row["inserted"],
            "score": row["number"],
            "score_rank": place,
            "is_shortlisted": row["token_id"] in values,
            "value": values.get(row["token_id"]),
            "threshold": threshold,
            "verdict": verdict(values.get(row["token_id"])),
        }
        for place, row in enumerate(ranked, start=1)
    ]
    counted = {
        "protocol": "reference",
        **summary,
        "scanned": len(rows),
        "candidates": len(values),
        "threshold": threshold,
        "sticky": sum(row["verdict"] == "sticky" for row in rows),
    }
    out.rows(StickyReferenceRow, sorted(rows, key=lambda row: row["token_id"]))
    out.rows(StickyReferenceSummaryRow, [counted])
