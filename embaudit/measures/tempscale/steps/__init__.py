"""The steps of tempscale: does a lower attention temperature help? Texts -> vectors at each τ -> scores and choices.

If requested, a search for one τ per layer or head starts from the best single τ.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from embaudit.measures.run import Run
from embaudit.measures.task_material import corpora_of, notes_of, sides_of, task_material
from embaudit.measures.tempscale import Part, TempscaleSettings
from embaudit.measures.tempscale.compare import Taus, descend
from embaudit.measures.tempscale.steps.temperatures import (
    BestTaus,
    PartSupport,
    TemperatureSupport,
    TrialScores,
    tempscale_parts,
    tempscale_scores,
    tempscale_searched,
    tempscale_support,
    tempscale_trial,
    tempscale_vectors,
)
from embaudit.steps.results import Staged, StagedCorpus
from embaudit.words.errors import NotMeasurable


def measure(run: Run) -> list[Staged]:
    """Scores of every arm of every task; a corpus that allows no task is left out with a note."""
    staged: list[Staged] = []
    for name in run.settings(TempscaleSettings).corpora:
        corpora = corpora_of(name, run.corpora)
        try:
            staged += _one_corpus(run, corpora)
        except NotMeasurable as error:
            staged.append(run.skipped(f"temperatures on {name}", error))
    return staged


def _one_corpus(run: Run, corpora: list[StagedCorpus]) -> list[Staged]:
    settings, corpus = run.settings(TempscaleSettings), corpora[0]
    (material,) = run(task_material, run.spec, corpora, settings, run.seed)
    (support,) = run(tempscale_support, run.spec)
    encoded: list[Staged] = []

    def encode(tau: float | dict[Part, list[float]], in_pieces: bool = False) -> dict[str, Staged]:
        found = {
            side: run(tempscale_vectors, run.spec, corpus.name, material, side, tau, in_pieces, settings)[0]
            for side in sides_of(material)
        }
        encoded.extend(found.values())
        return found

    unsupported = support.found(TemperatureSupport).unsupported
    by_tau = {repr(tau): encode(tau) for tau in ([1.0] if unsupported else settings.grid)}
    in_pieces = encode(1.0, in_pieces=True)
    scored = run(tempscale_scores, run.spec, corpus, material, by_tau, in_pieces, unsupported, settings, run.seed)
    searched = [] if unsupported else _search(run, corpus, material, by_tau, scored[-1].found(BestTaus).single, encode)
    return [material, *encoded, *scored, *searched, *notes_of(run, corpora, material, settings)]


def _search(
    run: Run,
    corpus: StagedCorpus,
    material: Staged,
    by_tau: dict[str, dict[str, Staged]],
    single: dict[str, float | None],
    encode: Callable[[dict[Part, list[float]]], dict[str, Staged]],
) -> list[Staged]:
    """Search for one τ per part, from each task's best single τ; a note if parts cannot have their own."""
    settings = run.settings(TempscaleSettings)
    found: list[dict[str, Any]] = []
    notes: list[Staged] = []

    def search(part: Part, parts: int) -> None:
        @cache
        def tried(taus: Taus) -> tuple[dict[str, Staged], dict[str, float | None]]:
            vectors = by_tau[repr(taus[0])] if len(set(taus)) == 1 else encode({part: list(taus)})
            (trial,) = run(tempscale_trial, corpus.name, material, vectors, settings, run.seed)
            return vectors, trial.found(TrialScores).scores

        def of_task(task: str, tau: float) -> dict[str, Any]:
            taus, trials = descend((tau,) * parts, settings.grid, lambda taus: tried(taus)[1][task])
            vectors = [by_tau["1.0"], by_tau[repr(tau)], tried(taus)[0]]
            return {"task": task, "part": part, "tau": tau, "taus": list(taus), "trials": trials, "vectors": vectors}

        found.extend(of_task(task, tau) for task, tau in single.items() if tau is not None)

    for part in settings.by:
        (counted,) = run(tempscale_parts, run.spec, part)
        support = counted.found(PartSupport)
        if support.refused is None:
            search(part, support.parts)
        else:
            notes.append(run.note(f"Skipped temperatures by {part} on {corpus.name}: {support.refused}"))
    return notes + (run(tempscale_searched, run.spec, corpus, material, found, settings, run.seed) if found else [])
