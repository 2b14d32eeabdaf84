"""u, the value that the paper expects similarities to stick to: the mean pairwise cosine of token embeddings.

For unit vectors ê of N entries, the mean over all ordered pairs, diagonal included as published, is ‖mean ê‖² (arXiv
2507.18171, §3; one pass, O(N·d), no N × N matrix). The paper encodes every vocabulary entry's token string as text with
the whole model; the same is computed from ids, and from rows of the input embedding matrix.

A mean needs no census. From n entries drawn at random, with S = Σ ê over them,

    û = 1/N + (1 − 1/N) · (‖S‖² − n) / (n (n − 1)),

the mean over pairs of different entries and the diagonal, which is 1: no bias, whatever n. Its interval is a jackknife
over groups of entries, narrower by √(1 − n/N) for those that are in the sample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.corpora.downstream import unit_rows
from embaudit.statistics import Ends, grouped_half_width

MEASURE_VERSION = 3
# Of the jackknife.
GROUPS = 25


@dataclass(frozen=True)
class TokenSimilarity:
    """Mean pairwise cosine similarity of a vocabulary, three ways; intervals where only a sample was encoded."""

    tokens: int
    u: float
    u_low: float | None
    u_high: float | None
    u_ids: float
    u_ids_low: float | None
    u_ids_high: float | None
    u_input_embeddings: float


def mean_pairwise_cosine(vectors: np.ndarray) -> float:
    """‖mean of unit rows‖² of (N, D) vectors, in float64; rows of zero length count as zero vectors."""
    mean = unit_rows(vectors).mean(axis=0)
    return float(mean @ mean)


def input_embeddings(encoder: Encoder) -> np.ndarray:
    """(V, d) float64 rows of the input embedding matrix."""
    weight = encoder.checkpoint.model.get_input_embeddings().weight
    return weight.detach().float().cpu().numpy().astype(np.float64)


def deal_entries(count: int, wanted: int | None, seed: int) -> list[np.ndarray]:
    """Places of all of ``count`` entries, or of ``wanted`` at random, dealt at random into at most 25 groups."""
    is_sample = wanted is not None and wanted < count
    # All of them are the same whatever the seed, and so are their groups: what was encoded is found again.
    order = np.random.default_rng([seed, count, 5] if is_sample else count).permutation(count)[:wanted]
    return [np.sort(group) for group in np.array_split(order, min(GROUPS, len(order)))]


def sum_entries(
    encoder: Encoder, token_ids: Sequence[int], tokens: Sequence[str], progress: Progress = no_progress
) -> np.ndarray:
    """(2, D) float64: the sum of the unit vectors of some entries, encoded as text and by their ids.

    Most strings are tokenised to their own id, so both ways need the same vector: each distinct sequence of ids is
    encoded once.

    Args:
        token_ids: the entries' ids.
        tokens: their strings as written in the vocabulary (``##ing``, ``▁the``).
        progress: counts every entry twice, as text and as id, even if both are the same sequence.
    """
    with_special_tokens = encoder.checkpoint.with_special_tokens
    sequences = [*encoder.tokenize(tokens), *(with_special_tokens([token_id]) for token_id in token_ids)]
    rows: dict[tuple[int, ...], int] = {}
    row_of = np.array([rows.setdefault(tuple(sequence), len(rows)) for sequence in sequences], dtype=np.int64)
    progress(len(sequences) - len(rows))
    vectors = unit_rows(encoder.encode_ids(list(rows), progress))
    times = [np.bincount(part, minlength=len(rows)) for part in (row_of[: len(tokens)], row_of[len(tokens) :])]
    sums: np.ndarray = np.array(times, dtype=np.float64) @ vectors
    return sums


def token_similarity(sums: np.ndarray, sizes: Sequence[int], entries: int, embeddings: np.ndarray) -> TokenSimilarity:
    """u of a checkpoint.

    Args:
        sums: (G, 2, D), each group's ``sum_entries``; ``sizes``: number of entries in each.
        entries: N, number of entries of the vocabulary.
        embeddings: (N, d) the input embeddings of all of them.
    """
    counts = np.array(sizes, dtype=np.int64)
    (u, ends), (u_ids, ends_of_ids) = (_mean_cosine(sums[:, way], counts, entries) for way in (0, 1))
    return TokenSimilarity(entries, u, *ends, u_ids, *ends_of_ids, mean_pairwise_cosine(embeddings))


def _mean_cosine(sums: np.ndarray, sizes: np.ndarray, entries: int) -> tuple[float, Ends]:
    """û and its interval from (G, D) sums of unit vectors; no interval if all entries are among them."""
    total, encoded = sums.sum(axis=0), int(sizes.sum())
    if encoded == entries:
        return float(np.square(total / entries).sum()), (None, None)

    def estimate(sum_of_vectors: np.ndarray, n: np.ndarray) -> np.ndarray:
        between = (np.square(sum_of_vectors).sum(axis=-1) - n) / (n * (n - 1))
        found: np.ndarray = 1 / entries + (1 - 1 / entries) * between
        return found

    value = float(estimate(total, np.array(encoded)))
    half = grouped_half_width(value, estimate(total - sums, encoded - sizes), sizes / encoded)
    # A squared length is not negative, whatever an estimate of it is.
    u = max(value, 0.0)
    if half is None:
        return u, (None, None)
    half *= float(np.sqrt(1 - encoded / entries))
    return u, (max(value - half, 0.0), max(value + half, 0.0))
