"""Where similarities are measured: each draw, a sentence that tokens are inserted into, against many other sentences.

Those are the *anchors*. An anchor is encoded once, a draw once per token, so comparing a draw with hundreds of anchors
costs one matrix product. With few anchors, a token's score is mostly what it has in common with those sentences.
Spearman's ρ between two halves that share neither draws nor anchors, with eight draws each, on all-MiniLM-L6-v2: with
16 anchors .60 (slope) and .17 (pull), with 63 .76 and .49, with 504 .82 and .81 (``python -m benchmarks anchors``).

Anchors and draws are random sentences of a corpus, each used for one purpose. Given pairs, such as those published with
the paper, stay pairs: each draw is compared only with its own partner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.measures.sticky.insertion import OPERATORS, Operator, SentenceDraw, SentencePair, make_draw
from embaudit.words.errors import NotMeasurable

# Of the similarities before insertion: below this, their differences are rounding errors.
MIN_VARIANCE = 1e-12
# Reliability needs two groups, one per half; intervals resample the groups, and need more of them.
SCORING_GROUPS, VALIDATION_GROUPS = 2, 12


@dataclass(frozen=True)
class Points:
    """K draws, each against C anchors. Measures are sums over groups of anchors, so that groups can be resampled.

    Attributes:
        anchors: (A, D) float32, unit vectors.
        partners: (K, C) indices of the anchors that each draw is compared with: all, or its partner in a given pair.
        before: (K, C) float64, similarity of each draw's sentence, cut and without copies, to its anchors.
        groups: (C,) the group, from 0, of each of a draw's anchors.
        clusters: (K,) draws that share a sentence have the same cluster, and are resampled together.
        u: mean pairwise token similarity.
        origin: similarities are summed as differences from this value, which keeps the sums accurate.
    """

    draws: tuple[SentenceDraw, ...]
    anchors: np.ndarray
    partners: np.ndarray
    before: np.ndarray
    groups: np.ndarray
    clusters: np.ndarray
    u: float
    origin: float

    @property
    def group_count(self) -> int:
        return int(self.groups.max()) + 1

    @property
    def count(self) -> int:
        """Number of points (draw, anchor)."""
        return self.before.size

    @cached_property
    def below_u(self) -> np.ndarray:
        """(K, C) bool: points whose similarity before lies below u."""
        below: np.ndarray = self.before < self.u
        return below

    @property
    def members(self) -> np.ndarray:
        """(C, G) float64: 1 where an anchor belongs to a group."""
        return (self.groups[:, None] == np.arange(self.group_count)).astype(np.float64)

    def at(self, draws: Sequence[int]) -> Points:
        """The same points, for some of the draws."""
        kept = list(draws)
        return replace(
            self,
            draws=tuple(self.draws[draw] for draw in kept),
            partners=self.partners[kept],
            before=self.before[kept],
            clusters=self.clusters[kept],
        )


def every_against_every(
    encoder: Encoder,
    sentences: Sequence[str],
    anchors: Sequence[str],
    u: float,
    copies: int,
    seed: int,
    groups: int,
) -> Points:
    """Each sentence is one draw, operators in rotation, and is compared with all anchors.

    Args:
        groups: number of groups that the anchors are dealt into; at most the number of anchors.

    Raises:
        MeasureError: if no point lies below u, or the similarities do not differ.
    """
    draws = [
        make_draw(encoder.checkpoint, sentence, OPERATORS[place % len(OPERATORS)], copies, seed)
        for place, sentence in enumerate(sentences)
    ]
    everyone = np.arange(len(anchors))
    partners = np.broadcast_to(everyone, (len(draws), len(anchors)))
    return _points(encoder, draws, anchors, partners, everyone % min(groups, len(anchors)), np.arange(len(draws)), u)


def given_pairs(
    encoder: Encoder, pairs: Sequence[SentencePair], u: float, copies: int, seed: int, *, rotate_operators: bool = False
) -> Points:
    """Each pair is three draws, one per operator (or one, operators in rotation), against its first sentence only.

    Raises:
        MeasureError: as ``every_against_every``.
    """
    draws, partners = [], []
    for place, pair in enumerate(pairs):
        operators: tuple[Operator, ...] = (OPERATORS[place % len(OPERATORS)],) if rotate_operators else OPERATORS
        draws += [make_draw(encoder.checkpoint, pair.second, operator, copies, seed) for operator in operators]
        partners += [place] * len(operators)
    clusters = np.array(_sharing_sentences(pairs))[partners]
    own = np.array(partners)[:, None]
    return _points(encoder, draws, [pair.first for pair in pairs], own, np.zeros(1, dtype=np.int64), clusters, u)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1 in float32; cosine similarity is then a product."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _points(
    encoder: Encoder,
    draws: Sequence[SentenceDraw],
    anchors: Sequence[str],
    partners: np.ndarray,
    groups: np.ndarray,
    clusters: np.ndarray,
    u: float,
) -> Points:
    vectors = unit_rows(encoder.encode_texts(anchors))
    # The three draws of a pair share one baseline.
    baselines = list(dict.fromkeys(draw.baseline for draw in draws))
    place = {baseline: index for index, baseline in enumerate(baselines)}
    plain = unit_rows(encoder.encode_ids(baselines))[[place[draw.baseline] for draw in draws]].astype(np.float64)
    wide = vectors.astype(np.float64)
    before = np.stack([wide[own] @ row for own, row in zip(partners, plain, strict=True)])
    require_below_u(before, u)
    return Points(tuple(draws), vectors, partners, before, groups, clusters, u, float(before.mean()))


def require_below_u(before: np.ndarray, u: float) -> None:
    """Slopes need some similarity below u, and similarities that differ.

    Raises:
        NotMeasurable: if there is none, as with a checkpoint that gives all texts nearly one vector.
    """
    if np.var(before) <= MIN_VARIANCE:
        raise NotMeasurable(
            f"All sentence pairs have the same similarity ({before.flat[0]:.4f}): retention cannot be measured.",
            kept="The other measures' results are kept.",
            next_step="Give pairs of different similarity.",
        )
    if not (before < u).any():
        raise NotMeasurable(
            f"No sentence pair lies below u = {u:.4f}: the lowest similarity in the sample is {before.min():.4f}, so "
            "that there is nothing to be pulled up.",
            kept="The other measures' results are kept.",
            next_step="Give unrelated sentences (--corpus sts=FILE, --pairs FILE), or leave it out (--measures socm).",
        )


def _sharing_sentences(pairs: Sequence[SentencePair]) -> list[int]:
    """The cluster of each pair; pairs that share a sentence, directly or through other pairs, are in the same one."""
    owner: dict[str, int] = {}
    cluster = list(range(len(pairs)))
    for index, pair in enumerate(pairs):
        for sentence in (pair.first, pair.second):
            if sentence in owner and cluster[owner[sentence]] != cluster[index]:
                merged, gone = cluster[owner[sentence]], cluster[index]
                cluster = [merged if name == gone else name for name in cluster]
            owner.setdefault(sentence, index)
    return cluster
