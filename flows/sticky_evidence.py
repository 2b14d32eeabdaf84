"""What stands behind the verdicts: dose, similarity shifts, attention and enrichment of the worst tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from prefect import Task

from embaudit.errors import NotMeasurable
from embaudit.measures.sticky.evidence import attention, dose, enrichment, shift
from embaudit.measures.sticky.settings import StickySettings
from embaudit.warehouse.stage import read_rows
from embaudit_flows.cached import pooled, run_cached
from embaudit_flows.keys import name_of
from embaudit_flows.plan import AuditPlan
from embaudit_flows.reference import reference
from embaudit_tasks import sticky_evidence as tasks
from embaudit_tasks.results import Staged, StagedCorpus, note


@dataclass(frozen=True)
class Found:
    """What the steps before found; ``verdicts`` is the file of ``sticky_validation``."""

    tokens: Staged
    similarity: Staged
    pairs: Staged
    scored: Staged
    verdicts: Staged
    corpus: StagedCorpus
    controls: np.ndarray


def evidence(plan: AuditPlan, found: Found) -> list[Staged]:
    """Every table beside the verdicts; none of them changes a verdict."""
    settings = plan.profile.of(StickySettings)
    worst = _worst_first(found.verdicts)
    seeded = {"settings": settings, "seed": plan.seed, "staging": plan.staging}
    paths = {"pairs_path": found.pairs.path}

    def chosen(count: int) -> dict[str, Any]:
        # Drawn, not the first: in many vocabularies low ids are the most frequent words.
        drawn = np.random.default_rng([plan.seed, 4]).permutation(found.controls)[:count]
        return {"tokens": worst[:count], "controls": np.sort(drawn).tolist()}

    def key(step: str, version: int, **inputs: Any) -> str:
        return plan.key(step, version, pairs=name_of(found.pairs), **inputs)

    staged = []
    if settings.dose_tokens:
        given = chosen(settings.dose_tokens)
        inputs = {**given, "doses": settings.doses, "most": settings.dose_pairs}
        dose_key = key("dose", dose.MEASURE_VERSION, **inputs)
        staged += _or_note(
            plan, tasks.dose, similarity_path=found.similarity.path, key=dose_key, **given, **paths, **seeded
        )
    if settings.shift_tokens:
        given = chosen(settings.shift_tokens)
        shift_key = key("shift", shift.MEASURE_VERSION, copies=settings.copies, **given)
        staged += _or_note(plan, tasks.shifts, key=shift_key, **given, **paths, **seeded)
    if settings.attention_tokens:
        staged += _attention(plan, found, chosen(settings.attention_tokens), key, {**paths, **seeded})
    staged.append(_enrichment(plan, found))
    if settings.reference:
        staged += pooled(reference)(plan, found.corpus, found.tokens, found.similarity)
    return staged


def _attention(plan: AuditPlan, found: Found, given: dict[str, Any], key: Any, shared: dict[str, Any]) -> list[Staged]:
    settings = plan.profile.of(StickySettings)
    specials = [row["token_id"] for row in read_rows([found.tokens.path]) if row["category"] == "special"]
    inputs = {**given, "sentences": settings.attention_sentences, "permutations": settings.permutations}
    attention_key = key("attention", attention.MEASURE_VERSION, **inputs)
    return _or_note(plan, tasks.attention, specials=specials, key=attention_key, **given, **shared)


def _or_note(plan: AuditPlan, task: Task[..., Any], **parameters: Any) -> list[Staged]:
    """A task's file; where it cannot be measured here (no attention weights, no room for a dose), a line to say so."""
    try:
        return [run_cached(task, plan.spec, **parameters)]
    except NotMeasurable as error:
        return [note(f"Left out, {task.name}: {error.happened}", plan.staging)]


def _enrichment(plan: AuditPlan, found: Found) -> Staged:
    candidates = [row for row in read_rows([found.verdicts.path]) if row["role"] == "candidate"]
    selections = {
        "lowest_100": sorted(found.scored.detail["lowest"]),
        **{
            f"sticky_{protocol}": [
                row["token_id"] for row in candidates if row["protocol"] == protocol and row["verdict"] == "sticky"
            ]
            for protocol in ("definition", "retention")
        },
        "strong_or_moderate": [
            row["token_id"]
            for row in candidates
            if row["protocol"] == "retention" and row["severity"] in ("strong", "moderate")
        ],
    }
    staged: Staged = run_cached(
        tasks.enrichment,
        plan.spec,
        tokens_path=found.tokens.path,
        score_path=found.scored.path,
        selections=selections,
        key=plan.key(
            "enrichment", enrichment.MEASURE_VERSION, score=name_of(found.scored), verdicts=name_of(found.verdicts)
        ),
        staging=plan.staging,
    )
    return staged


def _worst_first(verdicts: Staged) -> list[int]:
    rows = [row for row in read_rows([verdicts.path]) if row["role"] == "candidate" and row["protocol"] == "retention"]
    return [row["token_id"] for row in sorted(rows, key=lambda row: (-row["loss"], row["token_id"]))]
