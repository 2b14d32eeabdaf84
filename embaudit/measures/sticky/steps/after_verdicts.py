"""Evidence for the verdicts: dose, shifts, attention, enrichment of the worst tokens; the shape of similarities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from embaudit.measures.run import Run
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.steps.evidence import attention, dose, enrichment, shifts, sticky_shape
from embaudit.measures.sticky.steps.files import Sample
from embaudit.measures.sticky.steps.reference import measure_reference
from embaudit.measures.sticky.tally import SearchFound
from embaudit.steps.results import Staged, StagedCorpus
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Step
from embaudit.words.errors import NotMeasurable


@dataclass(frozen=True)
class StickyFiles:
    """Results of the preceding steps; ``verdicts`` is the file of ``sticky_validation``."""

    tokens: Staged
    sample: Sample
    scored: Staged
    verdicts: Staged
    corpus: StagedCorpus
    searched: np.ndarray
    controls: np.ndarray
    given: dict[str, Staged]


def evidence(run: Run, found: StickyFiles) -> list[Staged]:
    """All tables of evidence; none of them changes a verdict."""
    settings = run.settings(StickySettings)
    worst = _worst_first(found.verdicts)

    def measured(step: Step[...], count: int, **arguments: Any) -> list[Staged]:
        if not count:
            return []
        # At random, not the first ones: in many vocabularies the lowest ids are the most frequent words.
        drawn = np.random.default_rng([run.seed, 4]).permutation(found.controls)[:count]
        chosen = {"tokens": worst[:count], "controls": np.sort(drawn).tolist()}
        return _or_note(run, step, spec=run.spec, sample=found.sample, **chosen, **arguments)

    specials = [row["token_id"] for row in read_rows([found.tokens.path]) if row["category"] == "special"]
    staged = [
        *measured(dose, settings.dose_tokens, settings=settings),
        *measured(shifts, settings.shift_tokens),
        *measured(attention, settings.attention_tokens, settings=settings, specials=specials),
        *run(sticky_shape, run.spec, found.tokens),
        *run(enrichment, found.tokens, found.searched.tolist(), _selections(found)),
    ]
    if settings.reference:
        staged += measure_reference(run, found.corpus, found.tokens, found.sample.similarity, found.given)
    return staged


def _or_note(run: Run, step: Step[...], **arguments: Any) -> list[Staged]:
    """A step's files, or a note if it cannot be measured here (no attention weights, no room for a dose)."""
    try:
        return run(step, **arguments)
    except NotMeasurable as error:
        return [run.skipped(step.name, error)]


def _selections(found: StickyFiles) -> dict[str, list[int]]:
    """Token ids by the name of the selection, for comparison with the scanned vocabulary."""
    candidates = [row for row in read_rows([found.verdicts.path]) if row["role"] == "candidate"]
    return {
        "lowest_100": sorted(found.scored.found(SearchFound).lowest),
        **{
            f"sticky_{protocol}": [
                row["token_id"] for row in candidates if row["protocol"] == protocol and row["outlier"] == "yes"
            ]
            for protocol in ("definition", "retention")
        },
        "strong_or_moderate": [
            row["token_id"]
            for row in candidates
            if row["protocol"] == "retention" and row["severity"] in ("strong", "moderate")
        ],
    }


def _worst_first(verdicts: Staged) -> list[int]:
    rows = [row for row in read_rows([verdicts.path]) if row["role"] == "candidate" and row["protocol"] == "retention"]
    return [row["token_id"] for row in sorted(rows, key=lambda row: (-row["loss"], row["token_id"]))]
