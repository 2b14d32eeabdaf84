"""Sub-flow: what helps against the audit's severe tokens. Remedies -> task scores with and without copies; losses."""

from __future__ import annotations

from typing import Any

import numpy as np
from prefect import flow

from embaudit.errors import NotMeasurable
from embaudit.measures.mitigation.remedies import SPACES
from embaudit.measures.mitigation.settings import NONE, MitigationSettings, Remedy
from embaudit.measures.sticky.plan import choose_controls, eligible_tokens
from embaudit.measures.sticky.settings import StickySettings
from embaudit.warehouse.stage import read_rows
from embaudit_flows.plan import AuditPlan
from embaudit_flows.severe import severe_tokens
from embaudit_flows.sticky import measured_on
from embaudit_tasks.downstream import corpora_of, notes_of, task_material
from embaudit_tasks.impact import CLEAN, NEVER_POISONED, PoisonedSide, impact_vectors
from embaudit_tasks.mitigation import (
    MeasuredTokens,
    Sides,
    Treated,
    mitigated_vectors,
    mitigation_losses,
    mitigation_scores,
    possible_remedies,
)
from embaudit_tasks.results import Staged, StagedCorpus, note
from embaudit_tasks.sticky_files import Sample
from embaudit_tasks.vocabulary import read_tokens

NO_SENTENCES = "Left out, losses under remedies: they need sentences too (--corpus sts=FILE, or the measure sticky)."
Material = tuple[StagedCorpus, Staged, Treated]


@flow(name="mitigation", flow_run_name="mitigation of sticky tokens of {plan.source}", persist_result=False)
def mitigation(plan: AuditPlan, ingested: dict[str, StagedCorpus], earlier: list[Staged] | None = None) -> list[Staged]:
    """Every remedy on every task, and losses under it; only a note if no token is severe."""
    settings = plan.profile.of(MitigationSettings)
    (tokens,) = read_tokens(plan.staging, plan.spec)
    entries = {row["token_id"]: row for row in read_rows([tokens.path])}
    severe = severe_tokens(plan, settings.tokens, settings.severity, entries, earlier or [])
    if not severe:
        return [note("Nothing to mitigate: the search found no severe token that a text can hold.", plan.staging)]
    worst = severe[: settings.tokens_per_arm]
    names = {token_id: entry["token"] for token_id, entry in entries.items()}
    files: list[Staged] = [tokens]
    materials: list[Material] = []
    for name in settings.corpora:
        corpora = corpora_of(name, ingested)
        try:
            (material,) = task_material(plan.staging, plan.spec, corpora, settings, plan.seed)
            untreated = _untreated(plan, corpora[0], material, worst, names)
        except NotMeasurable as error:
            files.append(note(f"Left out, mitigation on {name}: {error.happened}", plan.staging))
            continue
        files += notes_of(corpora, material, settings, plan.staging)
        materials.append((corpora[0], material, untreated))
    fitted_on = [
        part for *_, untreated in materials for side, part in untreated[CLEAN].items() if side != NEVER_POISONED
    ]
    texts = sum(part.rows for part in fitted_on)
    refused = possible_remedies(plan.spec, severe, list(settings.remedies), texts)
    files += [note(f"Left out, {remedy}: {why}", plan.staging) for remedy, why in refused.items()]
    remedies = [remedy for remedy in settings.remedies if remedy not in refused]
    for corpus, material, untreated in materials:
        by_remedy = {NONE: untreated}
        for remedy in remedies:
            if remedy not in SPACES:
                by_remedy[remedy] = _treated(plan, corpus, material, untreated, severe, remedy, names)
        spaces: list[Remedy] = [remedy for remedy in remedies if remedy in SPACES]
        files += [
            material,
            *(part for treated in by_remedy.values() for sides in treated.values() for part in sides.values()),
        ]
        files += mitigation_scores(plan.staging, corpus, material, by_remedy, spaces, fitted_on, settings, plan.seed)
    if not set(plan.profile.of(StickySettings).corpora) <= ingested.keys():
        return [*files, note(NO_SENTENCES, plan.staging)]
    _, _, sample = measured_on(plan, ingested)
    return files + _losses(plan, settings, sample, severe, entries, remedies, fitted_on)


def _untreated(
    plan: AuditPlan, corpus: StagedCorpus, material: Staged, worst: list[int], names: dict[int, str]
) -> Treated:
    """Vectors of all sides without copies, and, of the sides that may have copies, with each token."""

    def encode(side: str, token: int | None) -> Staged:
        one = PoisonedSide.of(material, side, token, names, corpus.name, plan.seed)
        return impact_vectors(plan.staging, plan.spec, one)[0]

    sides = material.detail["sides"]
    held = [side for side in sides if side != NEVER_POISONED]
    return {
        CLEAN: {side: encode(side, None) for side in sides},
        **{str(token): {side: encode(side, token) for side in held} for token in worst},
    }


def _treated(
    plan: AuditPlan,
    corpus: StagedCorpus,
    material: Staged,
    untreated: Treated,
    severe: list[int],
    remedy: Any,
    names: dict[int, str],
) -> Treated:
    def encode(side: str, arm: str, before: Staged) -> Staged:
        token = None if arm == CLEAN else int(arm)
        one = PoisonedSide.of(material, side, token, names, corpus.name, plan.seed)
        return mitigated_vectors(plan.staging, plan.spec, one, before, severe, remedy)[0]

    def sides_of(arm: str, sides: Sides) -> Sides:
        return {side: encode(side, arm, before) for side, before in sides.items()}

    return {arm: sides_of(arm, sides) for arm, sides in untreated.items()}


def _losses(
    plan: AuditPlan,
    settings: MitigationSettings,
    sample: Sample,
    severe: list[int],
    entries: dict[int, dict[str, Any]],
    remedies: list[Any],
    fitted_on: list[Staged],
) -> list[Staged]:
    search = plan.profile.of(StickySettings)
    watched = severe[: settings.loss_tokens]
    vocabulary = list(entries.values())
    controls = choose_controls(vocabulary, np.array(severe), search.controls, plan.seed)
    eligible = eligible_tokens(vocabulary)
    count = min(settings.vocabulary, len(eligible))
    drawn = np.sort(np.random.default_rng([plan.seed, len(eligible)]).choice(eligible, size=count, replace=False))
    measured = MeasuredTokens(
        watched={str(token): entries[token]["token"] for token in watched},
        controls=controls.tolist(),
        drawn=drawn.tolist(),
    )
    return mitigation_losses(
        plan.staging,
        plan.spec,
        sample,
        severe,
        measured,
        remedies,
        fitted_on,
        settings,
    )
