"""Concentration layer by layer as a task: one forward pass a text gives the rows of three tables."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prefect import task

from embaudit.measures.layers.tables import LayerHeadStatRow, LayerStatRow, LayerTextRow
from embaudit_tasks.corpora import staged_texts
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of

if TYPE_CHECKING:
    from embaudit.measures.layers.collect import Collected
    from embaudit.measures.layers.layers import LayerBatch

MEASURE = "layers"


@task(name="layers", task_run_name="layers over {corpus}", **CACHED)
def layer_statistics(
    spec: CheckpointSpec, corpus: str, corpus_id: str, corpus_path: str, texts: int, key: str, staging: str
) -> list[Staged]:
    """Tables ``layer_text`` (streamed), ``layer_stat`` and ``layer_head_stat`` of one corpus."""
    from embaudit.checkpoint import Encoder
    from embaudit.measures.layers.collect import Collector
    from embaudit.measures.layers.layers import measure_layers
    from embaudit.warehouse.stage import staged_path, write_columns, write_rows

    started = time.perf_counter()
    checkpoint = checkpoint_of(spec)
    encoder = Encoder(checkpoint)
    contents = staged_texts(corpus_path, texts)
    collector = Collector()
    paths = {
        table: staged_path(staging, MEASURE, key, table) for table in ("layer_text", "layer_stat", "layer_head_stat")
    }
    with tracked(f"layers, {corpus}", len(contents)) as advance:

        def columns() -> Iterator[dict[str, Any]]:
            for batch in measure_layers(encoder, contents, advance):
                collector.add(batch)
                yield _text_columns(corpus, batch)

        rows = write_columns(paths["layer_text"], columns(), LayerTextRow.table.schema)
    collected = collector.finish(checkpoint.model)
    counts = {
        "undefined": len(contents) - collected.texts,
        "truncated": encoder.count_truncated(contents),
        "tokens_mean": collected.tokens_mean,
    }
    stats = write_rows(paths["layer_stat"], _stat_rows(corpus, corpus_id, collected, counts), LayerStatRow.table.schema)
    heads = write_rows(paths["layer_head_stat"], _head_rows(corpus, collected), LayerHeadStatRow.table.schema)
    seconds = time.perf_counter() - started
    return [
        Staged(table="layer_text", path=str(paths["layer_text"]), rows=rows, seconds=seconds, encodes=encoder.texts),
        Staged(table="layer_stat", path=str(paths["layer_stat"]), rows=stats, detail={"layers": stats}),
        Staged(table="layer_head_stat", path=str(paths["layer_head_stat"]), rows=heads),
    ]


def _text_columns(corpus: str, batch: LayerBatch) -> dict[str, Any]:
    import pyarrow as pa

    size = len(batch.positions)
    return {
        "corpus": [corpus] * size,
        "position": batch.positions,
        "layer": [batch.layer] * size,
        "tokens": [batch.tokens] * size,
        **{name: pa.array(values, from_pandas=True) for name, values in batch.values.items()},
    }


def _stat_rows(corpus: str, corpus_id: str, collected: Collected, counts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for stat, weights in zip(collected.layers, collected.weights, strict=True):
        yield {
            "corpus": corpus,
            "corpus_id": corpus_id,
            "layer": stat.layer,
            "family": collected.family,
            "norm_placement": collected.norm_placement,
            "shares_weights": collected.shares_weights,
            "texts": stat.texts,
            **counts,
            "value_output_norm": weights.norm,
            **{
                f"{name}{end}": value
                for name, three in stat.means.items()
                for end, value in zip(("", "_low", "_high"), three, strict=True)
            },
            **{f"{name}_of_means": value for name, value in stat.of_means.items()},
            **{f"holds_{name.removeprefix('lambda_')}": value for name, value in stat.holds.items()},
        }


def _head_rows(corpus: str, collected: Collected) -> list[dict[str, Any]]:
    from dataclasses import asdict

    return [{"corpus": corpus, **asdict(head)} for head in collected.heads]
