"""The vocabulary with the token filter, and u, as steps."""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from math import ceil

import numpy as np

from embaudit.checkpoint.vocabulary import entries
from embaudit.measures.run import Run
from embaudit.measures.sticky import baseline
from embaudit.measures.sticky.steps.files import ENCODES_PER_SHARD, SHARDS, TokenShard
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.staging.stage import read_table
from embaudit.steps.step import Outputs, step
from embaudit.steps.tables import TokenRow

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
def sum_entries(out: Outputs, spec: CheckpointSpec, tokens: Staged, shard: TokenShard, sizes: list[int]) -> None:
    """Sums of the vectors of some groups of entries, for u.

    Args:
        sizes: of the groups, whose entries follow one another in the shard.
    """
    encoder = encoder_of(spec)
    strings = _strings(tokens.path)
    groups = np.split(np.array(shard.token_ids, dtype=np.int64), np.cumsum(sizes)[:-1])
    with tracked(shard.label, 2 * len(shard.token_ids), of_all=shard.total) as advance:
        blocks = []
        for ids in (group.tolist() for group in groups):
            as_text, by_id = baseline.sum_entries(encoder, ids, [strings[token_id] for token_id in ids], advance)
            blocks.append({"as_text": as_text, "by_id": by_id})
    out.columns("token_sum", blocks, TOKEN_SUM, encodes=encoder.texts)


@step("token-similarity", version=baseline.MEASURE_VERSION, tables=("token_similarity",), name="mean token similarity")
def mean_token_similarity(
    out: Outputs, spec: CheckpointSpec, tokens: Staged, sums: list[Staged], sizes: list[list[int]]
) -> None:
    """u, the mean pairwise similarity of the vocabulary's token strings.

    Args:
        sizes: of the groups in each of ``sums``.
    """
    groups = [
        np.stack([table[way].to_numpy().reshape(len(held), -1) for way in TOKEN_SUM], axis=1)
        for table, held in ((read_table(part.path), held) for part, held in zip(sums, sizes, strict=True))
    ]
    named = list(_strings(tokens.path))
    similarity = baseline.token_similarity(
        np.concatenate(groups),
        [size for held in sizes for size in held],
        len(named),
        baseline.input_embeddings(encoder_of(spec))[named],
    )
    out.rows("token_similarity", [similarity])


def token_similarity(run: Run, tokens: Staged, wanted: int | None) -> tuple[Staged, list[Staged]]:
    """u of all entries of the vocabulary, or estimated from ``wanted`` of them, and the files that it is made of."""
    named = np.array(list(_strings(tokens.path)), dtype=np.int64)
    groups = [named[places].tolist() for places in baseline.deal_entries(len(named), wanted, run.seed)]
    entries = sum(map(len, groups))
    per_shard = ceil(len(groups) / min(SHARDS, ceil(entries / ENCODES_PER_SHARD)))
    parts = [groups[start : start + per_shard] for start in range(0, len(groups), per_shard)]
    sizes = [[len(group) for group in part] for part in parts]
    shards = [
        {
            "shard": TokenShard(
                token_ids=[token_id for group in part for token_id in group],
                number=number,
                total=2 * entries,
                label="u, mean similarity of the vocabulary",
            ),
            "sizes": held,
        }
        for number, (part, held) in enumerate(zip(parts, sizes, strict=True))
    ]
    sums = run.sharded(sum_entries, shards, spec=run.spec, tokens=tokens)
    (similarity,) = run(mean_token_similarity, spec=run.spec, tokens=tokens, sums=sums, sizes=sizes)
    return similarity, sums


@lru_cache(maxsize=1)
def _strings(path: str) -> dict[int, str]:
    """Strings by id. An id without one (a padding row of the embedding matrix) is not a vocabulary entry."""
    read = read_table(path, columns=("token_id", "token")).to_pydict()
    return {token_id: token for token_id, token in zip(read["token_id"], read["token"], strict=True) if token}
