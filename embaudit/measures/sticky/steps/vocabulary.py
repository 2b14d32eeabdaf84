"""The vocabulary with the token filter, and u, as steps."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np

from embaudit.measures.sticky import baseline
from embaudit.staging.stage import read_rows
from embaudit.steps.progress import tracked
from embaudit.steps.results import CheckpointSpec, Staged, encoder_of
from embaudit.steps.step import Outputs, step
from embaudit.steps.tables import TokenRow
from embaudit.vocabulary import entries


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


@step("token-similarity", version=baseline.MEASURE_VERSION, tables=("token_similarity",), name="token similarity")
def measure_token_similarity(out: Outputs, spec: CheckpointSpec, tokens: Staged) -> None:
    """u, the mean pairwise similarity of the vocabulary's token strings."""
    encoder = encoder_of(spec)
    # An id without a string (a padding row of the embedding matrix) is not a vocabulary entry.
    named = [row for row in read_rows([tokens.path]) if row["token"]]
    with tracked("u, mean similarity of the vocabulary", 2 * len(named)) as advance:
        similarity = baseline.token_similarity(
            encoder, [row["token_id"] for row in named], [row["token"] for row in named], advance
        )
    out.rows("token_similarity", [similarity], encodes=encoder.texts)
