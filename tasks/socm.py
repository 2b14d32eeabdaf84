"""SOCM as tasks: token clouds of the texts, all pairs in shards, the summary."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from prefect import task

from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of

if TYPE_CHECKING:
    from embaudit.socm import PairBlock, TokenCloud

MEASURE = "socm"
TEXT_SCHEMA = {
    "corpus": "string",
    "corpus_id": "string",
    "position": "int64",
    "tokens": "int32",
    "mean_norm": "float64",
    "trace_sigma": "float64",
    "exceeds_trace_bound": "bool",
    "is_truncated": "bool",
}
PAIR_SCHEMA = {
    "corpus": "string",
    "first": "int32",
    "second": "int32",
    "d_mu": "float64",
    "d_sigma": "float64",
    "socm": "float64",
}


@task(name="SOCM texts", task_run_name="SOCM texts of {corpus}", **CACHED)
def socm_texts(
    spec: CheckpointSpec, corpus: str, corpus_id: str, corpus_path: str, texts: int, key: str, staging: str
) -> Staged:
    """Length, ‖μ‖ and tr Σ of every text (table ``socm_text``)."""
    from embaudit.socm import TRACE_BOUND, plan_blocks
    from embaudit.warehouse.stage import staged_path, write_rows

    started = time.perf_counter()
    clouds = _clouds(spec, corpus, corpus_path, texts)
    checkpoint = checkpoint_of(spec)
    contents = _texts(corpus_path, texts)
    unlimited = checkpoint.tokenizer(
        contents, add_special_tokens=False, truncation=False, padding=False, verbose=False
    )["input_ids"]
    rows = [
        {
            "corpus": corpus,
            "corpus_id": corpus_id,
            "position": cloud.position,
            "tokens": cloud.n,
            "mean_norm": cloud.mean_norm,
            "trace_sigma": cloud.trace,
            "exceeds_trace_bound": cloud.trace > TRACE_BOUND,
            "is_truncated": len(unlimited[cloud.position]) > checkpoint.content_limit,
        }
        for cloud in clouds
    ]
    path = staged_path(Path(staging), MEASURE, key, "socm_text")
    return Staged(
        table="socm_text",
        path=str(path),
        rows=write_rows(path, rows, TEXT_SCHEMA),
        seconds=time.perf_counter() - started,
        encodes=len(clouds),
        detail={"blocks": len(plan_blocks([cloud.n for cloud in clouds]))},
    )


@task(name="SOCM pairs", task_run_name="SOCM pairs of {corpus}, shard {shard}", **CACHED)
def socm_pairs(
    spec: CheckpointSpec,
    corpus: str,
    corpus_path: str,
    texts: int,
    shard: int,
    shards: int,
    key: str,
    staging: str,
) -> Staged:
    """d_μ, d_Σ and SOCM of every pair of one shard, streamed to its file (table ``socm_pair``)."""
    from embaudit.socm import all_pairs, count_pairs_of_shard
    from embaudit.warehouse.stage import staged_path, write_columns

    started = time.perf_counter()
    clouds = _clouds(spec, corpus, corpus_path, texts)
    planned = count_pairs_of_shard(clouds, shard, shards)
    path = staged_path(Path(staging), MEASURE, key, "socm_pair", shard)
    with tracked(f"SOCM, pairs of {corpus}", planned, of_all=len(clouds) * (len(clouds) - 1) // 2) as advance:

        def columns() -> Iterator[dict[str, object]]:
            for block in all_pairs(clouds, shard=shard, shards=shards):
                advance(len(block.socm))
                yield {"corpus": [corpus] * len(block.socm), **asdict(block)}

        rows = write_columns(path, columns(), PAIR_SCHEMA)
    return Staged(table="socm_pair", path=str(path), rows=rows, seconds=time.perf_counter() - started)


@task(name="SOCM summary", task_run_name="SOCM summary of {corpus}", **CACHED)
def socm_summary(
    spec: CheckpointSpec,
    corpus: str,
    corpus_id: str,
    texts_path: str,
    pair_paths: list[str],
    key: str,
    staging: str,
) -> Staged:
    """Averages with a jackknife interval over texts (table ``socm_summary``)."""
    import numpy as np

    from embaudit.socm import PairBlock, summarise
    from embaudit.warehouse.stage import read_batches, read_rows, staged_path, write_rows

    columns = ("first", "second", "d_mu", "d_sigma", "socm")

    def blocks() -> Iterator[PairBlock]:
        for path in pair_paths:
            for batch in read_batches(path, columns):
                yield PairBlock(**{name: batch.column(name).to_numpy() for name in columns})

    traces = np.array([row["trace_sigma"] for row in read_rows([texts_path])])
    summary = summarise(traces, blocks())
    row = {
        "corpus": corpus,
        "corpus_id": corpus_id,
        **asdict(summary),
        "pooling_is_mean": checkpoint_of(spec).recipe.pooling == ("mean",),
    }
    path = staged_path(Path(staging), MEASURE, key, "socm_summary")
    return Staged(table="socm_summary", path=str(path), rows=write_rows(path, [row]))


def _texts(corpus_path: str, texts: int) -> list[str]:
    import pyarrow.parquet as pq

    rows = pq.read_table(corpus_path, columns=["text"]).slice(0, texts)
    return [str(text) for text in rows.column("text").to_pylist()]


# The shards of one corpus run one after another in a process: their clouds are computed once.
@lru_cache(maxsize=1)
def _clouds(spec: CheckpointSpec, corpus: str, corpus_path: str, texts: int) -> list[TokenCloud]:
    from embaudit.checkpoint import Encoder
    from embaudit.socm import token_cloud

    encoder = Encoder(checkpoint_of(spec))
    contents = _texts(corpus_path, texts)
    clouds = []
    with tracked(f"SOCM, token embeddings of {corpus}", len(contents)) as advance:
        for index, embeddings in encoder.token_embeddings(contents):
            clouds.append(token_cloud(index, embeddings))
            advance(1)
    return sorted(clouds, key=lambda cloud: cloud.position)
