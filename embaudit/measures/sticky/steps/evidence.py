"""Evidence for the verdicts, as steps: dose, similarity shifts, attention, enrichment, shape of token similarities."""

from __future__ import annotations

import numpy as np

from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.baseline import input_embeddings
from embaudit.measures.sticky.evidence import attention as received
from embaudit.measures.sticky.evidence import dose as doses
from embaudit.measures.sticky.evidence import enrichment as origins
from embaudit.measures.sticky.evidence import shape as shapes
from embaudit.measures.sticky.evidence import shift
from embaudit.measures.sticky.steps.files import Sample, read_pairs
from embaudit.measures.sticky.tables import (
    StickyAttentionRow,
    StickyDoseRow,
    StickyEnrichmentRow,
    StickyShapeRow,
    StickyShiftRow,
)
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step


@step(
    "sticky",
    version=doses.MEASURE_VERSION,
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


@step("sticky", version=shift.MEASURE_VERSION, tables=(StickyShiftRow,), name="similarity shifts")
def shifts(out: Outputs, spec: CheckpointSpec, sample: Sample, tokens: list[int], controls: list[int]) -> None:
    """The paper's first experiment, one row per token and pair (table ``sticky_shift``)."""
    encoder = encoder_of(spec)
    chosen = read_pairs(sample.pairs, "shift")
    ids = np.array([*tokens, *controls], dtype=np.int64)
    with tracked("similarity shifts", len(ids) * len({pair.second for pair in chosen})) as advance:
        before, after = shift.similarity_shifts(encoder, chosen, ids, sample.copies, sample.seed, advance)
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
