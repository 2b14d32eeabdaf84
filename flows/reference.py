"""Sub-flow: the ``reference`` protocol, comparable with published lists. Pairs -> scores -> shortlist -> values."""

from __future__ import annotations

from typing import Any

import numpy as np
from prefect import flow

from embaudit.measures.sticky import reference as measure
from embaudit.measures.sticky.settings import StickySettings
from embaudit.warehouse.stage import read_rows
from embaudit_flows.cached import run_cached, run_shards
from embaudit_flows.keys import name_of, names_of, shards_of
from embaudit_flows.plan import AuditPlan
from embaudit_tasks import reference as tasks
from embaudit_tasks.results import Staged, StagedCorpus

# A token takes 8 × 3 × 5 encodes here, fifteen draws in the scan.
SCORED_TOKENS_PER_SHARD = 512
# 8 × 3 × 250 encodes each.
VALIDATED_TOKENS_PER_SHARD = 8


@flow(name="reference protocol", flow_run_name="reference protocol of {plan.source}", persist_result=False)
def reference(plan: AuditPlan, corpus: StagedCorpus, tokens: Staged, similarity: Staged) -> list[Staged]:
    """Score every ok and special token as the published code does; returns the staged files."""
    settings, where = plan.profile.of(StickySettings), {"staging": plan.staging}
    pairs = run_cached(
        tasks.choose_reference_pairs,
        plan.spec,
        corpus_path=corpus.content_path,
        similarity_path=similarity.path,
        given=plan.pair_paths,
        settings=settings,
        seed=plan.seed,
        key=plan.key(
            "reference-pairs",
            measure.MEASURE_VERSION,
            corpus=corpus.corpus_id,
            given=plan.pair_contents,
            settings=[settings.sentences, settings.reference_pairs, settings.validation_pairs],
        ),
        **where,
    )

    def measured(purpose: str, token_ids: np.ndarray, per_shard: int) -> list[Staged]:
        shards = [
            {
                "token_ids": shard.tolist(),
                "shard": index,
                "key": plan.key(
                    purpose,
                    measure.MEASURE_VERSION,
                    pairs=name_of(pairs),
                    copies=settings.copies,
                    tokens=shard.tolist(),
                ),
            }
            for index, shard in enumerate(shards_of(token_ids, per_shard))
        ]
        return run_shards(
            tasks.reference_shard,
            plan.spec,
            shards,
            pairs_path=pairs.path,
            purpose=purpose,
            copies=settings.copies,
            seed=plan.seed,
            total=len(token_ids),
            **where,
        )

    scored = measured("reference_scoring", _scanned(plan, read_rows([tokens.path])), SCORED_TOKENS_PER_SHARD)
    score_paths = [part.path for part in scored]
    listed = run_cached(
        tasks.reference_shortlist,
        plan.spec,
        score_paths=score_paths,
        key=plan.key("reference-shortlist", measure.MEASURE_VERSION, files=names_of(scored)),
        **where,
    )
    candidates = np.array([row["token_id"] for row in read_rows([listed.path])], dtype=np.int64)
    validated = measured("reference_validation", candidates, VALIDATED_TOKENS_PER_SHARD)
    verdicts = run_cached(
        tasks.judge_reference,
        plan.spec,
        score_paths=score_paths,
        value_paths=[part.path for part in validated],
        summary={
            "u": read_rows([similarity.path])[0]["u"],
            "scoring_pairs": pairs.detail["reference_scoring"],
            "validation_pairs": pairs.detail["reference_validation"],
            "encodes": sum(part.encodes for part in (*scored, *validated)),
            "cutoff": listed.detail["cutoff"],
        },
        key=plan.key("reference-verdicts", measure.MEASURE_VERSION, files=names_of([*scored, *validated])),
        **where,
    )
    return [pairs, *scored, *validated, *verdicts]


def _scanned(plan: AuditPlan, tokens: list[dict[str, Any]]) -> np.ndarray:
    """The published code scans ok and special tokens; a limit takes a random part of them."""
    ids = np.array([row["token_id"] for row in tokens if row["category"] in ("ok", "special")], dtype=np.int64)
    if plan.limit_tokens is None or plan.limit_tokens >= len(ids):
        return ids
    return np.sort(np.random.default_rng([plan.seed, len(ids)]).choice(ids, plan.limit_tokens, replace=False))
