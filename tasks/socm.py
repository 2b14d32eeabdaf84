"""SOCM as tasks: token clouds of the texts, all pairs in shards. Lists: ``socm_listed``; averages: ``socm_summary``."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from prefect import task

from embaudit.measures.socm.tables import SocmPairRow, SocmTextRow
from embaudit_tasks.corpora import staged_texts
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of

if TYPE_CHECKING:
    from embaudit.measures.socm.clouds import TokenCloud, Undefined

MEASURE = "socm"
# Positions of undefined texts that are kept by name; the others are counted.
NAMED = 20


@task(name="SOCM texts", task_run_name="SOCM texts of {corpus}", **CACHED)
def socm_texts(
    spec: CheckpointSpec, corpus: str, corpus_id: str, corpus_path: str, texts: int, key: str, staging: str
) -> Staged:
    """Length, ‖μ‖, tr Σ and mean cosine of every text (table ``socm_text``)."""
    from embaudit.measures.socm.nuclear import nuclear_norms_on
    from embaudit.measures.socm.pairs import plan_blocks
    from embaudit.warehouse.stage import staged_path, write_rows

    started = time.perf_counter()
    clouds, undefined = clouds_of_corpus(spec, corpus, corpus_path, texts)
    truncated = dict(enumerate(are_truncated(spec, staged_texts(corpus_path, texts))))
    rows = [{"corpus": corpus, "corpus_id": corpus_id, **row} for row in text_rows(clouds, undefined, truncated)]
    path = staged_path(staging, MEASURE, key, "socm_text")
    blocks = plan_blocks([cloud.n for cloud in clouds], nuclear_norms_on(spec.device).tokens_per_block)
    return Staged(
        table="socm_text",
        path=str(path),
        rows=write_rows(path, rows, SocmTextRow.table.schema),
        seconds=time.perf_counter() - started,
        encodes=len(rows),
        detail={
            "blocks": len(blocks),
            "all_pairs": len(clouds) * (len(clouds) - 1) // 2,
            **undefined_detail(undefined),
        },
    )


@task(name="SOCM pairs", task_run_name="SOCM pairs of {corpus}, shard {shard}", **CACHED)
def socm_pairs(
    spec: CheckpointSpec, corpus: str, corpus_path: str, texts: int, shard: int, shards: int, key: str, staging: str
) -> Staged:
    """d_μ, d_Σ and SOCM of every pair of one shard, streamed to its file (table ``socm_pair``)."""
    from embaudit.measures.socm.nuclear import nuclear_norms_on
    from embaudit.measures.socm.pairs import Accuracy, all_pairs, checked, count_pairs_of_shard
    from embaudit.warehouse.stage import staged_path, write_columns

    started = time.perf_counter()
    clouds, _ = clouds_of_corpus(spec, corpus, corpus_path, texts)
    norms, accuracy = nuclear_norms_on(spec.device), Accuracy()
    planned = count_pairs_of_shard(clouds, shard, shards, norms.tokens_per_block)
    path = staged_path(staging, MEASURE, key, "socm_pair", shard)
    with tracked(f"SOCM, pairs of {corpus}", planned, of_all=len(clouds) * (len(clouds) - 1) // 2) as advance:

        def columns() -> Iterator[dict[str, object]]:
            blocks = all_pairs(clouds, shard=shard, shards=shards, norms=norms)
            for block in checked(blocks, {cloud.position: cloud for cloud in clouds}, planned, accuracy):
                advance(len(block.socm))
                yield {"corpus": repeated(corpus, len(block.socm)), **asdict(block)}

        rows = write_columns(path, columns(), SocmPairRow.table.schema)
    return Staged(
        table="socm_pair",
        path=str(path),
        rows=rows,
        seconds=time.perf_counter() - started,
        detail={"method": norms.name, "accuracy": accuracy.largest, "checked_pairs": accuracy.pairs},
    )


def text_rows(
    clouds: Sequence[TokenCloud], undefined: Sequence[Undefined], truncated: Mapping[int, bool]
) -> Iterable[dict[str, Any]]:
    """Rows of ``socm_text`` without their corpus, by position; ``truncated`` by position as well."""
    from embaudit.measures.socm.clouds import TRACE_BOUND

    rows: list[dict[str, Any]] = [
        {
            "position": cloud.position,
            "tokens": cloud.n,
            "mean_norm": cloud.mean_norm,
            "trace_sigma": cloud.trace,
            "exceeds_trace_bound": cloud.trace > TRACE_BOUND,
            "mean_cosine": cloud.mean_cosine,
            "is_undefined": False,
            "is_truncated": truncated[cloud.position],
        }
        for cloud in clouds
    ]
    rows += [
        {
            **dict.fromkeys(("trace_sigma", "exceeds_trace_bound", "mean_cosine")),
            **asdict(text),
            "is_undefined": True,
            "is_truncated": truncated[text.position],
        }
        for text in undefined
    ]
    return sorted(rows, key=lambda row: int(row["position"]))


def undefined_detail(undefined: Sequence[Undefined]) -> dict[str, Any]:
    """How many texts are undefined and which, for the audit's last lines."""
    return {"undefined": len(undefined), "undefined_positions": [text.position for text in undefined[:NAMED]]}


def are_truncated(spec: CheckpointSpec, contents: Sequence[str]) -> list[bool]:
    """Which texts are longer than the checkpoint reads."""
    from embaudit.checkpoint import Encoder

    checkpoint = checkpoint_of(spec)
    whole = Encoder(checkpoint).own_ids(contents)
    return [len(ids) > checkpoint.content_limit for ids in whole]


def repeated(value: str, count: int) -> Any:
    """One string many times, without as many Python strings."""
    import pyarrow as pa

    return pa.repeat(value, count)


# The shards of one corpus run one after another in a process: their clouds are computed once.
@lru_cache(maxsize=1)
def clouds_of_corpus(
    spec: CheckpointSpec, corpus: str, corpus_path: str, texts: int
) -> tuple[list[TokenCloud], list[Undefined]]:
    """Token clouds of the first texts of a corpus, and the texts that have none."""
    from embaudit.checkpoint import Encoder
    from embaudit.measures.socm.clouds import clouds_of

    contents = staged_texts(corpus_path, texts)
    encoder = Encoder(checkpoint_of(spec))
    with tracked(f"SOCM, token embeddings of {corpus}", len(contents)) as advance:

        def embedded() -> Iterator[tuple[int, Any]]:
            for index, embeddings in encoder.token_embeddings(contents):
                # A copy: what the encoder gives is part of a padded batch, which would stay in memory as a whole.
                yield index, embeddings.copy()
                advance(1)

        return clouds_of(embedded())
