"""Sub-flow: does a lower attention temperature help? Texts -> vectors at each τ -> scores and choices, by corpus."""

from __future__ import annotations

from typing import Any

from prefect import flow

from embaudit.corpora.judged import DOCUMENTS, QUERIES
from embaudit.errors import NotMeasurable
from embaudit.measures.tempscale import MEASURE_VERSION
from embaudit.measures.tempscale.settings import TempscaleSettings
from embaudit_flows.cached import run_cached
from embaudit_flows.plan import AuditPlan
from embaudit_tasks import tempscale as tasks
from embaudit_tasks.results import Staged, StagedCorpus, note

LIMITS = ("texts", "documents", "queries", "pairs", "folds")


@flow(name="attention temperature", flow_run_name="temperatures of {plan.source}", persist_result=False)
def tempscale(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """Every arm of every task; a corpus that allows no task is a note."""
    plan = plan.in_float32()
    staged: list[Staged] = []
    for name in plan.profile.of(TempscaleSettings).corpora:
        corpora = [ingested[name]] + ([ingested[QUERIES]] if name == DOCUMENTS else [])
        try:
            staged += _one_corpus(plan, corpora)
        except NotMeasurable as error:
            staged.append(note(f"Left out, temperatures on {name}: {error.happened}", plan.staging))
    return staged


def _one_corpus(plan: AuditPlan, corpora: list[StagedCorpus]) -> list[Staged]:
    settings = plan.profile.of(TempscaleSettings)
    name, corpus_id = corpora[0].name, corpora[0].corpus_id
    contents = [corpus.corpus_id for corpus in corpora]
    limits = {limit: getattr(settings, limit) for limit in LIMITS}

    def key(step: str, **inputs: Any) -> str:
        return plan.key(f"tempscale-{step}", MEASURE_VERSION, corpora=contents, name=name, limits=limits, **inputs)

    material = run_cached(
        tasks.tempscale_material,
        plan.spec,
        corpus=name,
        paths=[corpus.content_path for corpus in corpora],
        limits=limits,
        seed=plan.seed,
        key=key("material"),
        staging=plan.staging,
    )
    encoded: list[Staged] = []

    def encode(side: str, tau: float, in_pieces: bool) -> str:
        how = {"side": side, "tau": tau, "in_pieces": in_pieces, "reads": settings.reads}
        vectors = run_cached(
            tasks.tempscale_vectors,
            plan.spec,
            corpus=name,
            material_path=material.path,
            key=key("vectors", **how),
            staging=plan.staging,
            **how,
        )
        encoded.append(vectors)
        return str(vectors.path)

    sides, unsupported = material.detail["sides"], material.detail["unsupported"]
    grid = [1.0] if unsupported else settings.grid
    by_tau = {repr(tau): {side: encode(side, tau, False) for side in sides} for tau in grid}
    in_pieces = {side: encode(side, 1.0, True) for side in sides}
    scored: list[Staged] = run_cached(
        tasks.tempscale_scores,
        plan.spec,
        corpus=name,
        corpus_id=corpus_id,
        material_path=material.path,
        by_tau=by_tau,
        in_pieces=in_pieces,
        unsupported=unsupported,
        reads=settings.reads,
        settings=settings.model_dump(mode="json"),
        seed=plan.seed,
        key=key("scores", settings=settings.model_dump(mode="json")),
        staging=plan.staging,
    )
    return [material, *encoded, *scored, *_left_out(plan, name, material.detail["left_out"])]


def _left_out(plan: AuditPlan, corpus: str, classes: list[str]) -> list[Staged]:
    """A line for the audit's end where classes had to be left out."""
    if not classes:
        return []
    named = ", ".join(classes[:5]) + (" …" if len(classes) > 5 else "")
    fewest = 2 * plan.profile.of(TempscaleSettings).folds
    return [note(f"Temperatures on {corpus} leave out classes of fewer than {fewest} texts: {named}.", plan.staging)]
