"""Spearman's ρ, AUC and nDCG@10 with bootstrap intervals, and the paired differences between two scorings.

All scorings of one data set are resampled alike, so the difference of two is that of their resampled values. A resample
is a count per pair or query (``weights``), drawn over units that share a text. With counts, ranks and sums of all
resamples are a few operations on (B, n) arrays, and exact: item i of a resample has the mid-rank

    r_i = Σ_{j: x_j < x_i} w_j + (1 + Σ_{j: x_j = x_i} w_j) / 2 .

Intervals are the value ± z standard deviations over resamples, as in ``embaudit.corpora.downstream``.

Fewer texts for large checkpoints: as many as a fixed number of operations allows, and what is then not seen.

The limit is one of work, parameters × tokens, so that what is read depends on the checkpoint alone and not on the
machine: two machines give one answer. Checkpoints of up to 110 million parameters read the whole sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import ceil, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.memory import multiplied
from embaudit.corpora.downstream.retrieval import evaluate, ranked
from embaudit.declared.rule import Finding, Rule, number, percent
from embaudit.measures.quality.material import SAMPLE, Collection, Material, ScoredPairs
from embaudit.statistics import NORMAL, unit_weights
from embaudit.words.estimate import Estimate

RESAMPLES = 1_000
SEED = 0
# With this probability, a difference of the detectable size would have been found.
POWER = 0.8
# A golden query is found if an answer is among so many.
FOUND = 10


@dataclass(frozen=True)
class ResampledScore:
    """A score and its values over the resamples, (B,) float64, empty if there are too few units."""

    value: float
    resampled: np.ndarray

    @cached_property
    def deviation(self) -> float | None:
        """Standard deviation over resamples; None without any, or if all are equal, which is not certainty."""
        deviation = float(self.resampled.std(ddof=1)) if len(self.resampled) > 1 else 0.0
        return deviation if deviation > 1e-12 else None

    def share_estimate(self) -> Estimate:
        """The interval of a share: ± z deviations of its logit, which do not pass 0 or 1; none at either."""
        if self.deviation is None or not 0 < self.value < 1:
            return Estimate(self.value)
        middle = math.log(self.value / (1 - self.value))
        half = NORMAL * self.deviation / (self.value * (1 - self.value))
        low, high = (1 / (1 + math.exp(-end)) for end in (middle - half, middle + half))
        return Estimate(self.value, low, high)

    def estimate(self, z: float = NORMAL) -> Estimate:
        """The value ± z deviations."""
        return Estimate.around(self.value, None if self.deviation is None else z * self.deviation)

    def minus(self, other: ResampledScore) -> ResampledScore:
        """The paired difference; both must be of the same data set."""
        return ResampledScore(self.value - other.value, self.resampled - other.resampled)

    def plus(self, other: ResampledScore) -> ResampledScore:
        """The paired sum; both must be of the same data set."""
        return ResampledScore(self.value + other.value, self.resampled + other.resampled)

    @property
    def p_value(self) -> float:
        """Two-sided, of the value being 0, from the normal distribution; 1 without an interval."""
        return 1.0 if self.deviation is None else float(2 * ndtr(-abs(self.value) / self.deviation))

    def detectable(self, level: float) -> float | None:
        """The difference that a test at this level finds with a probability of ``POWER``; None without an interval."""
        if self.deviation is None:
            return None
        return float((ndtri(POWER) - ndtri(level / 2)) * self.deviation)


class PairScorer:
    """Scores similarities, (n,) float64, of one data set's pairs."""

    def __init__(self, pairs: ScoredPairs, resamples: int = RESAMPLES) -> None:
        self.pairs = pairs
        self.weights = unit_weights(pairs.units, resamples, SEED)
        self._all = np.ones((1, len(pairs.scores)))
        self._wanted = [_centred_ranks(pairs.wanted, weights) for weights in (self._all, self.weights)]

    def spearman(self, similarities: np.ndarray) -> ResampledScore:
        """ρ with people's scores. Constant similarities order nothing: 0."""
        values = [
            _correlation(_centred_ranks(similarities, weights), wanted, weights)
            for weights, wanted in zip((self._all, self.weights), self._wanted, strict=True)
        ]
        return ResampledScore(float(values[0][0]), values[1])

    def auc(self, similarities: np.ndarray) -> ResampledScore:
        """The share of (matching, unrelated) pairs of pairs in the right order; ties count half.

        .5 if one of the two kinds is missing.
        """
        high, low = self.pairs.is_matching, self.pairs.is_unrelated
        above = similarities[high][:, None] - similarities[low][None, :]
        is_right = (above > 0) + 0.5 * (above == 0)
        values = []
        for weights in (self._all, self.weights):
            right = np.einsum("bn,bn->b", weights[:, high] @ is_right, weights[:, low])
            total = weights[:, high].sum(1) * weights[:, low].sum(1)
            values.append(np.divide(right, total, out=np.full_like(total, 0.5), where=total > 0))
        return ResampledScore(float(values[0][0]), values[1])


class CollectionScorer:
    """Scores similarities, (queries, documents), of one collection."""

    def __init__(self, collection: Collection, resamples: int = RESAMPLES) -> None:
        self.collection = collection
        self.weights = unit_weights(collection.units, resamples, SEED)

    def ndcg(self, similarities: np.ndarray) -> ResampledScore:
        """Mean nDCG@10 over queries; a document that is the query itself is never ranked for it, as in BEIR."""
        ranking = ranked(similarities, self.collection.own)
        gained = evaluate(self.collection.relevant, ranking)["ndcg_10"]
        return ResampledScore(float(gained.mean()), self.weights @ gained / self.weights.sum(1))

    def found(self, similarities: np.ndarray) -> ResampledScore:
        """Share of queries of which an answer is among the first ten: success@10."""
        is_found = (answer_ranks(self.collection, similarities)[0] <= FOUND).astype(np.float64)
        return ResampledScore(float(is_found.mean()), self.weights @ is_found / self.weights.sum(1))


def answer_ranks(collection: Collection, similarities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(queries,) rank of each query's best answer, 1 + the documents that are more similar; and its place."""
    ranks, places = np.zeros((2, len(collection.queries)), dtype=np.int64)
    for query, answers in enumerate(collection.relevant):
        own = similarities[query].astype(np.float64)
        own[list(collection.own[query] if collection.own else ())] = -np.inf
        places[query] = max(answers, key=lambda place: own[place])
        ranks[query] = int((own > own[places[query]]).sum()) + 1
    return ranks, places


def _centred_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B, n) mid-rank of each item in each resample, minus their mean in that resample, (Σ_i w_i + 1) / 2."""
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    is_new = np.r_[True, in_order[1:] != in_order[:-1]]
    sizes = weights[:, order]
    # Of cosines, hardly any are equal.
    if not is_new.all():
        sizes = np.add.reduceat(sizes, np.flatnonzero(is_new), axis=1)
    ends = sizes.cumsum(axis=1)
    ranks = ends - sizes / 2 - ends[:, -1:] / 2
    group = np.empty(len(values), dtype=np.int64)
    group[order] = is_new.cumsum() - 1
    return np.asarray(ranks[:, group])


def _correlation(ranks: np.ndarray, wanted: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(B,) Pearson correlation of centred ranks (B, n); 0 where one side is constant."""
    weighted = ranks * weights
    both = np.einsum("bn,bn->b", weighted, wanted)
    own = np.einsum("bn,bn->b", weighted, ranks)
    theirs = np.einsum("bn,bn,bn->b", wanted, wanted, weights)
    product = np.sqrt(own * theirs)
    return np.divide(both, product, out=np.zeros_like(both), where=product > 0)


# Of reading the sample, two for each parameter and token. BERT base takes .8e13, BERT large 2.9e13, a decoder of .49
# billion 3.4e13; two cores do 1.2e13 in one or two minutes.
OPERATIONS = 1.2e13
# Read whatever it costs: with a quarter of the sample, broken copies of the packaged checkpoint are still told from
# sound ones (tests/quality/test_fewer.py).
LEAST = 0.25
# The probability with which a fault of the size that is named would have touched one of the texts.
CERTAINTY = 0.95
RULE = Rule(
    "fewer_texts",
    "the parameters that a token is multiplied with × the sample's tokens",
    reason=f"always `ok`: `check` reads a part of the sample above {number(OPERATIONS)} operations (2 × parameters × "
    f"tokens; BERT base takes .8e13, BERT large 2.9e13), at least {percent(LEAST)} of it. It says the share s of texts "
    f"with (1 − s)ⁿ = {number(round(1 - CERTAINTY, 9))}: a fault that touches fewer may have touched none of the n "
    "that were read. `collapsed` is compared with the directions that the whole sample would have (1/R − 1/n is the "
    "same for any n)",
)


@dataclass(frozen=True)
class Fewer:
    """What is read of the material, and how much the whole of the sample would have taken."""

    whole: Material
    read: Material
    parameters: int
    operations: float

    @property
    def texts(self) -> int:
        """Distinct texts that are read."""
        return len(set(chain.from_iterable(self.read.texts_by_role().values())))

    @property
    def unseen(self) -> float:
        """The share s of texts with (1 − s)^n = .05: a fault that touches fewer may have touched none of n."""
        return float(1 - (1 - CERTAINTY) ** (1 / max(self.texts, 1)))

    @property
    def is_fewer(self) -> bool:
        return self.read is not self.whole

    def findings(self) -> list[Finding]:
        """One if texts were left out."""
        if not self.is_fewer:
            return []
        sizes = list(zip(KINDS, _counts(self.read), _counts(self.whole), strict=True))
        counts = [f"{read} of {whole} {what}" for what, read, whole in sizes if read < whole]
        wider = max(sqrt(whole / read) for _, read, whole in sizes[:2] if read)
        return [
            RULE.finding(
                "ok",
                f"Because of its size ({self.parameters / 1e6:,.0f} million parameters a token), it read "
                f"{', '.join(counts)} of the embedded sample. A fault that touches less than "
                f"{100 * self.unseen:.2g} % of texts may have touched none of these {self.texts:,}, and intervals are "
                f"up to {wider:.1f} times as wide.",
                "",
                "To read more, give your own texts, all of which are read: --pairs FILE, --data FOLDER.",
                self.unseen,
            )
        ]

    def figures(self) -> dict[str, Any]:
        read, whole = (dict(zip(KINDS, _counts(one), strict=True)) for one in (self.read, self.whole))
        return {"read": read, "of": whole, "operations": self.operations, "unseen": self.unseen}


KINDS = ("pairs", "queries", "documents")


def fewer(checkpoint: Checkpoint, material: Material, operations: float = OPERATIONS) -> Fewer:
    """As much of the sample as so many operations allow; what somebody gave is read as it is."""
    sample = Material(
        tuple(one for one in material.pairs if one.name == SAMPLE),
        tuple(one for one in material.collections if one.name == SAMPLE),
    )
    tokens = 0
    for kind, texts in sample.texts_by_role().items():
        tokens += sum(map(len, checkpoint.reading(kind).tokenize(texts)))
    parameters = multiplied(checkpoint.model)
    needed = 2.0 * parameters * tokens
    if needed <= operations:
        return Fewer(material, material, parameters, needed)
    # In hundredths, so that a text more or less in a release of a tokenizer changes nothing.
    part = sample.part(max(LEAST, ceil(100 * operations / needed) / 100))
    named = {one.name: one for one in part.collections}
    read = replace(
        material,
        pairs=tuple(next((less for less in part.pairs if less.name == one.name), one) for one in material.pairs),
        collections=tuple(named.get(one.name, one) for one in material.collections),
    )
    return Fewer(material, read, parameters, needed)


def _counts(material: Material) -> tuple[int, int, int]:
    """Pairs, queries and documents."""
    judged = material.collections
    return (
        sum(len(one.scores) for one in material.pairs),
        sum(len(one.queries) for one in judged),
        sum(len(one.documents) for one in judged),
    )
