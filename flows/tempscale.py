"""Sub-flow: does a lower attention temperature help? Texts -> vectors at each τ -> scores and choices, by corpus.

If requested, a search for one τ per layer or head starts from the best single τ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from prefect import flow

from embaudit.errors import NotMeasurable
from embaudit.measures.tempscale.search import Part, Taus, descend
from embaudit.measures.tempscale.settings import TempscaleSettings
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.downstream import corpora_of, notes_of, task_material
from embaudit_tasks.results import Staged, StagedCorpus, note
from embaudit_tasks.tempscale import tempscale_scores, tempscale_support, tempscale_vectors
from embaudit_tasks.tempscale_search import tempscale_parts, tempscale_searched, tempscale_trial


@flow(name="attention temperature", flow_run_name="temperatures of {plan.source}", persist_result=False)
def tempscale(plan: AuditPlan, ingested: dict[str, StagedCorpus]) -> list[Staged]:
    """Scores of every arm of every task; a corpus that allows no task is left out with a note."""
    staged: list[Staged] = []
    for name in plan.profile.of(TempscaleSettings).corpora:
        corpora = corpora_of(name, ingested)
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

    def encode(tau: float | dict[Part, list[float]], in_pieces: bool = False) -> dict[str, Staged]:
        found = {
            side: tempscale_vectors(plan.staging, plan.spec, corpus.name, material, side, tau, in_pieces, settings)[0]
            for side in material.detail["sides"]
        }
        encoded.extend(found.values())
        return found

    unsupported = support.detail["unsupported"]
    by_tau = {repr(tau): encode(tau) for tau in ([1.0] if unsupported else settings.grid)}
    in_pieces = encode(1.0, in_pieces=True)
    scored = tempscale_scores(
        plan.staging, plan.spec, corpus, material, by_tau, in_pieces, unsupported, settings, plan.seed
    )
    searched = [] if unsupported else _search(plan, corpus, material, by_tau, scored[-1].detail["single"], encode)
    return [material, *encoded, *scored, *searched, *notes_of(corpora, material, settings, plan.staging)]


def _search(
    plan: AuditPlan,
    corpus: StagedCorpus,
    material: Staged,
    by_tau: dict[str, dict[str, Staged]],
    single: dict[str, float | None],
    encode: Callable[[dict[Part, list[float]]], dict[str, Staged]],
) -> list[Staged]:
    """Search for one τ per part, from each task's best single τ; a note if parts cannot have their own."""
    settings = plan.profile.of(TempscaleSettings)
    found: list[dict[str, Any]] = []
    notes: list[Staged] = []

    def search(part: Part, parts: int) -> None:
        @cache
        def tried(taus: Taus) -> tuple[dict[str, Staged], dict[str, float | None]]:
            vectors = by_tau[repr(taus[0])] if len(set(taus)) == 1 else encode({part: list(taus)})
            (trial,) = tempscale_trial(plan.staging, corpus.name, material, vectors, settings, plan.seed)
            return vectors, trial.detail["scores"]

        def of_task(task: str, tau: float) -> dict[str, Any]:
            taus, trials = descend((tau,) * parts, settings.grid, lambda taus: tried(taus)[1][task])
            vectors = [by_tau["1.0"], by_tau[repr(tau)], tried(taus)[0]]
            return {"task": task, "part": part, "tau": tau, "taus": list(taus), "trials": trials, "vectors": vectors}

        found.extend(of_task(task, tau) for task, tau in single.items() if tau is not None)

    for part in settings.by:
        (support,) = tempscale_parts(plan.staging, plan.spec, part)
        if support.detail["refused"] is None:
            search(part, support.detail["parts"])
        else:
            why = f"Left out, temperatures by {part} on {corpus.name}: {support.detail['refused']}"
            notes.append(note(why, plan.staging))
    return notes + (
        tempscale_searched(plan.staging, plan.spec, corpus, material, found, settings, plan.seed) if found else []
    )
