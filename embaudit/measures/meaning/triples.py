"""Triples of sentences (s, p, c): p says what s says, and c something else in nearly the words of s.

    nearer = 1/n · Σ_i [sim(s_i, p_i) > sim(s_i, c_i)] + ½ [sim(s_i, p_i) = sim(s_i, c_i)]
    margin = 1/n · Σ_i sim(s_i, p_i) − sim(s_i, c_i)

A search or a cache of answers takes the nearest text for the same; where ``nearer`` is low, it takes "was not paid" for
"was paid" before it takes "got its money". Users report it as negation that changes nothing (sentence-transformers
#1330, FlagEmbedding #244). Similarity of words is always wrong here: each contrast shares more of them than either
rewording does. Random vectors are right in half of the triples.

The sentences were written for embaudit, in English: 46, each with a close rewording, a free one, and six contrasts.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np

from embaudit.measures.meaning import Contrast, Rewording
from embaudit.statistics.intervals import score_share, student_half_width
from embaudit.words.estimate import Estimate

SENTENCE = "sentence"
CONTRASTS: tuple[Contrast, ...] = get_args(Contrast)
REWORDINGS: tuple[Rewording, ...] = get_args(Rewording)


@dataclass(frozen=True)
class Told:
    """How well one kind of contrast is told from one kind of rewording.

    Attributes:
        nearer: the share.
    """

    triples: int
    nearer: Estimate
    margin: Estimate


@cache
def sentences() -> dict[str, tuple[str, ...]]:
    """The sentences, their rewordings and contrasts, by column, in the same order."""
    with (Path(__file__).parent / "triples.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return {name: tuple(row[name] for row in rows) for name in (SENTENCE, *REWORDINGS, *CONTRASTS)}


def told(rewording: np.ndarray, contrast: np.ndarray) -> Told:
    """From the (n,) similarities of each sentence to its rewording and to its contrast; n ≥ 1."""
    margins = rewording - contrast
    n = len(margins)
    nearer = float((margins > 0).mean() + (margins == 0).mean() / 2)
    # Wilson's interval is defined for a share of n, and half a triple is one.
    share = Estimate.reaching(nearer, score_share(round(nearer * n), n))
    return Told(n, share, Estimate.around(float(margins.mean()), student_half_width(margins)))


def words_nearer() -> Mapping[tuple[Contrast, Rewording], float]:
    """What TF-IDF gets right of the same triples."""
    from embaudit.measures.quality.baselines import TFIDF, pair_overlap

    texts = sentences()
    overlap = {name: pair_overlap(texts[SENTENCE], texts[name])[TFIDF] for name in (*REWORDINGS, *CONTRASTS)}
    return {(c, r): told(overlap[r], overlap[c]).nearer.known for c in CONTRASTS for r in REWORDINGS}
