"""Sub-flow: concentration layer by layer, for each corpus of texts."""

from __future__ import annotations

from prefect import flow

from embaudit.errors import NotMeasurable
from embaudit.measures.layers.settings import LayerSettings
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.layers import layer_statistics
from embaudit_tasks.results import Staged, StagedCorpus, note


@flow(name="concentration by layer", flow_run_name="layers of {plan.source}", persist_result=False)
def layers(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """λ, contraction, r, C, spread, cosine and σ_a of every layer; what cannot be measured gets a note."""
    staged: list[Staged] = []
    settings = plan.profile.of(LayerSettings)
    for corpus in (ingested[name] for name in settings.corpora):
        draw = settings.draw_from(corpus.name, corpus.rows, plan.seed)
        try:
            staged += layer_statistics(plan.staging, plan.spec, corpus, draw)
        except NotMeasurable as error:
            staged.append(note(f"Left out, layers over {corpus.name}: {error.happened}", plan.staging))
    return staged
