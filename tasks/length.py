"""Length collapse as tasks: the curves with what follows from the same vectors, and σ_a by head and length."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from prefect import task

from embaudit.measures.length.tables import LengthBinRow, LengthPairRow, LengthRiseRow, LengthSigmaRow, LengthSummaryRow
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of

if TYPE_CHECKING:
    from embaudit.measures.length.bias import NeighbourBias, UnrelatedPairs
    from embaudit.measures.length.curve import BinValue, Limits
    from embaudit.measures.length.settings import LengthSettings

MEASURE = "length"
PAIRS_KEPT = 100


@task(name="length curve", task_run_name="length curve over {corpus}", **CACHED)
def length_curve(
    spec: CheckpointSpec,
    corpus: str,
    corpus_id: str,
    corpus_path: str,
    settings: dict[str, Any],
    seed: int,
    key: str,
    staging: str,
) -> list[Staged]:
    """Tables ``length_bin``, ``length_rise``, ``length_summary`` and ``length_pair`` of one corpus."""
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.measures.length.bias import neighbour_bias, unrelated_pairs
    from embaudit.measures.length.curve import control_curves, limits_of, natural_curve
    from embaudit.measures.length.rises import rises
    from embaudit.measures.length.spans import length_bins

    started = time.perf_counter()
    chosen = _settings(settings)
    encoder = Encoder(checkpoint_of(spec))
    texts, labels = _texts_and_labels(corpus_path, chosen.texts)
    contents = encoder.own_ids(texts)
    kept = [place for place, ids in enumerate(contents) if ids]
    own, own_labels = [contents[place] for place in kept], [labels[place] for place in kept]
    lengths = np.array([len(ids) for ids in own], dtype=np.int64)
    limits = limits_of(encoder, chosen.longest)
    bins = length_bins(limits.read, chosen.bin_width)
    with tracked(f"length curve, {corpus}", len(own)) as advance:
        natural, vectors = natural_curve(encoder, own, bins, advance)
    controls = control_curves(
        encoder, own, bins, most_texts=chosen.control_texts, window=min(chosen.window, limits.read), seed=seed
    )
    bias = neighbour_bias(vectors, lengths, own_labels, chosen.neighbours)
    pairs = unrelated_pairs(vectors, lengths, own_labels, PAIRS_KEPT)
    summary = {
        "corpus": corpus,
        "corpus_id": corpus_id,
        "texts": len(own),
        "empty": len(contents) - len(own),
        **_limit_columns(limits, lengths),
        "control_texts": max(value.cosine.texts for value in controls),
        "window": min(chosen.window, limits.read),
        "is_labelled": bias.accuracy is not None,
        **_bias_columns(bias, pairs),
    }
    rows: dict[str, tuple[list[dict[str, Any]], dict[str, str]]] = {
        "length_bin": (
            [{"corpus": corpus, **_bin_row(value)} for value in (*natural, *controls)],
            LengthBinRow.table.schema,
        ),
        "length_rise": (
            [{"corpus": corpus, **_rise_row(rise)} for rise in rises((*natural, *controls))],
            LengthRiseRow.table.schema,
        ),
        "length_summary": ([summary], LengthSummaryRow.table.schema),
        "length_pair": (list(_pair_rows(corpus, pairs, kept, lengths, own_labels)), LengthPairRow.table.schema),
    }
    staged = _stage(staging, key, {name: table for name, table in rows.items() if table[0]})
    cost = {"seconds": time.perf_counter() - started, "encodes": encoder.texts}
    return [staged[0].model_copy(update=cost), *staged[1:]]


@task(name="length sigma", task_run_name="sigma_a by length over {corpus}", **CACHED)
def length_sigma(
    spec: CheckpointSpec, corpus: str, corpus_path: str, settings: dict[str, Any], seed: int, key: str, staging: str
) -> list[Staged]:
    """Table ``length_sigma`` of one corpus; none where no two texts have even the shortest length."""
    from embaudit.checkpoint import Encoder
    from embaudit.measures.length.curve import limits_of
    from embaudit.measures.length.heads import head_lengths
    from embaudit.measures.length.spans import longest_common, spans_of

    started = time.perf_counter()
    chosen = _settings(settings)
    encoder = Encoder(checkpoint_of(spec))
    contents = encoder.own_ids(_texts_and_labels(corpus_path, chosen.texts)[0])
    read = limits_of(encoder, chosen.longest).read
    asked = sorted({min(length, read) for length in chosen.sigma_lengths})
    longest = longest_common([len(ids) for ids in contents], asked)
    if longest is None:
        return []
    lengths = [length for length in asked if length <= longest]
    spans = spans_of(contents, longest, chosen.sigma_texts, seed)
    with tracked(f"sigma_a by length, {corpus}", len(spans) * len(lengths)) as advance:
        found = head_lengths(encoder, spans, lengths, advance)
    rows = [{"corpus": corpus, **asdict(row)} for row in found]
    (staged,) = _stage(staging, key, {"length_sigma": (rows, LengthSigmaRow.table.schema)})
    cost = {"seconds": time.perf_counter() - started, "encodes": encoder.texts}
    return [staged.model_copy(update=cost)]


def _settings(settings: dict[str, Any]) -> LengthSettings:
    from embaudit.measures.length.settings import LengthSettings

    return LengthSettings.model_validate(settings)


def _texts_and_labels(corpus_path: str, texts: int) -> tuple[list[str], list[str | None]]:
    import pyarrow.parquet as pq

    from embaudit.warehouse.stage import opened

    with opened(corpus_path) as source:
        rows = pq.read_table(source, columns=["text", "label"]).slice(0, texts)
    return rows.column("text").to_pylist(), rows.column("label").to_pylist()


def _stage(staging: str, key: str, rows: dict[str, tuple[list[dict[str, Any]], dict[str, str]]]) -> list[Staged]:
    from embaudit.warehouse.stage import staged_path, write_rows

    staged = []
    for table, (table_rows, schema) in rows.items():
        path = staged_path(staging, MEASURE, key, table)
        staged.append(Staged(table=table, path=str(path), rows=write_rows(path, table_rows, schema)))
    return staged


def _bin_row(value: BinValue) -> dict[str, Any]:
    cosine = value.cosine
    return {
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


def _rise_row(rise: Any) -> dict[str, Any]:
    return {
        "condition": rise.condition,
        "first_length": rise.first_length,
        "last_length": rise.last_length,
        "first_cosine": rise.first_cosine,
        "last_cosine": rise.last_cosine,
        "rise": rise.rise,
        "share_of_natural": rise.of_natural.share,
        "share_of_truncation": rise.of_truncation.share,
        "share_of_truncation_low": rise.of_truncation.low,
        "share_of_truncation_high": rise.of_truncation.high,
    }


def _limit_columns(limits: Limits, lengths: Any) -> dict[str, Any]:
    import numpy as np

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


def _bias_columns(bias: NeighbourBias, pairs: UnrelatedPairs) -> dict[str, Any]:
    return {
        "neighbours": bias.k,
        "hubness_spearman": bias.hubness_spearman,
        "hubness_p": bias.hubness_p,
        "neighbour_length_ratio": bias.neighbour_length_ratio,
        "short_neighbour_length_ratio": bias.short_neighbour_length_ratio,
        "rank_spearman": bias.rank_spearman,
        "knn_accuracy": bias.accuracy,
        "wrong_length_ratio": bias.wrong_length_ratio,
        "long_pairs": pairs.pairs,
        "long_pairs_mean": pairs.mean_long,
        "short_pairs_mean": pairs.mean_short,
        "share_long_above": pairs.share_long_above,
    }


def _pair_rows(
    corpus: str, pairs: UnrelatedPairs, kept: Sequence[int], lengths: Any, labels: Sequence[str | None]
) -> Iterator[dict[str, Any]]:
    for rank, pair in enumerate(pairs.worst, start=1):
        yield {
            "corpus": corpus,
            "rank": rank,
            "first": kept[pair.first],
            "second": kept[pair.second],
            "first_tokens": int(lengths[pair.first]),
            "second_tokens": int(lengths[pair.second]),
            "first_label": labels[pair.first],
            "second_label": labels[pair.second],
            "cosine": pair.cosine,
        }
