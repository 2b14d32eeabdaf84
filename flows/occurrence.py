"""Sub-flow: where the audit's severe tokens occur in each corpus of texts, and what effect they have there."""

from __future__ import annotations

from prefect import flow

from embaudit.measures.occurrence.settings import OccurrenceSettings
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.occurrence import corpus_occurrence
from embaudit_tasks.results import Staged, StagedCorpus


@flow(name="occurrence", flow_run_name="occurrence of severe tokens of {plan.source}", persist_result=False)
def occurrence(plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged]) -> list[Staged]:
    """Count the tokens that ``sticky`` found in each corpus, and measure how removing them moves texts."""
    settings = plan.profile.of(OccurrenceSettings)
    tokens, verdicts = (
        next(part for part in earlier if part.table == table) for table in ("token", "sticky_validation")
    )
    staged: list[Staged] = []
    for corpus in (ingested[name] for name in settings.corpora):
        draw = settings.draw_from(corpus.name, corpus.rows, plan.seed)
        parts = corpus_occurrence(
            plan.staging, plan.spec, corpus, tokens, verdicts, draw, settings=settings, seed=plan.seed
        )
        # Without severe tokens there is nothing to count, and no text is dense in them.
        staged += [part for part in parts if part.rows]
    return staged
