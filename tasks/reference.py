"""The ``reference`` protocol as tasks: its pairs, scores and validation values in shards, its verdicts."""

from __future__ import annotations

import time
from typing import Literal, get_args

from prefect import task

from embaudit.measures.sticky.settings import StickySettings
from embaudit.measures.sticky.tables import StickyPairRow, StickyReferenceRow, StickyReferenceSummaryRow
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of
from embaudit_tasks.sticky_files import pair_rows, read_pairs, read_similarity, stage

Purpose = Literal["reference_scoring", "reference_validation"]
# What a shard holds for each token: its score, or its validation value.
SHARD_SCHEMA = {"token_id": "int32", "inserted": "string", "number": "float64"}


@task(name="choose reference pairs", **CACHED)
def choose_reference_pairs(
    spec: CheckpointSpec,
    corpus_path: str,
    similarity_path: str,
    given: dict[str, str],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """Stage pairs below u, as the published code chooses them, or the pairs that were given.

    Args:
        given: staged pairs by purpose (``scoring``, ``validation``).
    """
    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky import reference
    from embaudit.warehouse.stage import read_rows

    counts = {"scoring": settings.reference_pairs, "validation": settings.validation_pairs}
    chosen = {purpose: read_pairs(path, purpose) for purpose, path in given.items()}
    if len(chosen) < len(counts):
        texts = [row[side] for row in read_rows([corpus_path]) for side in ("first", "second")]
        u = read_similarity(similarity_path)["u"]
        encoder = Encoder(checkpoint_of(spec))
        found = reference.choose_reference_pairs(encoder, texts, u, counts, settings.sentences, seed)
        chosen = {purpose: list(pairs) for purpose, pairs in found.items()} | chosen
    rows = [row for purpose in counts for row in pair_rows(f"reference_{purpose}", chosen[purpose])]
    found_of = {purpose: sum(row["purpose"] == purpose for row in rows) for purpose in get_args(Purpose)}
    return stage("sticky_pair", rows, StickyPairRow.table.schema, key, staging, detail=found_of)


@task(name="reference protocol", task_run_name="{purpose}, shard {shard}", **CACHED)
def reference_shard(
    spec: CheckpointSpec,
    pairs_path: str,
    purpose: Purpose,
    token_ids: list[int],
    copies: int,
    seed: int,
    shard: int,
    total: int,
    key: str,
    staging: str,
) -> Staged:
    """Scores, or validation values, of some tokens."""
    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.inspect import decoded
    from embaudit.measures.sticky.reference import distances, prepare_reference, sticky_scores, validation_values

    started = time.perf_counter()
    checkpoint = checkpoint_of(spec)
    encoder = Encoder(checkpoint)
    inputs = prepare_reference(
        encoder, [(pair.first, pair.second) for pair in read_pairs(pairs_path, purpose)], copies, seed
    )
    texts = [decoded(checkpoint, token) for token in token_ids]
    shared = encoder.texts
    label = f"reference protocol, {purpose.removeprefix('reference_')}"
    with tracked(label, len(texts) * inputs.texts_per_token, of_all=total * inputs.texts_per_token) as advance:
        after = distances(encoder, inputs, texts, advance)
    is_scoring = purpose == "reference_scoring"
    numbers = sticky_scores(encoder, inputs, texts, after) if is_scoring else validation_values(inputs, after)
    rows = [
        {"token_id": token, "inserted": text, "number": float(number)}
        for token, text, number in zip(token_ids, texts, numbers, strict=True)
    ]
    return stage("reference", rows, SHARD_SCHEMA, key, staging, started=started, encodes=encoder.texts - shared)


@task(name="shortlist of the reference protocol", **CACHED)
def reference_shortlist(spec: CheckpointSpec, score_paths: list[str], key: str, staging: str) -> Staged:
    """The 2 % of highest scores."""
    import numpy as np

    from embaudit.measures.sticky.reference import shortlist
    from embaudit.warehouse.stage import read_rows

    rows = sorted(read_rows(score_paths), key=lambda row: row["token_id"])
    scores = np.array([row["number"] for row in rows])
    places = shortlist(scores)
    listed = [{"token_id": rows[place]["token_id"]} for place in places]
    cutoff = {"cutoff": float(scores[places].min())}
    return stage("reference_shortlist", listed, {"token_id": "int32"}, key, staging, detail=cutoff)


@task(name="judge by the reference protocol", **CACHED)
def judge_reference(
    spec: CheckpointSpec,
    score_paths: list[str],
    value_paths: list[str],
    summary: dict[str, float],
    key: str,
    staging: str,
) -> list[Staged]:
    """Ranks, threshold and verdicts (tables ``sticky_reference`` and ``sticky_reference_summary``)."""
    import numpy as np

    from embaudit.measures.sticky.thresholds import adaptive_threshold
    from embaudit.warehouse.stage import read_rows

    scored = sorted(read_rows(score_paths), key=lambda row: (-row["number"], row["token_id"]))
    values = {row["token_id"]: row["number"] for row in read_rows(value_paths)}
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
        for place, row in enumerate(scored, start=1)
    ]
    counted = {
        "protocol": "reference",
        **summary,
        "scanned": len(rows),
        "candidates": len(values),
        "threshold": threshold,
        "sticky": sum(row["verdict"] == "sticky" for row in rows),
    }
    by_token = sorted(rows, key=lambda row: row["token_id"])
    return [
        stage("sticky_reference", by_token, StickyReferenceRow.table.schema, key, staging),
        stage("sticky_reference_summary", [counted], StickyReferenceSummaryRow.table.schema, key, staging),
    ]
