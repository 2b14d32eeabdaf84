"""SOCM's averages as steps: over all pairs of a corpus or a list, and of texts cut to one length.

The staged pairs are read batch by batch. Cutting removes the effect of the corpus's own lengths on the average.

SOCM of a list of pairs (queries with their hard negatives) as steps.

Each shard embeds the texts that it needs; a part of the list is compared with random pairs of the same queries and
passages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from math import ceil
from typing import Any, Literal, TypeAlias

import numpy as np

from embaudit.checkpoint import TextKind
from embaudit.corpora.catalog import CORPORA
from embaudit.corpora.draw import Draw, content_order, pair_text
from embaudit.measures.socm import MEASURE_VERSION
from embaudit.measures.socm.clouds import COSINE_BOUND, TRACE_BOUND, UndefinedText, clouds_of
from embaudit.measures.socm.lengths import LengthCells, TraceCorrelation, contrasts, length_correlation, strangers
from embaudit.measures.socm.nuclear import nuclear_norms_on
from embaudit.measures.socm.pairs import CHECKED_PAIRS, Accuracy, PairBlock, all_pairs, checked, given_pairs
from embaudit.measures.socm.steps.texts import NormAccuracy, UndefinedTexts, are_truncated, repeated, text_rows
from embaudit.measures.socm.summary import Surface, summarise
from embaudit.measures.socm.tables import (
    SocmContrastRow,
    SocmCutRow,
    SocmLengthRow,
    SocmListedPairRow,
    SocmSummaryRow,
    SocmSurfaceRow,
    SocmTextRow,
)
from embaudit.steps.corpora import drawn_pairs, drawn_texts
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


# Pairs whose texts are embedded together: at 2 · 80 tokens and d = 384 their token embeddings take 120 MB.
PAIRS_PER_CHUNK = 500
Prompted: TypeAlias = tuple[TextKind, str]


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmTextRow, SocmListedPairRow),
    name="SOCM of listed pairs",
    run_name="SOCM of {corpus.name}, pairs {start} to {stop}",
)
def socm_listed(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw, start: int, stop: int) -> None:
    """d_μ, d_Σ and SOCM of the drawn pairs start … stop−1, and the texts that first appear in them.

    Tables ``socm_text`` and ``socm_listed_pair``. Texts are numbered in the order of their first appearance in the
    drawn pairs. A pair with an undefined text has no row. Queries and passages are encoded with their own prompts.
    """
    drawn = drawn_pairs(corpus.content_path, draw)
    kinds = kinds_of(spec, corpus.name)
    places = drawn.places
    listed = [((kinds[0], first), (kinds[1], second)) for first, second in drawn.pairs]
    numbers = numbered_texts(listed)
    contents = list(numbers)
    seen = {numbers[text] for pair in listed[:start] for text in pair}
    encoders = {kind: encoder_of(spec, kind) for kind in dict.fromkeys(kinds)}
    norms, accuracy = nuclear_norms_on(spec.device), Accuracy()
    texts: list[dict[str, Any]] = []
    left_out: list[UndefinedText] = []

    def embedded(needed: list[int]) -> Iterator[tuple[int, np.ndarray]]:
        for kind, encoder in encoders.items():
            own = [number for number in needed if contents[number][0] == kind]
            for index, X in encoder.token_embeddings([contents[number][1] for number in own]):
                yield own[index], X.copy()

    def truncated_of(needed: list[int]) -> dict[int, bool]:
        found: dict[int, bool] = {}
        for kind in encoders:
            own = [number for number in needed if contents[number][0] == kind]
            found |= zip(own, are_truncated(spec, [contents[number][1] for number in own], kind), strict=True)
        return found

    def chunks() -> Iterator[dict[str, Any]]:
        for begin in range(start, stop, PAIRS_PER_CHUNK):
            chunk = range(begin, min(begin + PAIRS_PER_CHUNK, stop))
            needed = sorted({numbers[text] for position in chunk for text in listed[position]})
            clouds, undefined = clouds_of(embedded(needed))
            truncated = truncated_of(needed)
            new = set(needed) - seen
            seen.update(new)
            texts.extend(row for row in text_rows(corpus, clouds, undefined, truncated) if row["position"] in new)
            left_out.extend(text for text in undefined if text.position in new)
            by_number = {cloud.position: cloud for cloud in clouds}
            kept = [position for position in chunk if all(numbers[text] in by_number for text in listed[position])]
            sides = [[numbers[listed[position][side]] for position in kept] for side in (0, 1)]
            block = given_pairs(by_number, *sides, norms=norms)
            # Each chunk is checked on its share of the sample.
            share = ceil(CHECKED_PAIRS * len(chunk) / (stop - start))
            for same in checked([block], by_number, len(kept), accuracy, sample=share):
                yield {
                    "corpus": repeated(corpus.name, len(kept)),
                    "position": [places[pair] for pair in kept],
                    **vars(same),
                }
            advance(len(chunk))

    with tracked(f"SOCM, listed pairs of {corpus.name}", stop - start, of_all=len(listed)) as advance:
        out.columns(SocmListedPairRow, chunks(), detail=lambda: NormAccuracy.of(norms.name, accuracy))
    encodes = sum(encoder.texts for encoder in encoders.values())
    out.rows(SocmTextRow, texts, encodes=encodes, detail=UndefinedTexts.of(left_out))


def kinds_of(spec: CheckpointSpec, corpus: str) -> tuple[TextKind, TextKind]:
    """The kinds of text that the two sides of a list's pairs are encoded as; one kind if their prompts are the same."""
    if CORPORA[corpus].relation == "sts":
        return "text", "text"
    prompts = checkpoint_of(spec).prompts
    return ("query", "query") if prompts["query"] == prompts["document"] else ("query", "document")


def numbered_texts(listed: Sequence[tuple[Prompted, Prompted]]) -> dict[Prompted, int]:
    """A number for each distinct text and kind, in the order of first appearance."""
    numbers: dict[Prompted, int] = {}
    for pair in listed:
        for text in pair:
            numbers.setdefault(text, len(numbers))
    return numbers


# Fixed, so that audits with other seeds use the same part of a list, unless they draw other pairs.
SAMPLE_SEED = 0


@step(
    "socm",
    version=MEASURE_VERSION,
    tables=(SocmContrastRow,),
    name="SOCM contrast",
    run_name="SOCM of {corpus.name} against random pairs",
)
def socm_contrast(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw, pairs: int) -> None:
    """Means of listed and of random pairs, and their paired difference (table ``socm_contrast``).

    Empty if one query has over half of the pairs, or fewer than two pairs have two defined texts.
    """
    drawn = drawn_pairs(corpus.content_path, draw).pairs
    kinds = kinds_of(spec, corpus.name)
    chosen = content_order([pair_text(*pair) for pair in drawn], SAMPLE_SEED)[:pairs]
    listed = [((kinds[0], drawn[place][0]), (kinds[1], drawn[place][1])) for place in chosen]
    numbers = numbered_texts(listed)
    contents = list(numbers)
    embedded: list[tuple[int, np.ndarray]] = []
    with tracked(f"SOCM, random pairs of {corpus.name}", len(contents)) as advance:
        for kind in dict.fromkeys(kinds):
            own = [number for number, text in enumerate(contents) if text[0] == kind]
            for index, X in encoder_of(spec, kind).token_embeddings([contents[number][1] for number in own]):
                embedded.append((own[index], X.copy()))
                advance(1)
    clouds = {cloud.position: cloud for cloud in clouds_of(embedded)[0]}
    numbered = [(numbers[first], numbers[second]) for first, second in listed]
    defined = [pair for pair in numbered if pair[0] in clouds and pair[1] in clouds]
    first, second = [pair[0] for pair in defined], [pair[1] for pair in defined]
    partner = strangers(first)
    found = [] if partner is None else contrasts(clouds, first, second, partner)
    rows = [{"corpus": corpus.name, **asdict(one)} for one in found]
    out.rows(SocmContrastRow, rows, encodes=len(contents))
