"""Attention received by one appended token: sticky compared with ordinary tokens (arXiv 2507.18171, §5.4).

One copy of token t is appended to sentence s, inside the special tokens, at position p of n. In layer l with H heads
and attention weights A (rows are queries and sum to one), the position receives

    r(t, s, l) = 1/(H·n) · Σ_h Σ_q A[l, h, q, p]

the average over all heads and all queries. Over all positions p, r averages to 1/n.

The two groups' values are compared layer by layer by the first Wasserstein distance, with and without special tokens:
[CLS] and the like attract attention anywhere, so a list of sticky tokens that includes them differs for that reason
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.anatomy.watch import eager_attention, no_attention
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.measures.sticky.insertion import make_draw
from embaudit.measures.sticky.tables import StickyAttentionRow
from embaudit.words.errors import MeasureError, one_line

if TYPE_CHECKING:
    import torch


MEASURE_VERSION = 1
LEVELS = (5, 25, 50, 75, 95)
PERMUTED_INTERVAL = (2.5, 97.5)
# All layers' attention weights of a batch are in memory at once: 2^27 float32 are 512 MB, one text of 512 tokens in
# BERT-large.
FLOATS_PER_BATCH = 2**27
# Weights per step of the permutation test, float64: 2^21 are 16 MB, which roughly fit into the caches.
WEIGHTS_PER_STEP = 2**21


def attention_received(
    encoder: Encoder,
    sentences: Sequence[str],
    token_ids: np.ndarray,
    seed: int = 0,
    progress: Progress = no_progress,
) -> np.ndarray:
    """r(t, s, l): the share of attention that each appended token receives, layer by layer.

    In a causal model, only the position itself and later ones can attend to it. The mean is still over all n queries,
    so a decoder's values are smaller than an encoder's.

    Args:
        sentences: S sentences, each cut so that the copy and the special tokens fit.
        token_ids: (T,) ids of the tokens to append.
        seed: seed of the draws; the position of a suffix does not depend on it.
        progress: called with the number of texts done, T·S in total.

    Returns:
        (T, S, L) float64 in [0, 1], no unit. A value does not depend on other tokens, sentences or batches.

    Raises:
        MeasureError: without tokens or sentences, for an id without an embedding, if the model cannot return its
            attention weights, or if they are not finite.
    """
    token_ids = np.asarray(token_ids, dtype=np.int64)
    if len(token_ids) == 0 or len(sentences) == 0:
        raise MeasureError(
            f"Attention needs tokens and sentences, but there are {len(token_ids)} tokens and {len(sentences)} "
            "sentences.",
            next_step="Scan more tokens, or give a corpus with more sentences.",
        )
    _require_embedded(encoder, token_ids)
    by_sentence = []
    with eager_attention(encoder.checkpoint.model):
        heads = _heads(encoder, int(token_ids[0]))
        for sentence in sentences:
            draw = make_draw(encoder.checkpoint, sentence, "suffix", 1, seed)
            place = int(np.flatnonzero(draw.template < 0)[0])
            ids = draw.insert(token_ids)
            _require_embedded(encoder, ids)
            rows = _rows_per_batch(encoder, heads, ids.shape[1])
            parts = []
            for start in range(0, len(ids), rows):
                received = _received(encoder, ids[start : start + rows], place)
                _require_finite(received, token_ids[start : start + rows])
                parts.append(received)
                progress(len(received))
            by_sentence.append(np.concatenate(parts))
    return np.stack(by_sentence, axis=1)


def received_at(attention: torch.Tensor, place: int) -> torch.Tensor:
    """(B,) float32: one layer's attention (B, H, n, n) to a position, averaged over heads and queries."""
    return attention[:, :, :, place].float().mean(dim=(1, 2))


def compare_attention(
    received: np.ndarray, is_sticky: np.ndarray, is_special: np.ndarray, permutations: int, seed: int
) -> list[StickyAttentionRow]:
    """Sticky compared with ordinary tokens in every layer, with and without special tokens.

    All layers use the same permutations. A variant with an empty group gives no rows; if no token is special, both
    variants give the same values.

    Args:
        received: (T, S, L) from ``attention_received``.
        is_sticky: (T,) bool; all other tokens are ordinary.
        is_special: (T,) bool, the tokens that the second variant leaves out of both groups.
        permutations: B, at least 1.
        seed: seed of the permutations.
    """
    shifts = []
    for includes_special in (True, False):
        kept = np.ones(len(received), dtype=bool) if includes_special else ~is_special
        groups = is_sticky[kept]
        if groups.all() or not groups.any():
            continue
        labels = np.concatenate([groups[None, :], permute_tokens(groups, permutations, seed)])
        for layer in range(received.shape[2]):
            shifts.append(_compare_layer(received[kept, :, layer], labels, layer, includes_special))
    return shifts


def permute_tokens(is_sticky: np.ndarray, permutations: int, seed: int) -> np.ndarray:
    """(B, T) bool: group labels permuted by token, since a token's sentences are repeated measures of it."""
    generator = np.random.default_rng([seed, len(is_sticky)])
    return generator.permuted(np.tile(is_sticky, (permutations, 1)), axis=1)


def wasserstein_distances(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """First Wasserstein distance between two groups of tokens, for many groupings.

    W₁ = ∫ |F_sticky(x) − F_ordinary(x)| dx, a sum over the gaps between the pooled sorted values, which all groupings
    share; only the cumulative weights differ.

    Args:
        values: (T, S), each token's values.
        labels: (B, T) bool, True for the first group; no row may be all True or all False.

    Returns:
        (B,) float64, in the unit of the values.
    """
    tokens, sentences = values.shape
    pooled = values.ravel()
    order = np.argsort(pooled, kind="stable")
    gaps = np.diff(pooled[order])
    owner = order[:-1] // sentences
    first = labels.sum(axis=1, keepdims=True)
    weights = np.where(labels, 1 / first, -1 / (tokens - first)) / sentences
    step = max(1, WEIGHTS_PER_STEP // len(pooled))
    distances = np.empty(len(labels))
    for start in range(0, len(labels), step):
        difference = np.cumsum(weights[start : start + step, owner], axis=1)
        distances[start : start + step] = np.abs(difference, out=difference) @ gaps
    return distances


def _compare_layer(values: np.ndarray, labels: np.ndarray, layer: int, includes_special: bool) -> StickyAttentionRow:
    """One layer's (T, S) values; the first row of ``labels`` is the real grouping, the others are permuted."""
    observed, *_ = distances = wasserstein_distances(values, labels)
    permuted, groups = distances[1:], labels[0]
    low, high = np.percentile(permuted, PERMUTED_INTERVAL)
    # A permutation may equal the real grouping; it must count in spite of rounding.
    as_large = int((permuted >= observed * (1 - 1e-12)).sum())
    return StickyAttentionRow(
        layer=layer,
        includes_special=includes_special,
        sticky_tokens=int(groups.sum()),
        ordinary_tokens=int((~groups).sum()),
        sentences=values.shape[1],
        wasserstein=float(observed),
        permuted_low=float(low),
        permuted_high=float(high),
        p_value=(1 + as_large) / (len(permuted) + 1),
        **_quantiles("sticky", values[groups]),
        **_quantiles("ordinary", values[~groups]),
    )


def _quantiles(group: str, values: np.ndarray) -> dict[str, float]:
    found = np.percentile(values, LEVELS).tolist()
    return {f"{group}_q{level:02}": value for level, value in zip(LEVELS, found, strict=True)}


def _heads(encoder: Encoder, token_id: int) -> int:
    """Total number of heads, from running one token; a model that returns no attention fails here, early."""
    return sum(layer.shape[1] for layer in _attentions(encoder, np.array([[token_id]])))


def _rows_per_batch(encoder: Encoder, heads: int, n: int) -> int:
    """Texts of n tokens per batch; at least one, even if it exceeds the limits."""
    return max(1, min(encoder.tokens_per_batch // n, FLOATS_PER_BATCH // (heads * n * n)))


def _received(encoder: Encoder, ids: np.ndarray, place: int) -> np.ndarray:
    """(B, L) float64 from the ids (B, n) of one batch, whose attention weights are freed on return."""
    import torch

    encoder.texts += len(ids)
    encoder.tokens += ids.size
    layers = [received_at(layer, place) for layer in _attentions(encoder, ids)]
    return torch.stack(layers, dim=1).cpu().numpy().astype(np.float64)


def _attentions(encoder: Encoder, ids: np.ndarray) -> tuple[torch.Tensor, ...]:
    """The attention weights of each layer, (B, H, n, n)."""
    import torch

    model = encoder.checkpoint.model
    inputs = torch.from_numpy(ids).to(encoder.checkpoint.device)
    try:
        with torch.inference_mode():
            asked = encoder.checkpoint.inputs(inputs, torch.ones_like(inputs))
            output = model(**asked, output_attentions=True)
    except TypeError as error:  # a custom model whose forward has no such argument
        raise no_attention(model, f"it does not take output_attentions: {one_line(error)}") from error
    attentions = getattr(output, "attentions", None)
    if not attentions or any(layer is None for layer in attentions):
        raise no_attention(model, "it returns none.")
    batch, n = ids.shape
    for layer in attentions:
        if layer.dim() != 4 or (layer.shape[0], *layer.shape[2:]) != (batch, n, n):
            raise no_attention(model, f"it returns {tuple(layer.shape)} for {batch} texts of {n} tokens.")
    return tuple(attentions)


def _require_embedded(encoder: Encoder, ids: np.ndarray) -> None:
    # On a GPU, an id beyond the embedding matrix makes the device unusable for the whole process.
    unknown = ids[(ids < 0) | (ids >= encoder.checkpoint.vocabulary_size)]
    if len(unknown):
        raise MeasureError(
            f"Token {unknown[0]} has no embedding: {encoder.checkpoint.resolved.ref} has "
            f"{encoder.checkpoint.vocabulary_size} of them.",
            next_step="Check that tokenizer and weights belong together.",
        )


def _require_finite(received: np.ndarray, token_ids: np.ndarray) -> None:
    finite = np.isfinite(received).all(axis=1)
    if not finite.all():
        raise MeasureError(
            f"The attention to token {token_ids[int(np.argmin(finite))]} is NaN or infinite.",
            next_step="In half precision try --dtype float32; otherwise the checkpoint is damaged.",
        )
