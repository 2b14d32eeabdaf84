"""A checkpoint's row, its vocabulary with the token filter, and u."""

from __future__ import annotations

import time
from dataclasses import asdict

from prefect import task

from embaudit.tables.corpora import CheckpointRow, TokenRow
from embaudit_tasks.progress import tracked
from embaudit_tasks.results import CACHED, CheckpointSpec, Staged, checkpoint_of


@task(name="describe checkpoint", **CACHED)
def describe_checkpoint(spec: CheckpointSpec, source: str, key: str, staging: str) -> Staged:
    """Stage the checkpoint's own row."""
    from embaudit.checkpoint.describe import describe_row
    from embaudit.warehouse.stage import staged_path, write_rows

    path = staged_path(staging, "checkpoint", key, "checkpoint")
    row = {**describe_row(checkpoint_of(spec)), "source": source}
    return Staged(table="checkpoint", path=str(path), rows=write_rows(path, [row], CheckpointRow.table.schema))


@task(name="read vocabulary", **CACHED)
def read_tokens(spec: CheckpointSpec, key: str, staging: str) -> Staged:
    """Stage the vocabulary: category, reachability, origin, script and two hints of under-training."""
    import numpy as np

    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.baseline import input_embeddings
    from embaudit.vocabulary.entries import read_vocabulary
    from embaudit.warehouse.stage import staged_path, write_rows

    started = time.perf_counter()
    checkpoint = checkpoint_of(spec)
    embeddings = input_embeddings(Encoder(checkpoint))
    norms = np.linalg.norm(embeddings, axis=1)
    mean = embeddings.mean(axis=0)
    scale = norms * np.linalg.norm(mean)
    cosines = np.divide(embeddings @ mean, scale, out=np.full_like(norms, np.nan), where=scale > 0)
    rows = [
        {
            "checkpoint_id": spec.checkpoint_id,
            **asdict(entry),
            "embedding_norm": float(norms[entry.token_id]),
            # A zero row (padding) has no direction: null.
            "cosine_to_mean": None if np.isnan(cosines[entry.token_id]) else float(cosines[entry.token_id]),
        }
        for entry in read_vocabulary(checkpoint.tokenizer, checkpoint.vocabulary_size)
    ]
    path = staged_path(staging, "vocabulary", key, "token")
    count = write_rows(path, rows, TokenRow.table.schema)
    return Staged(table="token", path=str(path), rows=count, seconds=time.perf_counter() - started)


@task(name="token similarity", **CACHED)
def measure_token_similarity(spec: CheckpointSpec, tokens_path: str, key: str, staging: str) -> Staged:
    """Stage u, the mean pairwise similarity of the vocabulary's token strings."""
    from embaudit.checkpoint import Encoder
    from embaudit.measures.sticky.baseline import token_similarity
    from embaudit.warehouse.stage import read_rows, staged_path, write_rows

    started = time.perf_counter()
    encoder = Encoder(checkpoint_of(spec))
    # An id without a string (a padding row of the embedding matrix) is no vocabulary entry.
    entries = [row for row in read_rows([tokens_path]) if row["token"]]
    with tracked("u, mean similarity of the vocabulary", 2 * len(entries)) as advance:
        similarity = token_similarity(
            encoder, [row["token_id"] for row in entries], [row["token"] for row in entries], advance
        )
    path = staged_path(staging, "token-similarity", key, "token_similarity")
    return Staged(
        table="token_similarity",
        path=str(path),
        rows=write_rows(path, [similarity]),
        seconds=time.perf_counter() - started,
        encodes=encoder.texts,
    )
