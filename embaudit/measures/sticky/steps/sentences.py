"""The sentences that sticky tokens are measured on, as steps: drawn from a corpus, or pairs given by the user.

The vocabulary with the token filter, and u, as steps.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import lru_cache
from math import ceil
from pathlib import Path

import numpy as np

from embaudit.checkpoint import vocabulary
from embaudit.corpora.records import read_chosen_pairs
from embaudit.measures.run import Run
from embaudit.measures.sticky import MEASURE_VERSION, StickySettings, baseline
from embaudit.measures.sticky.insertion import (
    SentencePair,
    SentenceSet,
    distinct_sentences,
    named_pairs,
    split_sentences,
    spread_pairs,
)
from embaudit.measures.sticky.points import unit_rows
from embaudit.measures.sticky.steps.files import (
    ENCODES_PER_SHARD,
    SHARDS,
    Purpose,
    TokenShard,
    pair_rows,
    read_pairs,
    sentence_rows,
)
from embaudit.measures.sticky.tables import StickyPairRow, StickySentenceRow
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, StagedCorpus, encoder_of
from embaudit.steps.staging.stage import read_rows, read_table
from embaudit.steps.step import Outputs, step
from embaudit.steps.tables import TokenRow
from embaudit.words.errors import CorpusError


@step(
    "sticky",
    version=MEASURE_VERSION,
    tables=(StickySentenceRow, StickyPairRow),
    name="choose sentences",
    reads=("sentences", "draws", "validation_draws"),
)
def choose_sentences(
    out: Outputs,
    spec: CheckpointSpec,
    corpus: StagedCorpus,
    given: dict[str, Staged],
    settings: StickySettings,
    shift_pairs: int,
    seed: int,
) -> None:
    """Draws and anchors for search and validation (``sticky_sentence``), and pairs (``sticky_pair``).

    Args:
        given: the user's own pairs by purpose (``scoring``, ``validation``), which replace the sentences.
        shift_pairs: number of pairs in the paper's first experiment; 0 leaves it out.
    """
    texts = [row[side] for row in read_rows([corpus.content_path]) for side in ("first", "second")]
    sentences = distinct_sentences(texts, settings.sentences, seed)
    scoring, validation = split_sentences(sentences, settings.draws, settings.validation_draws, seed)
    drawn: dict[Purpose, SentenceSet] = {"scoring": scoring, "validation": validation}
    rows = [row for purpose, chosen in drawn.items() if purpose not in given for row in sentence_rows(purpose, chosen)]
    out.rows(StickySentenceRow, rows)
    pairs = {purpose: read_pairs(staged, purpose) for purpose, staged in given.items()}
    encoder = encoder_of(spec)
    if shift_pairs:
        with tracked("encode sentences", len(sentences)) as advance:
            unit = unit_rows(encoder.encode_texts(sentences, advance)).astype(np.float64)
        similarity = unit @ unit.T
        above = similarity[np.triu_indices(len(similarity), 1)]
        spread = spread_pairs(similarity, above.min(), above.max(), shift_pairs, np.random.default_rng([seed, 2]))
        pairs["shift"] = list(named_pairs(sentences, similarity, spread))
    rows = [row for purpose, chosen in pairs.items() for row in pair_rows(purpose, chosen)]
    out.rows(StickyPairRow, rows, encodes=encoder.texts)


@step("sticky", version=1, tables=("given_pair",), name="read given pairs", not_in_key=("source",))
def given_pairs(out: Outputs, spec: CheckpointSpec, source: str, content: str, purpose: str) -> None:
    """The pairs in a user's file, with their similarities under the checkpoint.

    Args:
        content: a hash of what the file held when the audit was planned.

    Raises:
        CorpusError: if a row is not a pair, or the file has changed since the audit was planned.
    """
    found = read_chosen_pairs(Path(source))
    if found.content != content:
        raise CorpusError(f"{source} changed while it was being read.", next_step="Run the command again.")
    encoder = encoder_of(spec)
    firsts, seconds = (unit_rows(encoder.encode_texts([pair[side] for pair in found.pairs])) for side in (0, 1))
    similarity = np.einsum("pd,pd->p", firsts, seconds, dtype=np.float64)
    pairs = [SentencePair(*pair, float(value)) for pair, value in zip(found.pairs, similarity, strict=True)]
    out.rows("given_pair", pair_rows(purpose, pairs), StickyPairRow.table.schema)


# One row per dimension of a vector.
TOKEN_SUM = {"as_text": "float64", "by_id": "float64"}


@step("vocabulary", version=vocabulary.MEASURE_VERSION, tables=(TokenRow,), name="read vocabulary")
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
        for entry in vocabulary.read_vocabulary(checkpoint.tokenizer, checkpoint.vocabulary_size)
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
