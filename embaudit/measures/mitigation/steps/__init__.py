"""The steps of mitigation: what helps against severe tokens. Remedies -> scores with and without copies; losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from embaudit.measures.impact.steps import CLEAN, NEVER_POISONED, PoisonedSide, untreated_vectors
from embaudit.measures.mitigation import NONE, MitigationSettings, Remedy
from embaudit.measures.mitigation.remedies import SPACES
from embaudit.measures.mitigation.steps.remedies import (
    MeasuredTokens,
    Treated,
    mitigated_vectors,
    mitigation_losses,
    mitigation_scores,
    possible_remedies,
)
from embaudit.measures.run import Run
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.plan import choose_controls, eligible_tokens
from embaudit.measures.sticky.steps import measured_on
from embaudit.measures.sticky.steps.files import Sample
from embaudit.measures.sticky.steps.sentences import read_tokens
from embaudit.measures.sticky.steps.verdicts import severe_tokens
from embaudit.measures.task_material import corpora_of, notes_of, task_material
from embaudit.steps.results import Staged, StagedCorpus
from embaudit.steps.staging.stage import read_rows
from embaudit.words.errors import NotMeasurable

NO_SENTENCES = "Skipped losses under remedies: they need sentences too (--corpus sts=FILE, or the measure sticky)."
Material = tuple[StagedCorpus, Staged, Treated]


def measure(run: Run) -> list[Staged]:
    """Every remedy on every task, and losses under it; only a note if no token is severe."""
    settings = run.settings(MitigationSettings)
    (tokens,) = run(read_tokens, run.spec)
    entries = {row["token_id"]: row for row in read_rows([tokens.path])}
    severe = severe_tokens(run, settings.tokens, settings.severity, entries)
    if not severe:
        return [run.note("Nothing to mitigate: the search found no severe token that a text can contain.")]
    worst = severe[: settings.tokens_per_arm]
    names = {token_id: entry["token"] for token_id, entry in entries.items()}
    files: list[Staged] = [tokens]
    materials: list[Material] = []
    for name in settings.corpora:
        corpora = corpora_of(name, run.corpora)
        try:
            (material,) = run(task_material, run.spec, corpora, settings, run.seed)
            untreated = untreated_vectors(run, corpora[0], material, {token: names[token] for token in worst})
        except NotMeasurable as error:
            files.append(run.skipped(f"mitigation on {name}", error))
            continue
        files += notes_of(run, corpora, material, settings)
        materials.append((corpora[0], material, untreated))
    fitted_on = [
        part for *_, untreated in materials for side, part in untreated[CLEAN].items() if side != NEVER_POISONED
    ]
    texts = sum(part.rows for part in fitted_on)
    refused = possible_remedies(run.spec, severe, list(settings.remedies), texts)
    files += [run.note(f"Skipped {remedy}: {why}") for remedy, why in refused.items()]
    remedies = [remedy for remedy in settings.remedies if remedy not in refused]
    for corpus, material, untreated in materials:
        by_remedy = {NONE: untreated}
        for remedy in remedies:
            if remedy not in SPACES:
                by_remedy[remedy] = _treated(run, corpus, material, untreated, severe, remedy, names)
        spaces: list[Remedy] = [remedy for remedy in remedies if remedy in SPACES]
        files += [
            material,
            *(part for treated in by_remedy.values() for sides in treated.values() for part in sides.values()),
        ]
        files += run(mitigation_scores, corpus, material, by_remedy, spaces, fitted_on, settings, run.seed)
    if not set(run.settings(StickySettings).corpora) <= run.corpora.keys():
        return [*files, run.note(NO_SENTENCES)]
    sample = measured_on(run).sample
    return files + _losses(run, settings, sample, severe, entries, remedies, fitted_on)


def _treated(
    run: Run,
    corpus: StagedCorpus,
    material: Staged,
    untreated: Treated,
    severe: list[int],
    remedy: Any,
    names: dict[int, str],
) -> Treated:
    def encode(side: str, arm: str, before: Staged) -> Staged:
        token = None if arm == CLEAN else int(arm)
        one = PoisonedSide.of(material, side, token, names, corpus.name, run.seed)
        return run(mitigated_vectors, run.spec, one, before, severe, remedy)[0]

    return {arm: {side: encode(side, arm, of) for side, of in sides.items()} for arm, sides in untreated.items()}


def _losses(
    run: Run,
    settings: MitigationSettings,
    sample: Sample,
    severe: list[int],
    entries: dict[int, dict[str, Any]],
    remedies: list[Any],
    fitted_on: list[Staged],
) -> list[Staged]:
    search = run.settings(StickySettings)
    watched = severe[: settings.loss_tokens]
    vocabulary = list(entries.values())
    controls = choose_controls(vocabulary, np.array(severe), search.controls, run.seed)
    eligible = eligible_tokens(vocabulary)
    count = min(settings.vocabulary, len(eligible))
    drawn = np.sort(np.random.default_rng([run.seed, len(eligible)]).choice(eligible, size=count, replace=False))
    measured = MeasuredTokens(
        watched={str(token): entries[token]["token"] for token in watched},
        controls=controls.tolist(),
        drawn=drawn.tolist(),
    )
    return run(
        mitigation_losses,
        run.spec,
        sample,
        severe,
        measured,
        remedies,
        fitted_on,
        settings,
    )
