"""Evidence for the verdicts, as steps: dose, similarity shifts, attention and enrichment of the worst tokens.

So is the shape of the similarities of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from embaudit.measures.run import Run
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.baseline import input_embeddings
from embaudit.measures.sticky.evidence import attention as received
from embaudit.measures.sticky.evidence import enrichment as origins
from embaudit.measures.sticky.evidence import shape as doses
from embaudit.measures.sticky.evidence import shape as shapes
from embaudit.measures.sticky.plan import SearchFound
from embaudit.measures.sticky.steps.files import Sample, read_pairs
from embaudit.measures.sticky.steps.reference import measure_reference
from embaudit.measures.sticky.tables import (
    StickyAttentionRow,
    StickyDoseRow,
    StickyEnrichmentRow,
    StickyShapeRow,
    StickyShiftRow,
)
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, Step, step
from embaudit.words.errors import NotMeasurable


@step(
    "sticky",
    version=doses.DOSE_VERSION,
    tables=(StickyDoseRow,),
    name="dose of the worst tokens",
    reads=("doses", "dose_draws"),
)
def dose(
    out: Outputs,
    spec: CheckpointSpec,
    sample: Sample,
    tokens: list[int],
    controls: list[int],
    settings: StickySettings,
) -> None:
    """Pull and retention at each number of copies (table ``sticky_dose``)."""
    encoder = encoder_of(spec)
    fitting = doses.doses_that_fit(encoder.checkpoint, settings.doses)
    draws = min(settings.dose_draws, len(sample.sentence_set("validation").draws))
    work = (len(tokens) + len(controls)) * len(fitting) * draws
    with tracked("dose of the worst tokens", work) as advance:
        rows = doses.dose_rows(
            encoder,
            lambda copies: sample.points(encoder, "validation", copies=copies, draws=draws),
            np.array(tokens, dtype=np.int64),
            np.array(controls, dtype=np.int64),
            settings.doses,
            advance,
        )
    out.rows(StickyDoseRow, rows, encodes=encoder.texts)


@step("sticky", version=doses.SHIFT_VERSION, tables=(StickyShiftRow,), name="similarity shifts")
def shifts(out: Outputs, spec: CheckpointSpec, sample: Sample, tokens: list[int], controls: list[int]) -> None:
    """The paper's first experiment, one row per token and pair (table ``sticky_shift``)."""
    encoder = encoder_of(spec)
    chosen = read_pairs(sample.pairs, "shift")
    ids = np.array([*tokens, *controls], dtype=np.int64)
    with tracked("similarity shifts", len(ids) * len({pair.second for pair in chosen})) as advance:
        before, after = doses.similarity_shifts(encoder, chosen, ids, sample.copies, sample.seed, advance)
    blocks = (
        {
            "token_id": np.full(len(chosen), token),
            "role": ["sticky" if place < len(tokens) else "ordinary"] * len(chosen),
            "position": np.arange(len(chosen)),
            "before": before,
            "after": after[place],
        }
        for place, token in enumerate(ids)
    )
    out.columns(StickyShiftRow, blocks, encodes=encoder.texts)


@step(
    "sticky",
    version=received.MEASURE_VERSION,
    tables=(StickyAttentionRow,),
    name="attention received",
    reads=("attention_sentences", "permutations"),
)
def attention(
    out: Outputs,
    spec: CheckpointSpec,
    sample: Sample,
    tokens: list[int],
    specials: list[int],
    controls: list[int],
    settings: StickySettings,
) -> None:
    """Attention that sticky and ordinary tokens receive, layer by layer (table ``sticky_attention``)."""
    encoder = encoder_of(spec)
    sentences = sample.sentence_set("validation").draws[: settings.attention_sentences]
    ids = np.array([*tokens, *controls], dtype=np.int64)
    with tracked("attention received", len(ids) * len(sentences)) as advance:
        shares = received.attention_received(encoder, sentences, ids, sample.seed, advance)
    is_sticky, is_special = np.arange(len(ids)) < len(tokens), np.isin(ids, specials)
    rows = received.compare_attention(shares, is_sticky, is_special, settings.permutations, sample.seed)
    out.rows(StickyAttentionRow, rows, encodes=encoder.texts)


@step(
    "sticky",
    version=origins.MEASURE_VERSION,
    tables=(StickyEnrichmentRow,),
    name="where sticky tokens come from",
)
def enrichment(out: Outputs, tokens: Staged, searched: list[int], selections: dict[str, list[int]]) -> None:
    """Origins, scripts and embeddings of sticky and of all searched tokens (table ``sticky_enrichment``)."""
    out.rows(StickyEnrichmentRow, origins.enrichment_rows(read_rows([tokens.path]), set(searched), selections))


@step("sticky", version=shapes.MEASURE_VERSION, tables=(StickyShapeRow,), name="shape of token similarities")
def sticky_shape(out: Outputs, spec: CheckpointSpec, tokens: Staged) -> None:
    """How the similarities of a sample of the vocabulary are distributed (table ``sticky_shape``)."""
    encoder = encoder_of(spec)
    # As for u: an id without a string is not a vocabulary entry.
    named = [row for row in read_rows([tokens.path]) if row["token"]]
    sampled = [named[place] for place in shapes.sample_tokens(len(named))]
    with tracked("shape of token similarities", len(sampled)) as advance:
        vectors = {
            "text": encoder.encode_ids(encoder.tokenize([row["token"] for row in sampled]), advance),
            "input_embeddings": input_embeddings(encoder)[[row["token_id"] for row in sampled]],
        }
    found = {space: shapes.similarity_shape(rows) for space, rows in vectors.items()}
    out.rows(StickyShapeRow, [{"space": space, **row} for space, row in found.items() if row], encodes=encoder.texts)


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
