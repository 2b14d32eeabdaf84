"""The ``reference`` protocol as tasks: its pairs, scores and validation values in shards, its verdicts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

from prefect import task

from embaudit.profile import StickySettings
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of
from embaudit_tasks.sticky_files import MEASURE, PAIR_SCHEMA, pair_rows, read_pairs, read_similarity

Purpose = Literal["reference_scoring", "reference_validation"]
NUMBER_OF: dict[str, str] = {"reference_scoring": "score", "reference_validation": "value"}
REFERENCE_SCHEMA = {
    "token_id": "int32",
    "inserted": "string",
    "score": "float64",
    "score_rank": "int32",
    "is_shortlisted": "bool",
    "value": "float64",
    "threshold": "float64",
    "verdict": "string",
}
SUMMARY_SCHEMA = {
    "protocol": "string",
    "u": "float64",
    **dict.fromkeys(("scanned", "scoring_pairs", "validation_pairs"), "int32"),
    "encodes": "int64",
    "cutoff": "float64",
    "candidates": "int32",
    "threshold": "float64",
    "sticky": "int32",
}


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
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.sticky.pairs import distinct_sentences, named_pairs
    from embaudit.sticky.reference import pairs_below
    from embaudit.sticky.scan import require_below_u, unit_rows
    from embaudit.warehouse.stage import read_rows, staged_path, write_rows

    encoder = Encoder(checkpoint_of(spec))
    u = read_similarity(similarity_path)["u"]
    texts = [row[side] for row in read_rows([corpus_path]) for side in ("first", "second")]
    sentences = distinct_sentences(texts, settings.sentences, seed)
    unit = unit_rows(encoder.encode_texts(sentences)).astype(np.float64)
    similarity = unit @ unit.T
    rows = []
    for index, (purpose, count) in enumerate(
        (("scoring", settings.reference_pairs), ("validation", settings.validation_pairs))
    ):
        if purpose in given:
            pairs = read_pairs(given[purpose], purpose)
        else:
            require_below_u(similarity, u)
            chosen = pairs_below(similarity, u, count, np.random.default_rng([seed, index]))
            pairs = list(named_pairs(sentences, similarity, chosen))
        rows += pair_rows(f"reference_{purpose}", pairs)
    path = staged_path(Path(staging), MEASURE, key, "sticky_pair")
    counts = {purpose: sum(row["purpose"] == purpose for row in rows) for purpose in NUMBER_OF}
    return Staged(table="sticky_pair", path=str(path), rows=write_rows(path, rows, PAIR_SCHEMA), detail=counts)


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
    from embaudit.sticky.inspect import decoded
    from embaudit.sticky.reference import distances, prepare_reference, sticky_scores, validation_values
    from embaudit.warehouse.stage import staged_path, write_rows

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
    path = staged_path(Path(staging), MEASURE, key, "reference")
    return Staged(
        table="reference",
        path=str(path),
        rows=write_rows(path, rows, {"token_id": "int32", "inserted": "string", "number": "float64"}),
        seconds=time.perf_counter() - started,
        encodes=encoder.texts - shared,
    )


@task(name="shortlist of the reference protocol", **CACHED)
def reference_shortlist(spec: CheckpointSpec, score_paths: list[str], key: str, staging: str) -> Staged:
    """The 2 % of highest scores."""
    import numpy as np

    from embaudit.sticky.reference import shortlist
    from embaudit.warehouse.stage import read_rows, staged_path, write_rows

    rows = sorted(read_rows(score_paths), key=lambda row: row["token_id"])
    scores = np.array([row["number"] for row in rows])
    listed = [{"token_id": rows[index]["token_id"]} for index in shortlist(scores)]
    path = staged_path(Path(staging), MEASURE, key, "reference_shortlist")
    return Staged(
        table="reference_shortlist",
        path=str(path),
        rows=write_rows(path, listed, {"token_id": "int32"}),
        detail={"cutoff": float(min(scores[index] for index in shortlist(scores)))},
    )


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

    from embaudit.sticky.thresholds import adaptive_threshold
    from embaudit.warehouse.stage import read_rows, staged_path, write_rows

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
    staged = []
    for table, content, schema in (
        ("sticky_reference", sorted(rows, key=lambda row: row["token_id"]), REFERENCE_SCHEMA),
        ("sticky_reference_summary", [counted], SUMMARY_SCHEMA),
    ):
        path = staged_path(Path(staging), MEASURE, key, table)
        staged.append(Staged(table=table, path=str(path), rows=write_rows(path, content, schema)))
    return staged
