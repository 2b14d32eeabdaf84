"""Finding: the scale of the score, which is what thresholds are taken from.

Finding: how many documents are cut at the checkpoint's limit?

Finding: does a layer lose what the layers before it had found?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.declared.rule import Finding, Level, Rule, percent
from embaudit.measures.quality.material import MORE_PAIRS
from embaudit.measures.quality.measured import Measured, MeasuredPairs
from embaudit.measures.quality.scores import ResampledScore
from embaudit.statistics import exact_share, quantile_ranks
from embaudit.words.estimate import Estimate, shown, with_interval

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
LET_THROUGH = 0.01
MIN_PAIRS = 20
SCORE_SCALE = Rule(
    "score_scale",
    "quantiles of the cosine of unrelated and of matching pairs",
    reason=f"always `ok`: the threshold that lets {percent(LET_THROUGH)} of unrelated pairs through, for whoever has "
    f"to set one. `not measured` with fewer than {MIN_PAIRS} pairs of either kind",
)


@dataclass(frozen=True)
class Scale:
    """Quantiles of the similarity of unrelated and of matching pairs, and what a threshold does.

    Attributes:
        threshold: that lets 1 % of unrelated pairs through.
            Its interval is exact for any distribution of independent units. Below 368 units no pair bounds it from
            above: there it ends at a cosine of 1, and other similarities have none.
        above: the share of matching pairs above it; its interval is exact too, and includes that of the threshold.
    """

    unrelated: tuple[float, ...]
    matching: tuple[float, ...]
    threshold: Estimate
    above: Estimate


def measure_scale(measured: MeasuredPairs) -> Scale | None:
    """None if there are too few matching or unrelated pairs."""
    high, low = measured.pairs.is_matching, measured.pairs.is_unrelated
    if min(int(high.sum()), int(low.sum())) < MIN_PAIRS:
        return None
    values = measured.similarities()
    matching, unrelated = values[high], values[low]
    units = measured.pairs.units
    threshold = _threshold(unrelated, len(set(units[low])), 1.0 if measured.similarity == "cosine" else None)
    return Scale(
        tuple(float(np.quantile(unrelated, share)) for share in QUANTILES),
        tuple(float(np.quantile(matching, share)) for share in QUANTILES),
        threshold,
        _above(matching, len(set(units[high])), threshold),
    )


def _threshold(unrelated: np.ndarray, units: int, most: float | None) -> Estimate:
    """The quantile of (n,) values of so many independent units.

    Args:
        most: the largest possible value; None if there is none.
    """
    value = float(np.quantile(unrelated, 1 - LET_THROUGH, method="inverted_cdf"))
    low, high = quantile_ranks(units, 1 - LET_THROUGH)
    in_order = np.sort(unrelated)

    def at(rank: int) -> float:
        return float(in_order[round((rank - 1) * (len(in_order) - 1) / max(units - 1, 1))])

    end = most if high is None else at(high)
    return Estimate(value) if end is None else Estimate.reaching(value, (at(low), end))


def _above(matching: np.ndarray, units: int, threshold: Estimate) -> Estimate:
    """The share of (n,) values above the threshold, which is uncertain itself."""
    assert threshold.value is not None
    shares = [
        None if end is None else float((matching > end).mean())
        for end in (threshold.value, threshold.high, threshold.low)
    ]
    value, least, most = shares
    if value is None or least is None or most is None:
        return Estimate(value)
    return Estimate(value, exact_share(round(least * units), units)[0], exact_share(round(most * units), units)[1])


def scale_findings(measured: MeasuredPairs, scale: Scale | None) -> list[Finding]:
    """Always ``ok``: no scale is wrong, but it must be known."""
    if scale is None:
        sentence = f"The scale of its scores was not measured: {measured.name} have too few matching or unrelated ones."
        return [SCORE_SCALE.finding("not measured", sentence, advice=MORE_PAIRS)]
    what = "cosine" if measured.similarity == "cosine" else f"{measured.similarity} score"
    (low, *_, middle_high) = scale.unrelated
    (matching_low, *_, matching_high) = scale.matching
    sentence = (
        f"On {measured.name}, nine in ten unrelated pairs have a {what} of {shown(low)} to {shown(middle_high)} "
        f"(median {shown(scale.unrelated[2])}), and matching pairs of {shown(matching_low)} to {shown(matching_high)} "
        f"(median {shown(scale.matching[2])}). A threshold of {with_interval(scale.threshold)} lets 1 % of unrelated "
        f"pairs through and keeps {scale.above.percent()} of matching ones."
    )
    estimate = scale.threshold
    return [SCORE_SCALE.finding("ok", sentence, value=estimate.value, low=estimate.low, high=estimate.high)]


# No checkpoint that is served for texts has a limit as low as this; many that are healthy cut long documents.
TOO_SHORT = 32
CUT_TEXTS = Rule(
    "cut_texts",
    "share of the documents as long as the limit",
    look=0.05,
    problem=0.5,
    is_share=True,
    problem_if=f"from {{problem}}, at a limit of at most {TOO_SHORT} tokens",
    reason="healthy checkpoints cut long documents, but none has the limit of a sentence",
)


def limit_findings(name: str, ids: Sequence[Sequence[int]], limit: int) -> list[Finding]:
    """``problem`` only if the limit is a sentence's: otherwise the documents may just be long.

    Args:
        name: the data set.
        ids: the documents' ids as read; those as long as the limit count as cut.
    """
    share = sum(len(one) >= limit for one in ids) / len(ids)
    level = CUT_TEXTS.level(share)
    level = "look" if level == "problem" and limit > TOO_SHORT else level
    sentence = f"The limit of {limit} tokens cuts {share:.0%} of the documents of {name}."
    return [
        CUT_TEXTS.finding(
            level,
            sentence,
            "What is cut off is in no vector.",
            "Compare max_seq_length in sentence_bert_config.json with the length that it was trained with, or split "
            "the documents.",
            share,
        )
    ]


LOST_IN_LAYER = Rule(
    "lost_in_layer",
    "the same scores if the network stopped after each layer",
    look=0.03,
    problem=0.1,
    look_if="the last is more than {look} below an earlier one, interval below 0",
    problem_if="more than {problem}",
    reason="healthy last layers lose up to .03; a dip that the end makes up for counts for nothing. `not measured` if "
    "the model does not return its states",
)


@dataclass(frozen=True)
class Layers:
    """The scores of one data set if the network stopped after its embeddings, its first layer, …, its last."""

    name: str
    metric: str
    scores: tuple[ResampledScore, ...]

    @property
    def best(self) -> int:
        """The best place to stop before the end; 0 is after the embeddings."""
        return max(range(len(self.scores) - 1), key=lambda place: self.scores[place].value)

    @property
    def lost(self) -> Estimate:
        """The last score − the best earlier one."""
        return self.scores[-1].minus(self.scores[self.best]).estimate()

    @property
    def worst_step(self) -> int:
        """The layer behind the best place with the largest step down."""
        places = range(self.best + 1, len(self.scores))
        return min(places, key=lambda place: self.scores[place].minus(self.scores[place - 1]).value)

    @property
    def level(self) -> Level:
        """A dip that the end of the network makes up for is none: healthy decoders have them."""
        lost = self.lost
        if lost.value is None or lost.high is None or lost.high >= 0:
            return "ok"
        return (
            "problem" if -lost.value > LOST_IN_LAYER.problem else "look" if -lost.value > LOST_IN_LAYER.look else "ok"
        )


def measure_layers(measured: Measured) -> Layers | None:
    """None if the model does not return its states."""
    scores = tuple(measured.score(similarities) for similarities in measured.by_layer)
    return Layers(measured.name, measured.metric, scores) if len(scores) > 1 else None


def layer_findings(measured: Sequence[Layers]) -> list[Finding]:
    """The data set that loses most; one is enough, since both orders come from the same layers."""
    if not measured:
        sentence = "What each layer adds was not measured: the model does not return the states between its layers."
        return [LOST_IN_LAYER.finding("not measured", sentence)]
    worst = min(measured, key=lambda one: (one.level == "ok", one.lost.value or 0.0))
    lost, last = worst.lost, len(worst.scores) - 1
    numbers = lost.value, lost.low, lost.high
    if worst.level == "ok":
        path = ", ".join(shown(score.value) for score in worst.scores)
        sentence = (
            f"No layer loses what those before it found: if the network stopped after its embeddings and each of its "
            f"{last} layers, {worst.metric} on {worst.name} would be {path} (the last compared with the best before "
            f"it: {with_interval(lost, signed=True)})."
        )
        return [LOST_IN_LAYER.finding("ok", sentence, "", "", *numbers)]
    at, best = worst.worst_step, worst.best
    step = worst.scores[at].minus(worst.scores[at - 1]).estimate()
    sentence = (
        f"The network would do better if it stopped after {f'layer {best} of {last}' if best else 'its embeddings'}: "
        f"{worst.metric} on {worst.name} is {shown(worst.scores[best].value)} there and "
        f"{shown(worst.scores[-1].value)} at its end, {with_interval(lost, signed=True)}. Layer {at} loses most: "
        f"{with_interval(step, signed=True)}."
    )
    meaning = (
        "Layers of an embedding checkpoint are trained towards its last one. One that makes the vectors worse was not "
        "trained with the others, was not loaded, or stands in another place."
    )
    advice = f"Compare the tensors of layer {at} (number {at - 1} in the file) with those of the run that trained it."
    return [LOST_IN_LAYER.finding(worst.level, sentence, meaning, advice, *numbers)]
