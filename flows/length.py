"""Sub-flow: how length changes similarity, for each corpus of long texts, and σ_a by layer, head and length."""

from __future__ import annotations

from prefect import flow

from embaudit.corpora.judged import QUERIES
from embaudit.errors import NotMeasurable
from embaudit.measures.length.settings import DOCUMENTS, LengthSettings
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.length import length_curve, length_sigma
from embaudit_tasks.length_ranking import length_ranking
from embaudit_tasks.results import Staged, StagedCorpus, note


@flow(name="length", flow_run_name="length of {plan.source}", persist_result=False)
def length(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """The length curve with its controls, σ_a, and rankings of documents; what cannot be measured gets a note."""
    settings = plan.profile.of(LengthSettings)
    staged: list[Staged] = []
    for corpus in (ingested[name] for name in settings.corpora):
        curve = length_curve(plan.staging, plan.spec, corpus, settings, plan.seed)
        # For example, there is no rise if all texts have the same length.
        staged += [part for part in curve if part.rows]
        staged.append(_sigma(plan, corpus, settings))
        if corpus.name == DOCUMENTS:
            staged += _ranking(plan, corpus, ingested[QUERIES], settings)
    return staged


def _ranking(plan: AuditPlan, documents: StagedCorpus, queries: StagedCorpus, settings: LengthSettings) -> list[Staged]:
    try:
        (found,) = length_ranking(plan.staging, plan.spec, documents, queries, settings, plan.seed)
    except NotMeasurable as error:
        reason = error.happened
    else:
        if found.rows:
            return [found]
        reason = "all documents are of one length."
    return [note(f"Left out, length in rankings of {documents.name}: {reason}", plan.staging)]


def _sigma(plan: AuditPlan, corpus: StagedCorpus, settings: LengthSettings) -> Staged:
    try:
        (sigma,) = length_sigma(plan.staging, plan.spec, corpus, settings, plan.seed)
    except NotMeasurable as error:
        reason = error.happened
    else:
        if sigma.rows:
            return sigma
        reason = f"fewer than two texts have {min(settings.sigma_lengths)} tokens."
    return note(f"Left out, sigma_a by length over {corpus.name}: {reason}", plan.staging)
