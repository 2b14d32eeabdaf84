"""Sub-flow: concentration layer by layer, for each corpus of texts."""

from __future__ import annotations

from prefect import flow

from embaudit.errors import NotMeasurable
from embaudit.measures.layers import MEASURE_VERSION
from embaudit.measures.layers.settings import LayerSettings
from embaudit_flows.cached import run_cached
from embaudit_flows.plan import AuditPlan
from embaudit_tasks import layers as tasks
from embaudit_tasks.results import Staged, StagedCorpus, note


@flow(name="concentration by layer", flow_run_name="layers of {plan.source}", persist_result=False)
def layers(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """λ, contraction, r, C, spread, cosine and σ_a of every layer; what cannot be measured here is a note."""
    staged: list[Staged] = []
    for corpus in (ingested[name] for name in plan.profile.of(LayerSettings).corpora):
        try:
            staged += _one_corpus(plan, corpus)
        except NotMeasurable as error:
            staged.append(note(f"Left out, layers over {corpus.name}: {error.happened}", plan.staging))
    return staged


def _one_corpus(plan: AuditPlan, corpus: StagedCorpus) -> list[Staged]:
    texts = min(plan.profile.of(LayerSettings).texts, corpus.rows)
    staged: list[Staged] = run_cached(
        tasks.layer_statistics,
        plan.spec,
        corpus=corpus.name,
        corpus_id=corpus.corpus_id,
        corpus_path=corpus.content_path,
        texts=texts,
        key=plan.unseeded_key("layers", MEASURE_VERSION, corpus=corpus.corpus_id, name=corpus.name, texts=texts),
        staging=plan.staging,
    )
    return staged
