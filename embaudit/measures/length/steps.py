"""The steps of length: how it changes similarity, neighbours and ranking, and σ_a by layer, head and length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from embaudit.corpora.downstream.material import pick_judged
from embaudit.corpora.judged import QUERIES, own_of, relevant_of
from embaudit.measures.length import (
    DOCUMENTS,
    MEASURE_VERSION,
    LengthBinRow,
    LengthPairRow,
    LengthRankingRow,
    LengthRiseRow,
    LengthSettings,
    LengthSigmaRow,
    LengthSummaryRow,
)
from embaudit.measures.length.bias import (
    CUT_QUANTILE,
    UnrelatedPairs,
    neighbour_bias,
    outranked,
    unrelated_pairs,
)
from embaudit.measures.length.curve import BinValue, Limits, control_curves, limits_of, natural_curve, rises
from embaudit.measures.length.spans import length_bins, longest_common, spans_of
from embaudit.measures.run import Run
from embaudit.steps.corpora import DrawnTexts, drawn_texts
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_rows
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable


def measure(run: Run) -> list[Staged]:
    """The length curve with its controls, σ_a, and rankings of documents; what cannot be measured gets a note."""
    settings = run.settings(LengthSettings)
    staged: list[Staged] = []
    for corpus in (run.corpora[name] for name in settings.corpora):
        curve = run(length_curve, run.spec, corpus, settings, run.seed)
        # For example, there is no rise if all texts have the same length.
        staged += [part for part in curve if part.rows]
        staged.append(_sigma(run, corpus, settings))
        if corpus.name == DOCUMENTS:
            staged += _ranking(run, corpus, run.corpora[QUERIES], settings)
    return staged


def _ranking(run: Run, documents: StagedCorpus, queries: StagedCorpus, settings: LengthSettings) -> list[Staged]:
    try:
        (found,) = run(length_ranking, run.spec, documents, queries, settings, run.seed)
    except NotMeasurable as error:
        reason = error.happened
    else:
        if found.rows:
            return [found]
        reason = "all documents are of one length."
    return [run.note(f"Skipped length in rankings of {documents.name}: {reason}")]


def _sigma(run: Run, corpus: StagedCorpus, settings: LengthSettings) -> Staged:
    try:
        (sigma,) = run(length_sigma, run.spec, corpus, settings, run.seed)
    except NotMeasurable as error:
        reason = error.happened
    else:
        if sigma.rows:
            return sigma
        reason = f"fewer than two texts have {min(settings.sigma_lengths)} tokens."
    return run.note(f"Skipped sigma_a by length over {corpus.name}: {reason}")


PAIRS_KEPT = 100


@step(
    "length",
    version=MEASURE_VERSION,
    tables=(LengthBinRow, LengthRiseRow, LengthSummaryRow, LengthPairRow),
    name="length curve",
    run_name="length curve over {corpus.name}",
    reads=("texts", "draw", "longest", "bin_width", "control_texts", "window", "neighbours"),
)
def length_curve(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, settings: LengthSettings, seed: int) -> None:
    """Tables ``length_bin``, ``length_rise``, ``length_summary`` and ``length_pair`` of one corpus."""
    encoder = encoder_of(spec)
    drawn = _drawn(corpus, settings, seed)
    contents = encoder.own_ids(drawn.texts)
    kept = [place for place, ids in enumerate(contents) if ids]
    own, own_labels = [contents[place] for place in kept], [drawn.labels[place] for place in kept]
    lengths = np.array([len(ids) for ids in own], dtype=np.int64)
    limits = limits_of(encoder, settings.longest)
    bins, window = length_bins(limits.read, settings.bin_width), min(settings.window, limits.read)
    with tracked(f"length curve, {corpus.name}", len(own)) as advance:
        natural, vectors = natural_curve(encoder, own, bins, advance)
    controls = control_curves(encoder, own, bins, most_texts=settings.control_texts, window=window, seed=seed)
    bias = neighbour_bias(vectors, lengths, own_labels, settings.neighbours)
    pairs = unrelated_pairs(vectors, lengths, own_labels, PAIRS_KEPT)
    summary = {
        "corpus": corpus.name,
        "corpus_id": corpus.corpus_id,
        "texts": len(own),
        "empty": len(contents) - len(own),
        **_limit_columns(limits, lengths),
        "control_texts": max(value.cosine.texts for value in controls),
        "window": window,
        "is_labelled": bias.knn_accuracy is not None,
        **vars(bias),
        "long_pairs": pairs.pairs,
        "long_pairs_mean": pairs.mean_long,
        "short_pairs_mean": pairs.mean_short,
        "share_long_above": pairs.share_long_above,
    }
    curves = (*natural, *controls)
    out.rows(LengthBinRow, [_bin_row(corpus.name, value) for value in curves], encodes=encoder.texts)
    out.rows(LengthRiseRow, [{"corpus": corpus.name, **vars(rise)} for rise in rises(curves)])
    out.rows(LengthSummaryRow, [summary])
    out.rows(
        LengthPairRow, _pair_rows(corpus.name, pairs, [drawn.places[place] for place in kept], lengths, own_labels)
    )


@step(
    "length",
    version=MEASURE_VERSION,
    tables=(LengthSigmaRow,),
    name="length sigma",
    run_name="sigma_a by length over {corpus.name}",
    reads=("texts", "draw", "longest", "sigma_texts", "sigma_lengths"),
)
def length_sigma(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, settings: LengthSettings, seed: int) -> None:
    """Table ``length_sigma`` of one corpus; empty if fewer than two texts reach even the shortest length."""
    from embaudit.measures.length.heads import head_lengths

    encoder = encoder_of(spec)
    contents = encoder.own_ids(_drawn(corpus, settings, seed).texts)
    read = limits_of(encoder, settings.longest).read
    asked = sorted({min(length, read) for length in settings.sigma_lengths})
    longest = longest_common([len(ids) for ids in contents], asked)
    if longest is None:
        out.rows(LengthSigmaRow, [])
        return
    lengths = [length for length in asked if length <= longest]
    spans = spans_of(contents, longest, settings.sigma_texts, seed)
    with tracked(f"sigma_a by length, {corpus.name}", len(spans) * len(lengths)) as advance:
        found = head_lengths(encoder, spans, lengths, advance)
    out.rows(LengthSigmaRow, [{"corpus": corpus.name, **asdict(row)} for row in found], encodes=encoder.texts)


def _drawn(corpus: StagedCorpus, settings: LengthSettings, seed: int) -> DrawnTexts:
    return drawn_texts(corpus.content_path, settings.draw_from(corpus.name, corpus.rows, seed))


def _bin_row(corpus: str, value: BinValue) -> dict[str, Any]:
    cosine = value.cosine
    return {
        "corpus": corpus,
        "condition": value.condition,
        "low": value.low,
        "high": value.high,
        "length": value.length,
        "beyond_limit": value.beyond_limit,
        "texts": cosine.texts,
        "cosine_mean": cosine.mean,
        "cosine_low": cosine.low,
        "cosine_high": cosine.high,
    }


def _limit_columns(limits: Limits, lengths: np.ndarray) -> dict[str, Any]:
    has_texts = len(lengths) > 0
    return {
        "read_limit": limits.read,
        "configured_limit": limits.configured,
        "position_limit": limits.positions,
        "beyond_configured": int((lengths > limits.configured).sum()),
        "beyond_read": int((lengths > limits.read).sum()),
        "tokens_mean": float(lengths.mean()) if has_texts else None,
        "tokens_median": float(np.median(lengths)) if has_texts else None,
        "tokens_max": int(lengths.max()) if has_texts else None,
    }


def _pair_rows(
    corpus: str, pairs: UnrelatedPairs, places: Sequence[int], lengths: np.ndarray, labels: Sequence[str | None]
) -> Iterator[dict[str, Any]]:
    for rank, pair in enumerate(pairs.worst, start=1):
        yield {
            "corpus": corpus,
            "rank": rank,
            "first": places[pair.first],
            "second": places[pair.second],
            "first_tokens": int(lengths[pair.first]),
            "second_tokens": int(lengths[pair.second]),
            "first_label": labels[pair.first],
            "second_label": labels[pair.second],
            "cosine": pair.cosine,
        }


@step(
    "length",
    version=MEASURE_VERSION,
    tables=(LengthRankingRow,),
    name="length ranking",
    run_name="length in rankings of {documents.name}",
    reads=("ranked_documents", "ranking_queries"),
)
def length_ranking(
    out: Outputs,
    spec: CheckpointSpec,
    documents: StagedCorpus,
    queries: StagedCorpus,
    settings: LengthSettings,
    seed: int,
) -> None:
    """Table ``length_ranking``; empty if all documents have the same length.

    Raises:
        NotMeasurable: if there are too few queries or documents.
    """
    known = read_rows([queries.content_path])
    judged = pick_judged(
        [row["text"] for row in read_rows([documents.content_path])],
        [(row["text"], relevant_of(row["label"])) for row in known],
        settings.ranked_documents,
        settings.ranking_queries,
        seed,
        [own_of(row["label"]) for row in known],
    )
    reader, asker = encoder_of(spec, "document"), encoder_of(spec, "query")
    own = reader.own_ids(judged.documents)
    lengths = np.array([len(ids) for ids in own])
    boundary = float(np.median(lengths))
    limit = reader.checkpoint.content_limit
    cut = int(min(max(np.quantile(lengths, CUT_QUANTILE), 1), limit))
    rows: list[dict[str, Any]] = []
    with tracked(f"length in rankings of {documents.name}", 2 * len(own) + len(judged.queries)) as advance:
        asked = asker.encode_texts(judged.queries, advance)
        for condition, most in (("natural", limit), ("cut", cut)):
            sequences = [reader.checkpoint.with_special_tokens(ids[:most]) for ids in own]
            vectors = reader.encode_ids(sequences, advance)
            found = outranked(vectors, asked, judged.relevant, lengths > boundary, seed, judged.own)
            shared = {"corpus": documents.name, "condition": condition, "boundary": boundary, "read": most}
            rows += [{**shared, "documents": len(own), **asdict(one)} for one in found]
    out.rows(LengthRankingRow, rows, encodes=reader.texts + asker.texts)
