"""Sub-flow: does a lower attention temperature help? Texts -> vectors at each τ -> scores and choices, by corpus."""

from __future__ import annotations

from prefect import flow

from embaudit.corpora.judged import DOCUMENTS, QUERIES
from embaudit.errors import NotMeasurable
from embaudit.measures.tempscale.settings import TempscaleSettings
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.downstream import task_material
from embaudit_tasks.results import Staged, StagedCorpus, note
from embaudit_tasks.tempscale import tempscale_scores, tempscale_support, tempscale_vectors


@flow(name="attention temperature", flow_run_name="temperatures of {plan.source}", persist_result=False)
def tempscale(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """Every arm of every task; a corpus that allows no task is a note."""
    staged: list[Staged] = []
    for name in plan.profile.of(TempscaleSettings).corpora:
        corpora = [ingested[name]] + ([ingested[QUERIES]] if name == DOCUMENTS else [])
        try:
            staged += _one_corpus(plan, corpora)
        except NotMeasurable as error:
            staged.append(note(f"Left out, temperatures on {name}: {error.happened}", plan.staging))
    return staged


def _one_corpus(plan: AuditPlan, corpora: list[StagedCorpus]) -> list[Staged]:
    settings, corpus = plan.profile.of(TempscaleSettings), corpora[0]
    (material,) = task_material(plan.staging, plan.spec, corpora, settings, plan.seed)
    (support,) = tempscale_support(plan.staging, plan.spec)
    encoded: list[Staged] = []

    def encode(side: str, tau: float, in_pieces: bool) -> Staged:
        encoded.extend(
            tempscale_vectors(plan.staging, plan.spec, corpus.name, material, side, tau, in_pieces, settings)
        )
        return encoded[-1]

    sides = material.detail["sides"]
    unsupported = support.detail["unsupported"]
    grid = [1.0] if unsupported else settings.grid
    by_tau = {repr(tau): {side: encode(side, tau, False) for side in sides} for tau in grid}
    in_pieces = {side: encode(side, 1.0, True) for side in sides}
    scored = tempscale_scores(
        plan.staging, plan.spec, corpus, material, by_tau, in_pieces, unsupported, settings, plan.seed
    )
    return [material, *encoded, *scored, *_left_out(plan, corpus.name, material.detail["left_out"])]


def _left_out(plan: AuditPlan, corpus: str, classes: list[str]) -> list[Staged]:
    """A line for the audit's end where classes had to be left out."""
    if not classes:
        return []
    named = ", ".join(classes[:5]) + (" …" if len(classes) > 5 else "")
    fewest = 2 * plan.profile.of(TempscaleSettings).folds
    return [note(f"Temperatures on {corpus} leave out classes of fewer than {fewest} texts: {named}.", plan.staging)]
