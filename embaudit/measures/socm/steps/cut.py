"""SOCM of texts cut to one length, as a step: removes the effect of the corpus's own lengths on the average."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from embaudit.corpora.draw import Draw
from embaudit.measures.socm import MEASURE_VERSION
from embaudit.measures.socm.clouds import clouds_of
from embaudit.measures.socm.nuclear import nuclear_norms_on
from embaudit.measures.socm.pairs import PairBlock, all_pairs
from embaudit.measures.socm.summary import summarise
from embaudit.measures.socm.tables import SocmCutRow
from embaudit.steps.corpora import drawn_texts
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, StagedCorpus, encoder_of
from embaudit.steps.step import Outputs, step

SHARED = (
    *("texts", "undefined", "pairs", "socm_mean", "socm_low", "socm_high", "d_mu_mean", "d_sigma_mean"),
    *("trace_mean", "share_trace_above_bound"),
)


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmCutRow,),
    name="SOCM of cut texts",
    run_name="SOCM of cut texts of {corpus.name}",
)
def socm_cut(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw, lengths: list[int]) -> None:
    """Average SOCM at each length, over all pairs of drawn texts that reach it, cut to it (table ``socm_cut``).

    A length that fewer than two defined texts reach, or that exceeds what the checkpoint reads, has no row.
    """
    encoder = encoder_of(spec)
    norms = nuclear_norms_on(spec.device)
    own = encoder.own_ids(drawn_texts(corpus.content_path, draw).texts)
    rows: list[dict[str, Any]] = []
    encodes = 0
    for tokens in lengths:
        long_enough = [ids[:tokens] for ids in own if len(ids) >= tokens]
        if tokens > encoder.checkpoint.content_limit or len(long_enough) < 2:
            continue
        sequences = [encoder.checkpoint.with_special_tokens(ids) for ids in long_enough]
        encodes += len(sequences)
        embedded = ((index, X.copy()) for index, X in encoder.token_embeddings_of_ids(sequences))
        clouds, _ = clouds_of(embedded)
        if len(clouds) < 2:
            continue
        traces = np.full(len(sequences), np.nan)
        traces[[cloud.position for cloud in clouds]] = [cloud.trace for cloud in clouds]
        planned = len(clouds) * (len(clouds) - 1) // 2
        with tracked(f"SOCM at {tokens} tokens, pairs of {corpus.name}", planned) as advance:

            def counted() -> Iterator[PairBlock]:
                for block in all_pairs(clouds, norms=norms):  # noqa: B023 - read within this iteration
                    advance(len(block.socm))
                    yield block

            summary = vars(summarise(traces, counted()))
        rows.append({"corpus": corpus.name, "tokens": tokens, **{name: summary[name] for name in SHARED}})
    out.rows(SocmCutRow, rows, encodes=encodes)
