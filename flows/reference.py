"""Sub-flow: the ``reference`` protocol, to compare with published lists. Pairs -> scores -> shortlist -> values."""

from __future__ import annotations

from typing import Any

import numpy as np
from prefect import flow

from embaudit.measures.sticky.settings import StickySettings
from embaudit.warehouse.stage import read_rows
from embaudit_flows.plan import AuditPlan
from embaudit_flows.shards import run_shards, token_shards
from embaudit_tasks.reference import (
    Purpose,
    choose_reference_pairs,
    judge_reference,
    reference_shard,
    reference_shortlist,
)
from embaudit_tasks.results import Staged, StagedCorpus

# A token takes 8 × 3 × 5 encodes here, against at most 16, one per draw, in the scan.
SCORED_TOKENS_PER_SHARD = 512
# 8 × 3 × 250 encodes each.
VALIDATED_TOKENS_PER_SHARD = 8


@flow(name="reference protocol", flow_run_name="reference protocol of {plan.source}", persist_result=False)
def reference(
    plan: AuditPlan, corpus: StagedCorpus, tokens: Staged, similarity: Staged, given: dict[str, Staged]
) -> list[Staged]:
    """Score every ok and special token as the published code does; returns the staged files."""
    settings, staging, seed = plan.profile.of(StickySettings), plan.staging, plan.seed
    (pairs,) = choose_reference_pairs(staging, plan.spec, corpus, similarity, given, settings, seed)

    def measured(purpose: Purpose, token_ids: np.ndarray, per_shard: int) -> list[Staged]:
        return run_shards(
            reference_shard,
            staging,
            token_shards(
                token_ids, per_shard, len(token_ids), f"reference protocol, {purpose.removeprefix('reference_')}"
            ),
            spec=plan.spec,
            pairs=pairs,
            purpose=purpose,
            settings=settings,
            seed=seed,
        )

    scored = measured("reference_scoring", _scanned(plan, read_rows([tokens.path])), SCORED_TOKENS_PER_SHARD)
    (listed,) = reference_shortlist(staging, scored)
    candidates = np.array([row["token_id"] for row in read_rows([listed.path])], dtype=np.int64)
    validated = measured("reference_validation", candidates, VALIDATED_TOKENS_PER_SHARD)
    summary = {
        "u": read_rows([similarity.path])[0]["u"],
        "scoring_pairs": pairs.detail["reference_scoring"],
        "validation_pairs": pairs.detail["reference_validation"],
        "encodes": sum(part.encodes for part in (*scored, *validated)),
        "cutoff": listed.detail["cutoff"],
    }
    return [pairs, *scored, *validated, *judge_reference(staging, scored, validated, summary)]


def _scanned(plan: AuditPlan, tokens: list[dict[str, Any]]) -> np.ndarray:
    """Ids to scan: ok and special tokens, as in the published code; if there is a limit, a random sample of them."""
    ids = np.array([row["token_id"] for row in tokens if row["category"] in ("ok", "special")], dtype=np.int64)
    if plan.limit_tokens is None or plan.limit_tokens >= len(ids):
        return ids
    return np.sort(np.random.default_rng([plan.seed, len(ids)]).choice(ids, plan.limit_tokens, replace=False))
