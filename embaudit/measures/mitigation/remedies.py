"""Remedies for a set S of severe tokens, as functions of ids, weights or vectors, and the losses under each of them.

    strip       ids in S are removed from every text before encoding
    prune       an id in S is replaced by the ids that the tokenizer without S gives for the token's text
    unk, mean, scale
                the input embeddings of S are replaced (``embaudit.remedies.mitigation``)
    centring, components, whitening
                every unit vector v becomes f(v), with f fitted on unit vectors of clean texts
                (``embaudit.remedies.mitigation``)

All but the last group change only texts that contain a token of S; f changes every text.

Losses are those that sticky tokens still cause. For token t and remedy m, slope_m(t) is that of ``retention``
(``embaudit.measures.sticky.moments``) for sentences with copies of t encoded under the remedy, and

    loss_m(t) = 1 − slope_m(t) / median of slope_m over ordinary tokens

A transform of the output space is applied to draws and anchors, before and after insertion. Resamples are of draws,
groups of anchors and ordinary tokens, the same under every remedy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.corpora.downstream import unit_rows
from embaudit.measures.mitigation import AfterEncoding, Remedy
from embaudit.measures.sticky.effects import (
    Loss,
    ResampledValues,
    crossed_resamples,
    drawn_controls,
    moments_of,
    paired_losses,
    with_mean,
)
from embaudit.measures.sticky.moments import Moments, retention
from embaudit.measures.sticky.points import MIN_VARIANCE, Points
from embaudit.remedies.mitigation import (
    HOWS,
    Centring,
    How,
    Whitening,
    WithoutComponents,
    pieces,
    prunable,
    pruned,
    replaced,
)
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


@dataclass(frozen=True)
class Inserted:
    """Vectors of T tokens in K draws.

    Attributes:
        token_ids: (T,)
        vectors: (T, K, d) float32, with copies.
        plain: (K, d) float32, the same sentences without copies.
    """

    token_ids: np.ndarray
    vectors: np.ndarray
    plain: np.ndarray


@dataclass(frozen=True)
class RemedyLosses:
    """Losses under one remedy.

    Attributes:
        tokens: by watched token.
        mean: mean over the watched tokens.
        losses: (T,) for all tokens.
    """

    tokens: dict[int, Loss]
    mean: Loss
    losses: np.ndarray


def insert_all(encoder: Encoder, points: Points, token_ids: np.ndarray) -> Inserted:
    """Copies of each token in each draw, without a remedy."""
    import torch

    by_draw = [encoder.encode_dense(torch.from_numpy(draw.insert(token_ids))).cpu().numpy() for draw in points.draws]
    plain = encoder.encode_ids([draw.baseline for draw in points.draws])
    return Inserted(token_ids, np.stack(by_draw, axis=1), plain)


def insert_with(
    encoder: Encoder, points: Points, inserted: Inserted, severe: frozenset[int], remedy: Remedy
) -> Inserted:
    """The same under a remedy; sequences without severe tokens keep their vectors."""
    vectors, plain = inserted.vectors.copy(), inserted.plain.copy()
    rows = [(place, int(token)) for place, token in enumerate(inserted.token_ids) if int(token) in severe]
    changed = [draw.insert(np.array([token]))[0].tolist() for _, token in rows for draw in points.draws]
    held = [place for place, draw in enumerate(points.draws) if severe & set(draw.baseline)]
    changed += [list(points.draws[place].baseline) for place in held]
    if changed:
        found = encode_with(encoder, changed, severe, remedy)
        count = len(points.draws)
        for at, (place, _) in enumerate(rows):
            vectors[place] = found[at * count : (at + 1) * count]
        plain[held] = found[len(rows) * count :]
    return Inserted(inserted.token_ids, vectors, plain)


def losses(
    points: Points,
    by_remedy: Mapping[str, tuple[Inserted, Transform | None]],
    watched: Sequence[int],
    controls: Sequence[int],
    resamples: int,
    seed: int,
) -> dict[str, RemedyLosses]:
    """Losses of the watched tokens under every remedy, with the change from the first, which is no remedy.

    Args:
        points: draws and anchors of the untreated checkpoint.
        by_remedy: vectors under each remedy, and the transform to apply to all vectors.
        watched: token ids.
        controls: ids of the ordinary tokens.
    """
    weights = crossed_resamples(points, resamples, seed)
    found: dict[str, RemedyLosses] = {}
    untreated: ResampledValues | None = None
    for remedy, (inserted, transform) in by_remedy.items():
        own, moments = _mapped(points, inserted, transform)
        is_control = np.isin(inserted.token_ids, controls)
        slope, slopes = retention(own, moments).slope, retention(own, moments, weights).slope
        drawn = drawn_controls(is_control, resamples, seed)
        ordinary = np.median(np.take_along_axis(slopes, drawn, axis=1), axis=1, keepdims=True)
        of_all = 1 - slope / np.median(slope[is_control])
        places = [int(np.flatnonzero(inserted.token_ids == token)[0]) for token in watched]
        measured = ResampledValues(with_mean(of_all[None], places)[0], with_mean(1 - slopes / ordinary, places))
        *every, mean = paired_losses(measured, untreated)
        untreated = untreated or measured
        found[remedy] = RemedyLosses(dict(zip(watched, every, strict=True)), mean, of_all)
    return found


def _mapped(points: Points, inserted: Inserted, transform: Transform | None) -> tuple[Points, Moments]:
    """Similarities before, and sums over those after insertion, in the transformed space."""
    anchors, plain = _space(points.anchors, transform), _space(inserted.plain, transform)
    before = np.stack([anchors[own] @ row for own, row in zip(points.partners, plain, strict=True)])
    if np.var(before) <= MIN_VARIANCE:
        raise NotMeasurable("all sentences are equally similar under this remedy.")
    own = replace(points, anchors=anchors, before=before, origin=float(before.mean()))
    vectors = inserted.vectors
    if transform is not None:
        tokens, draws, d = vectors.shape
        vectors = _space(vectors.reshape(-1, d), transform).reshape(tokens, draws, -1)
    return own, moments_of(own, vectors)


def _space(vectors: np.ndarray, transform: Transform | None) -> np.ndarray:
    units = unit_rows(vectors)
    return units if transform is None else unit_rows(transform(units))
