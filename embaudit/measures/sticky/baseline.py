"""u, the value that the paper expects similarities to stick to: the mean pairwise cosine of token embeddings.

For unit vectors ê, the mean over all ordered pairs, diagonal included as published, is ‖mean ê‖² (arXiv 2507.18171,
§3; one pass, O(V·d), no V × V matrix). The paper encodes every vocabulary entry's token string as text with the
whole model; the same is computed from ids, and from rows of the input embedding matrix.

Most strings are tokenised to their own id, so both ways need the same vector: each distinct sequence of ids is encoded
once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.encoder import Progress, no_progress

MEASURE_VERSION = 2


@dataclass(frozen=True)
class TokenSimilarity:
    """Mean pairwise cosine similarity of a vocabulary, three ways."""

    tokens: int
    u: float
    u_ids: float
    u_input_embeddings: float


def mean_pairwise_cosine(vectors: np.ndarray) -> float:
    """‖mean of unit rows‖² of (N, D) vectors, in float64; rows of zero length count as zero vectors."""
    unit = vectors.astype(np.float64)
    norms = np.linalg.norm(unit, axis=1, keepdims=True)
    unit = np.divide(unit, norms, out=np.zeros_like(unit), where=norms > 0)
    mean = unit.mean(axis=0)
    return float(mean @ mean)


def input_embeddings(encoder: Encoder) -> np.ndarray:
    """(V, d) float64 rows of the input embedding matrix."""
    weight = encoder.checkpoint.model.get_input_embeddings().weight
    return weight.detach().float().cpu().numpy().astype(np.float64)


def token_similarity(
    encoder: Encoder, token_ids: Sequence[int], tokens: Sequence[str], progress: Progress = no_progress
) -> TokenSimilarity:
    """u of a checkpoint.

    Args:
        token_ids: the vocabulary's ids.
        tokens: their strings as written in the vocabulary (``##ing``, ``▁the``).
        progress: counts every entry twice, as text and as id, even if both are the same sequence.
    """
    with_special_tokens = encoder.checkpoint.with_special_tokens
    sequences = [*encoder.tokenize(tokens), *(with_special_tokens([token_id]) for token_id in token_ids)]
    rows: dict[tuple[int, ...], int] = {}
    row_of = np.array([rows.setdefault(tuple(sequence), len(rows)) for sequence in sequences], dtype=np.int64)
    progress(len(sequences) - len(rows))
    vectors = encoder.encode_ids(list(rows), progress)
    as_text, as_ids = row_of[: len(tokens)], row_of[len(tokens) :]
    return TokenSimilarity(
        tokens=len(tokens),
        u=mean_pairwise_cosine(vectors[as_text]),
        u_ids=mean_pairwise_cosine(vectors[as_ids]),
        u_input_embeddings=mean_pairwise_cosine(input_embeddings(encoder)[list(token_ids)]),
    )
