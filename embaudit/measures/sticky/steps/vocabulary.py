"""The vocabulary with the token filter, and u, as steps."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache

import numpy as np

from embaudit.measures.run import Run
from embaudit.measures.sticky import baseline
from embaudit.measures.sticky.steps.shards import TokenShard
from embaudit.staging.stage import read_table
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.steps.tables import TokenRow
from embaudit.vocabulary import entries

# One row per dimension of a vector.
TOKEN_SUM = {"as_text": "float64", "by_id": "float64"}


@step("vocabulary", version=entries.MEASURE_VERSION, tables=(TokenRow,), name="read vocabulary")
def read_tokens(out: Outputs, spec: CheckpointSpec) -> None:
    """The vocabulary: category, reachability, origin, script and two signs of under-training."""
    encoder = encoder_of(spec)
    checkpoint = encoder.checkpoint
    embeddings = baseline.input_embeddings(encoder)
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
        for entry in entries.read_vocabulary(checkpoint.tokenizer, checkpoint.vocabulary_size)
    ]
    out.rows(TokenRow, rows)


@step(
    "token-similarity",
    version=baseline.MEASURE_VERSION,
    tables=("token_sum",),
    name="encode vocabulary",
    run_name="{shard.label}, shard {shard.number}",
)
def sum_entries(out: Outputs, spec: CheckpointSpec, tokens: Staged, shard: TokenShard) -> None:
    """Sums of the vectors of some entries, for u."""
    encoder = encoder_of(spec)
    strings = _strings(tokens.path)
    with tracked(shard.label, 2 * len(shard.token_ids), of_all=shard.total) as advance:
        as_text, by_id = baseline.sum_entries(
            encoder, shard.token_ids, [strings[token_id] for token_id in shard.token_ids], advance
        )
    out.columns("token_sum", [{"as_text": as_text, "by_id": by_id}], TOKEN_SUM, encodes=encoder.texts)


@step("token-similarity", version=baseline.MEASURE_VERSION, tables=("token_similarity",), name="mean token similarity")
def mean_token_similarity(
    out: Outputs, spec: CheckpointSpec, tokens: Staged, sums: list[Staged], sizes: list[int]
) -> None:
    """u, the mean pairwise similarity of the vocabulary's token strings."""
    groups = np.array([[read_table(part.path)[way].to_numpy() for way in TOKEN_SUM] for part in sums])
    named = list(_strings(tokens.path))
    similarity = baseline.token_similarity(
        groups, sizes, len(named), baseline.input_embeddings(encoder_of(spec))[named]
    )
    out.rows("token_similarity", [similarity])


def token_similarity(run: Run, tokens: Staged, wanted: int | None) -> tuple[Staged, list[Staged]]:
    """u of all entries of the vocabulary, or estimated from ``wanted`` of them, and the files that it is made of."""
    named = np.array(list(_strings(tokens.path)), dtype=np.int64)
    groups = [named[places].tolist() for places in baseline.deal_entries(len(named), wanted, run.seed)]
    total = 2 * sum(map(len, groups))
    label = "u, mean similarity of the vocabulary"
    shards = [
        {"shard": TokenShard(token_ids=group, number=number, total=total, label=label)}
        for number, group in enumerate(groups)
    ]
    sums = run.sharded(sum_entries, shards, spec=run.spec, tokens=tokens)
    (similarity,) = run(
        mean_token_similarity, spec=run.spec, tokens=tokens, sums=sums, sizes=[len(group) for group in groups]
    )
    return similarity, sums


@lru_cache(maxsize=1)
def _strings(path: str) -> dict[int, str]:
    """Strings by id. An id without one (a padding row of the embedding matrix) is not a vocabulary entry."""
    read = read_table(path, columns=("token_id", "token")).to_pydict()
    return {token_id: token for token_id, token in zip(read["token_id"], read["token"], strict=True) if token}
