"""SOCM's averages as steps: over all pairs of a corpus or a list, and of texts cut to one length.

The staged pairs are read batch by batch. Cutting removes the effect of the corpus's own lengths on the average.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from embaudit.corpora.draw import Draw
from embaudit.measures.socm import MEASURE_VERSION
from embaudit.measures.socm.clouds import COSINE_BOUND, TRACE_BOUND, clouds_of
from embaudit.measures.socm.lengths import LengthCells, TraceCorrelation, length_correlation
from embaudit.measures.socm.nuclear import nuclear_norms_on
from embaudit.measures.socm.pairs import PairBlock, all_pairs
from embaudit.measures.socm.steps.texts import NormAccuracy
from embaudit.measures.socm.summary import Surface, summarise
from embaudit.measures.socm.tables import SocmCutRow, SocmLengthRow, SocmSummaryRow, SocmSurfaceRow
from embaudit.steps.corpora import drawn_texts
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, checkpoint_of, encoder_of
from embaudit.steps.staging.stage import read_batches, read_rows
from embaudit.steps.step import Outputs, step

PAIR_COLUMNS = ("first", "second", "d_mu", "d_sigma", "socm")


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmSummaryRow, SocmLengthRow, SocmSurfaceRow),
    name="SOCM summary",
    run_name="SOCM summary of {corpus.name}",
)
def socm_summary(
    out: Outputs,
    spec: CheckpointSpec,
    corpus: StagedCorpus,
    pair_kind: Literal["all", "listed"],
    texts: list[Staged],
    pairs: list[Staged],
    exponents: list[float],
) -> None:
    """Averages with a jackknife interval over texts, or over the queries of a list, also with other exponents.

    Tables ``socm_summary``, ``socm_length`` and ``socm_surface``.
    """

    def blocks() -> Iterator[PairBlock]:
        for part in pairs:
            for batch in read_batches(part.path, PAIR_COLUMNS):
                columns = {name: batch.column(name).to_numpy() for name in PAIR_COLUMNS}
                # A draw leaves gaps between positions; the averages number the texts without gaps.
                numbered = {side: np.searchsorted(positions, columns[side]) for side in ("first", "second")}
                yield PairBlock(**{**columns, **numbered})

    described = sorted(read_rows([part.path for part in texts]), key=lambda row: int(row["position"]))
    positions = np.array([row["position"] for row in described])
    traces = np.array([np.nan if row["trace_sigma"] is None else row["trace_sigma"] for row in described])
    tokens = np.array([row["tokens"] for row in described])
    surface, lengths = Surface(exponents), LengthCells(tokens, traces, leave_out_firsts=pair_kind == "listed")
    correlation = TraceCorrelation(traces)
    streamed = correlation.passing(lengths.passing(surface.passing(blocks())))
    summary = summarise(traces, streamed, "texts" if pair_kind == "all" else "firsts")
    # Appendix J: for token vectors of equal length the two bounds are the same.
    both = [row for row in described if row["trace_sigma"] is not None and row["mean_cosine"] is not None]
    above = [row["mean_cosine"] >= COSINE_BOUND for row in both]
    agree = [is_above == (row["trace_sigma"] <= TRACE_BOUND) for row, is_above in zip(both, above, strict=True)]
    norms = [part.found(NormAccuracy) for part in pairs]
    row = {
        "corpus": corpus.name,
        "corpus_id": corpus.corpus_id,
        "pair_kind": pair_kind,
        **asdict(summary),
        "one_token": sum(row["tokens"] == 1 for row in described),
        "truncated": sum(row["is_truncated"] for row in described),
        "share_cosine_above_bound": sum(above) / len(both) if both else None,
        "share_bounds_agree": sum(agree) / len(both) if both else None,
        "correlation_trace": correlation.value(),
        "correlation_length": length_correlation(tokens, traces),
        "method": norms[0].method if norms else "eigenvalues",
        "accuracy": max((shard.accuracy for shard in norms), default=0.0),
        "checked_pairs": sum(shard.checked_pairs for shard in norms),
        "pooling_is_mean": checkpoint_of(spec).recipe.pooling == ("mean",),
    }
    points = [
        {"corpus": corpus.name, "alpha": alpha, "beta": beta, "socm_mean": mean}
        for alpha, beta, mean in surface.means()
    ]
    out.rows(SocmSummaryRow, [row])
    out.rows(SocmLengthRow, [{"corpus": corpus.name, **asdict(cell)} for cell in lengths.cells()])
    out.rows(SocmSurfaceRow, points)


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
