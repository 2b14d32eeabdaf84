"""What stands behind the verdicts, as tasks: dose, similarity shifts, attention, enrichment."""

from __future__ import annotations

import time

from prefect import task

from embaudit.measures.sticky.settings import StickySettings
from embaudit.measures.sticky.tables import StickyAttentionRow, StickyDoseRow, StickyEnrichmentRow, StickyShiftRow
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of
from embaudit_tasks.sticky_files import MEASURE, read_pairs, read_similarity, stage


@task(name="dose of the worst tokens", **CACHED)
def dose(
    spec: CheckpointSpec,
    pairs_path: str,
    similarity_path: str,
    tokens: list[int],
    controls: list[int],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """Pull and retention at each number of copies (table ``sticky_dose``)."""
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.evidence.dose import dose_rows, doses_that_fit

    started = time.perf_counter()
    encoder = Encoder(checkpoint_of(spec))
    pairs = read_pairs(pairs_path, "validation")
    fitting = doses_that_fit(encoder.checkpoint, settings.doses)
    work = (len(tokens) + len(controls)) * len(fitting) * min(settings.dose_pairs, len(pairs))
    with tracked("dose of the worst tokens", work) as advance:
        rows = dose_rows(
            encoder,
            pairs,
            np.array(tokens, dtype=np.int64),
            np.array(controls, dtype=np.int64),
            read_similarity(similarity_path)["u"],
            settings.doses,
            settings.dose_pairs,
            seed,
            advance,
        )
    return stage("sticky_dose", rows, StickyDoseRow.table.schema, key, staging, started=started, encodes=encoder.texts)


@task(name="similarity shifts", **CACHED)
def shifts(
    spec: CheckpointSpec,
    pairs_path: str,
    tokens: list[int],
    controls: list[int],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """The paper's first experiment, one row a token and pair (table ``sticky_shift``)."""
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.evidence.shift import similarity_shifts
    from embaudit.warehouse.stage import staged_path, write_columns

    started = time.perf_counter()
    encoder = Encoder(checkpoint_of(spec))
    pairs = read_pairs(pairs_path, "shift")
    ids = np.array([*tokens, *controls], dtype=np.int64)
    with tracked("similarity shifts", len(ids) * len({pair.second for pair in pairs})) as advance:
        before, after = similarity_shifts(encoder, pairs, ids, settings.copies, seed, advance)
    blocks = (
        {
            "token_id": np.full(len(pairs), token),
            "role": ["sticky" if place < len(tokens) else "ordinary"] * len(pairs),
            "position": np.arange(len(pairs)),
            "before": before,
            "after": after[place],
        }
        for place, token in enumerate(ids)
    )
    path = staged_path(staging, MEASURE, key, "sticky_shift")
    count = write_columns(path, blocks, StickyShiftRow.table.schema)
    return Staged(
        table="sticky_shift", path=str(path), rows=count, seconds=time.perf_counter() - started, encodes=encoder.texts
    )


@task(name="attention received", **CACHED)
def attention(
    spec: CheckpointSpec,
    pairs_path: str,
    tokens: list[int],
    specials: list[int],
    controls: list[int],
    settings: StickySettings,
    seed: int,
    key: str,
    staging: str,
) -> Staged:
    """Attention that sticky and ordinary tokens receive, layer by layer (table ``sticky_attention``)."""
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.evidence.attention import attention_received, compare_attention

    started = time.perf_counter()
    encoder = Encoder(checkpoint_of(spec))
    sentences = [pair.second for pair in read_pairs(pairs_path, "validation")][: settings.attention_sentences]
    ids = np.array([*tokens, *controls], dtype=np.int64)
    with tracked("attention received", len(ids) * len(sentences)) as advance:
        received = attention_received(encoder, sentences, ids, seed, advance)
    rows = compare_attention(
        received, np.arange(len(ids)) < len(tokens), np.isin(ids, specials), settings.permutations, seed
    )
    return stage(
        "sticky_attention", rows, StickyAttentionRow.table.schema, key, staging, started=started, encodes=encoder.texts
    )


@task(name="where sticky tokens come from", **CACHED)
def enrichment(
    spec: CheckpointSpec, tokens_path: str, score_path: str, selections: dict[str, list[int]], key: str, staging: str
) -> Staged:
    """Origins, scripts and embeddings of sticky tokens against the scanned vocabulary (table ``sticky_enrichment``)."""
    from embaudit.measures.sticky.evidence.enrichment import enrichment_rows
    from embaudit.warehouse.stage import read_rows

    scanned = {row["token_id"] for row in read_rows([score_path])}
    rows = enrichment_rows(read_rows([tokens_path]), scanned, selections)
    return stage("sticky_enrichment", rows, StickyEnrichmentRow.table.schema, key, staging)
