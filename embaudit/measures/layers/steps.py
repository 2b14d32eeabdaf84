"""Concentration layer by layer as a step: one forward pass per text gives the rows of four tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from embaudit.corpora.draw import Draw
from embaudit.measures.layers import MEASURE_VERSION, LayerSettings
from embaudit.measures.layers.tables import LayerHeadStatRow, LayerStatRow, LayerTextRow, PooledStatRow
from embaudit.measures.run import Run
from embaudit.steps.corpora import drawn_texts
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.words.errors import NotMeasurable
from embaudit.words.estimate import all_columns

if TYPE_CHECKING:
    from embaudit.measures.layers.layers import LayerBatch
    from embaudit.measures.layers.summary import LayerSummaries, PooledStat


@step(
    "layers",
    version=MEASURE_VERSION,
    tables=(LayerTextRow, LayerStatRow, LayerHeadStatRow, PooledStatRow),
    name="layers",
    run_name="layers over {corpus.name}",
)
def layer_statistics(out: Outputs, spec: CheckpointSpec, corpus: StagedCorpus, draw: Draw) -> None:
    """Tables ``layer_text`` (streamed), ``layer_stat``, ``layer_head_stat`` and ``pooled_stat`` of the drawn texts."""
    from embaudit.measures.layers.layers import LayerBatch, measure_layers
    from embaudit.measures.layers.summary import Collector

    encoder = encoder_of(spec)
    drawn = drawn_texts(corpus.content_path, draw)
    contents = drawn.texts
    collector = Collector()
    with tracked(f"layers, {corpus.name}", len(contents)) as advance:

        def columns() -> Iterator[dict[str, Any]]:
            for batch in measure_layers(encoder, contents, advance, drawn.places):
                collector.add(batch)
                if isinstance(batch, LayerBatch):
                    yield _text_columns(corpus.name, batch)

        out.columns(LayerTextRow, columns())
    collected = collector.finish(encoder.checkpoint.model)
    counts = {
        "undefined": len(contents) - collected.texts,
        "truncated": encoder.count_truncated(contents),
        "tokens_mean": collected.tokens_mean,
    }
    out.rows(LayerStatRow, _stat_rows(corpus, collected, counts), encodes=encoder.texts)
    out.rows(LayerHeadStatRow, [{"corpus": corpus.name, **asdict(head)} for head in collected.heads])
    out.rows(PooledStatRow, [_pooled_row(corpus, collected.pooled)])


def _text_columns(corpus: str, batch: LayerBatch) -> dict[str, Any]:
    size = len(batch.positions)
    return {
        "corpus": [corpus] * size,
        "position": batch.positions,
        "layer": [batch.layer] * size,
        "tokens": [batch.tokens] * size,
        **{name: pa.array(values, from_pandas=True) for name, values in batch.values.items()},
    }


def _stat_rows(corpus: StagedCorpus, collected: LayerSummaries, counts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for stat, weights in zip(collected.layers, collected.weights, strict=True):
        yield {
            "corpus": corpus.name,
            "corpus_id": corpus.corpus_id,
            "layer": stat.layer,
            "family": collected.family,
            "norm_placement": collected.norm_placement,
            "shares_weights": collected.shares_weights,
            "texts": stat.texts,
            **counts,
            "value_output_norm": weights.norm,
            **all_columns(stat.means),
            **{f"{name}_of_means": value for name, value in stat.of_means.items()},
            **{f"holds_{name.removeprefix('lambda_')}": value for name, value in stat.holds.items()},
        }


def _pooled_row(corpus: StagedCorpus, pooled: PooledStat) -> dict[str, Any]:
    return {
        "corpus": corpus.name,
        "corpus_id": corpus.corpus_id,
        "texts": pooled.texts,
        "has_final_norm": pooled.has_final_norm,
        **all_columns(pooled.means),
        "normalised_spread_of_means": pooled.normalised_spread_of_means,
    }


def measure(run: Run) -> list[Staged]:
    """λ, contraction, r, C, spread, cosine and σ_a of every layer; what cannot be measured gets a note."""
    staged: list[Staged] = []
    for corpus, draw in run.drawn(run.settings(LayerSettings)):
        try:
            staged += run(layer_statistics, run.spec, corpus, draw)
        except NotMeasurable as error:
            staged.append(run.skipped(f"layers over {corpus.name}", error))
    return staged
