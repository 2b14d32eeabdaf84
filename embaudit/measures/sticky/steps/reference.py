"""The ``reference`` protocol as steps, to compare with published lists: pairs, scores, shortlist, values, verdicts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from embaudit.measures.run import Run
from embaudit.measures.sticky import StickySettings, inspect
from embaudit.measures.sticky.inspect import decoded
from embaudit.measures.sticky.steps.files import TokenShard, pair_rows, read_pairs, read_u, token_shards
from embaudit.measures.sticky.tables import StickyPairRow, StickyReferenceRow, StickyReferenceSummaryRow
from embaudit.measures.sticky.verdicts import adaptive_threshold
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step

Purpose = Literal["reference_scoring", "reference_validation"]
# One row per token; ``number`` is its score, or its validation value.
SHARD_SCHEMA = {"token_id": "int32", "inserted": "string", "number": "float64"}
# A token takes 8 × 3 × 5 encodes here, against at most 16, one per draw, in the scan.
SCORED_TOKENS_PER_SHARD = 512
# 8 × 3 × 250 encodes each.
VALIDATED_TOKENS_PER_SHARD = 8


@dataclass(frozen=True)
class ReferencePairs:
    """Number of pairs for each purpose."""

    reference_scoring: int
    reference_validation: int


@dataclass(frozen=True)
class ShortlistCutoff:
    """The lowest score on the shortlist."""

    cutoff: float


@step(
    "sticky",
    version=inspect.MEASURE_VERSION,
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
        found = inspect.choose_reference_pairs(encoder_of(spec), texts, u, counts, settings.sentences, seed)
        chosen = {purpose: list(pairs) for purpose, pairs in found.items()} | chosen
    rows = [row for purpose in counts for row in pair_rows(f"reference_{purpose}", chosen[purpose])]
    counted = Counter(row["purpose"] for row in rows)
    out.rows(StickyPairRow, rows, detail=ReferencePairs(**{purpose: counted[purpose] for purpose in get_args(Purpose)}))


@step(
    "sticky",
    version=inspect.MEASURE_VERSION,
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
    inputs = inspect.prepare_reference(encoder, chosen, settings.copies, seed)
    texts = [decoded(encoder.checkpoint, token) for token in shard.token_ids]
    shared = encoder.texts
    with tracked(
        shard.label, len(texts) * inputs.texts_per_token, of_all=shard.total * inputs.texts_per_token
    ) as advance:
        after = inspect.distances(encoder, inputs, texts, advance)
    if purpose == "reference_scoring":
        numbers = inspect.sticky_scores(encoder, inputs, texts, after)
    else:
        numbers = inspect.validation_values(inputs, after)
    rows = [
        {"token_id": token, "inserted": text, "number": float(number)}
        for token, text, number in zip(shard.token_ids, texts, numbers, strict=True)
    ]
    out.rows("reference", rows, SHARD_SCHEMA, encodes=encoder.texts - shared)


@step(
    "sticky",
    version=inspect.MEASURE_VERSION,
    tables=("reference_shortlist",),
    name="shortlist of the reference protocol",
)
def reference_shortlist(out: Outputs, scored: list[Staged]) -> None:
    """The tokens with the highest 2 % of scores."""
    rows = sorted(read_rows([part.path for part in scored]), key=lambda row: row["token_id"])
    scores = np.array([row["number"] for row in rows])
    places = inspect.shortlist(scores)
    listed = [{"token_id": rows[place]["token_id"]} for place in places]
    cutoff = ShortlistCutoff(float(scores[places].min()))
    out.rows("reference_shortlist", listed, {"token_id": "int32"}, detail=cutoff)


@step(
    "sticky",
    version=inspect.MEASURE_VERSION,
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


def measure_reference(
    run: Run, corpus: StagedCorpus, tokens: Staged, similarity: Staged, given: dict[str, Staged]
) -> list[Staged]:
    """Score every ok and special token as the published code does; returns the staged files."""
    settings, seed = run.settings(StickySettings), run.seed
    (pairs,) = run(choose_reference_pairs, run.spec, corpus, similarity, given, settings, seed)

    def measured(purpose: Purpose, token_ids: np.ndarray, per_shard: int) -> list[Staged]:
        return run.sharded(
            reference_shard,
            token_shards(
                token_ids, per_shard, len(token_ids), f"reference protocol, {purpose.removeprefix('reference_')}"
            ),
            spec=run.spec,
            pairs=pairs,
            purpose=purpose,
            settings=settings,
            seed=seed,
        )

    scored = measured("reference_scoring", _scanned(run, read_rows([tokens.path])), SCORED_TOKENS_PER_SHARD)
    (listed,) = run(reference_shortlist, scored)
    candidates = np.array([row["token_id"] for row in read_rows([listed.path])], dtype=np.int64)
    validated = measured("reference_validation", candidates, VALIDATED_TOKENS_PER_SHARD)
    found = pairs.found(ReferencePairs)
    summary = {
        "u": read_rows([similarity.path])[0]["u"],
        "scoring_pairs": found.reference_scoring,
        "validation_pairs": found.reference_validation,
        "encodes": sum(part.encodes for part in (*scored, *validated)),
        "cutoff": listed.found(ShortlistCutoff).cutoff,
    }
    return [pairs, *scored, *validated, *run(judge_reference, scored, validated, summary)]


def _scanned(run: Run, tokens: list[dict[str, Any]]) -> np.ndarray:
    """Ids to scan: ok and special tokens, as in the published code; if there is a limit, a random sample of them."""
    ids = np.array([row["token_id"] for row in tokens if row["category"] in ("ok", "special")], dtype=np.int64)
    limit = run.settings(StickySettings).limit_tokens
    if limit is None or limit >= len(ids):
        return ids
    return np.sort(np.random.default_rng([run.seed, len(ids)]).choice(ids, limit, replace=False))
