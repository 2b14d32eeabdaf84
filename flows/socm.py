"""Sub-flow: how much mean pooling throws away. Texts -> all pairs in shards -> summary, for each corpus."""

from __future__ import annotations

from math import ceil

from prefect import flow

from embaudit.socm import MEASURE_VERSION
from embaudit_flows.cached import run_cached
from embaudit_flows.plan import AuditPlan
from embaudit_tasks import socm as tasks
from embaudit_tasks.results import Staged, StagedCorpus


@flow(name="second-order collapse", flow_run_name="SOCM of {plan.source}", persist_result=False)
def socm(plan: AuditPlan, corpora: list[StagedCorpus], pairs_per_shard: int) -> list[Staged]:
    """SOCM over all pairs of each corpus; returns every staged file of the measure."""
    return [part for corpus in corpora for part in _one_corpus(plan, corpus, pairs_per_shard)]


def _one_corpus(plan: AuditPlan, corpus: StagedCorpus, pairs_per_shard: int) -> list[Staged]:
    texts = min(plan.profile.socm.texts, corpus.rows)

    def key(step: str, **inputs: object) -> str:
        # SOCM draws nothing at random: the seed is no part of its key.
        unseeded = plan.model_copy(update={"seed": 0})
        return unseeded.key(step, MEASURE_VERSION, corpus=corpus.corpus_id, name=corpus.name, texts=texts, **inputs)

    given = {"corpus": corpus.name, "staging": plan.staging}
    content = {"corpus_path": corpus.content_path, "texts": texts}
    described = run_cached(
        tasks.socm_texts, plan.spec, corpus_id=corpus.corpus_id, key=key("socm-texts"), **content, **given
    )
    pairs = texts * (texts - 1) // 2
    shards = max(1, min(ceil(pairs / pairs_per_shard), described.detail["blocks"]))
    computed = [
        run_cached(
            tasks.socm_pairs,
            plan.spec,
            shard=shard,
            shards=shards,
            key=key("socm-pairs", shard=shard, shards=shards),
            **content,
            **given,
        )
        for shard in range(shards)
    ]
    summary = run_cached(
        tasks.socm_summary,
        plan.spec,
        corpus_id=corpus.corpus_id,
        texts_path=described.path,
        pair_paths=[part.path for part in computed],
        key=key("socm-summary", shards=shards),
        **given,
    )
    return [described, *computed, summary]
