"""Remedies for a set S of severe tokens, as functions of ids, weights or vectors.

    strip       ids in S are removed from every text before encoding
    prune       an id in S is replaced by the ids that the tokenizer without S gives for the token's text
    unk, mean, scale
                the input embeddings of S are replaced (``embaudit.remedies.mitigation.rows``)
    centring, components, whitening
                every unit vector v becomes f(v), with f fitted on unit vectors of clean texts
                (``embaudit.remedies.mitigation.space``)

All but the last group change only texts that contain a token of S; f changes every text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import cast

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.measures.mitigation import AfterEncoding, Remedy
from embaudit.remedies.mitigation.prune import pieces, prunable, pruned
from embaudit.remedies.mitigation.rows import HOWS, How, replaced
from embaudit.remedies.mitigation.space import Centring, Whitening, WithoutComponents
from embaudit.words.errors import NotMeasurable

SPACES: dict[AfterEncoding, type[Centring | WithoutComponents | Whitening]] = {
    "centring": Centring,
    "components": WithoutComponents,
    "whitening": Whitening,
}
# With fewer vectors per dimension, the covariance would overfit.
VECTORS_PER_DIMENSION = 2
Transform = Callable[[np.ndarray], np.ndarray]


def encode_with(
    encoder: Encoder, sequences: Sequence[Sequence[int]], severe: frozenset[int], remedy: Remedy
) -> np.ndarray:
    """Vectors of id sequences under a remedy, (n, d) float32.

    Args:
        sequences: with prompt and special tokens.
        severe: the ``treatable`` tokens.

    Raises:
        NotMeasurable: if the checkpoint does not support this remedy.
    """
    checkpoint = encoder.checkpoint
    if remedy == "strip":
        return encoder.encode_ids(_rewritten(checkpoint, sequences, dict.fromkeys(severe, ())))
    if remedy == "prune":
        return encoder.encode_ids(_rewritten(checkpoint, sequences, _pieces(checkpoint, severe)))
    assert remedy in HOWS, f"{remedy} is for vectors"
    with _rows(checkpoint, severe, remedy):
        return encoder.encode_ids(sequences)


def fitted(remedy: Remedy, vectors: np.ndarray) -> Transform:
    """f, fitted on unit vectors of clean texts.

    Raises:
        NotMeasurable: if there are too few.
    """
    texts, d = vectors.shape
    if remedy == "whitening" and texts < VECTORS_PER_DIMENSION * d:
        raise NotMeasurable(
            f"{texts:,} texts are too few to whiten {d} dimensions: {VECTORS_PER_DIMENSION * d:,} are needed."
        )
    return SPACES[cast("AfterEncoding", remedy)](vectors)


def _rewritten(
    checkpoint: Checkpoint, sequences: Sequence[Sequence[int]], becomes: Mapping[int, Sequence[int]]
) -> list[list[int]]:
    """Each sequence with some ids replaced, truncated to the checkpoint's length limit."""
    behind = len(checkpoint.suffix_ids)
    found = []
    for ids in sequences:
        new = [piece for token in ids for piece in becomes.get(token, (token,))]
        if len(new) > checkpoint.max_length:
            new = new[: checkpoint.max_length - behind] + new[len(new) - behind :]
        # An empty sequence cannot be encoded: without special tokens, a text of only severe tokens is left unchanged.
        found.append(new or list(ids))
    return found


def _pieces(checkpoint: Checkpoint, severe: frozenset[int]) -> dict[int, list[int]]:
    tokenizer = checkpoint.tokenizer
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise NotMeasurable("its tokenizer runs in Python, and tokens cannot be removed from it.")
    declared = backend.to_str()
    gone = sorted(prunable(declared, severe))
    if not gone:
        raise NotMeasurable("its tokenizer cannot do without any of the tokens.")
    # A continuation piece decoded alone keeps its mark (##ing).
    mark = getattr(backend.model, "continuing_subword_prefix", None) or ""
    texts = [tokenizer.decode([token], clean_up_tokenization_spaces=False).removeprefix(mark) for token in gone]
    return dict(zip(gone, pieces(pruned(declared, gone), texts), strict=True))


@contextmanager
def _rows(checkpoint: Checkpoint, severe: frozenset[int], how: How) -> Iterator[None]:
    """Replaces input embeddings of the model within the context."""
    import torch

    unknown = checkpoint.tokenizer.unk_token_id
    if how == "unk" and (unknown is None or unknown in severe):
        raise NotMeasurable("it has no unknown token to replace others with.")
    weight = checkpoint.model.get_input_embeddings().weight
    ids = sorted(severe)
    before = weight.detach()[ids].clone()
    rows = replaced(weight.detach().float().cpu().numpy(), ids, how, unknown)
    with torch.no_grad():
        weight[ids] = torch.from_numpy(rows).to(weight)
    try:
        yield
    finally:
        with torch.no_grad():
            weight[ids] = before
