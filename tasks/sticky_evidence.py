"""What stands behind the verdicts, as steps: dose, similarity shifts, attention, enrichment."""

from __future__ import annotations

import numpy as np

from embaudit.measures.sticky.evidence import attention as received
from embaudit.measures.sticky.evidence import dose as doses
from embaudit.measures.sticky.evidence import enrichment as origins
from embaudit.measures.sticky.evidence import shift
from embaudit.measures.sticky.settings import StickySettings
from embaudit.measures.sticky.tables import StickyAttentionRow, StickyDoseRow, StickyEnrichmentRow, StickyShiftRow
from embaudit.warehouse.stage import read_rows
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CheckpointSpec, Staged, encoder_of
from embaudit_tasks.steps import Outputs, step
from embaudit_tasks.sticky_files import read_pairs, read_similarity


@step(
    "sticky",
    version=doses.MEASURE_VERSION,
    tables=(StickyDoseRow,),
    name="dose of the worst tokens",
    reads=("doses", "dose_pairs"),
)
def dose(
    out: Outputs,
    spec: CheckpointSpec,
    pairs: Staged,
    similarity: Staged,
    tokens: list[int],
    controls: list[int],
    settings: StickySettings,
    seed: int,
) -> None:
    """Pull and retention at each number of copies (table ``sticky_dose``)."""
    encoder = encoder_of(spec)
    validation = read_pairs(pairs, "validation")
    fitting = doses.doses_that_fit(encoder.checkpoint, settings.doses)
    work = (len(tokens) + len(controls)) * len(fitting) * min(settings.dose_pairs, len(validation))
    with tracked("dose of the worst tokens", work) as advance:
        rows = doses.dose_rows(
            encoder,
            validation,
            np.array(tokens, dtype=np.int64),
            np.array(controls, dtype=np.int64),
            read_similarity(similarity)["u"],
            settings.doses,
            settings.dose_pairs,
            seed,
            advance,
        )
    out.rows(StickyDoseRow, rows, encodes=encoder.texts)


@step("sticky", version=shift.MEASURE_VERSION, tables=(StickyShiftRow,), name="similarity shifts", reads=("copies",))
def shifts(
    out: Outputs,
    spec: CheckpointSpec,
    pairs: Staged,
    tokens: list[int],
    controls: list[int],
    settings: StickySettings,
    seed: int,
) -> None:
    """The paper's first experiment, one row per token and pair (table ``sticky_shift``)."""
    encoder = encoder_of(spec)
    chosen = read_pairs(pairs, "shift")
    ids = np.array([*tokens, *controls], dtype=np.int64)
    with tracked("similarity shifts", len(ids) * len({pair.second for pair in chosen})) as advance:
        before, after = shift.similarity_shifts(encoder, chosen, ids, settings.copies, seed, advance)
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
    pairs: Staged,
    tokens: list[int],
    specials: list[int],
    controls: list[int],
    settings: StickySettings,
    seed: int,
) -> None:
    """Attention that sticky and ordinary tokens receive, layer by layer (table ``sticky_attention``)."""
    encoder = encoder_of(spec)
    sentences = [pair.second for pair in read_pairs(pairs, "validation")][: settings.attention_sentences]
    ids = np.array([*tokens, *controls], dtype=np.int64)
    with tracked("attention received", len(ids) * len(sentences)) as advance:
        shares = received.attention_received(encoder, sentences, ids, seed, advance)
    is_sticky, is_special = np.arange(len(ids)) < len(tokens), np.isin(ids, specials)
    rows = received.compare_attention(shares, is_sticky, is_special, settings.permutations, seed)
    out.rows(StickyAttentionRow, rows, encodes=encoder.texts)


@step(
    "sticky",
    version=origins.MEASURE_VERSION,
    tables=(StickyEnrichmentRow,),
    name="where sticky tokens come from",
)
def enrichment(out: Outputs, tokens: Staged, scored: Staged, selections: dict[str, list[int]]) -> None:
    """Origins, scripts and embeddings of sticky tokens against the scanned vocabulary (table ``sticky_enrichment``)."""
    scanned = {row["token_id"] for row in read_rows([scored.path])}
    out.rows(StickyEnrichmentRow, origins.enrichment_rows(read_rows([tokens.path]), scanned, selections))
