"""What it gained on the given data and lost on the embedded sample: paired differences of scores.

Both checkpoints are scored on the same pairs and queries, resampled alike, so a difference has the interval of a paired
one (``embaudit.measures.quality.scores``).

So is what a cut-off on the score, chosen with the base, does now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.corpora.downstream.material import lets_other_share_through, transferred
from embaudit.declared.rule import Finding, Level, Rule, number, percent
from embaudit.embedders.checkpoint import declared_similarity
from embaudit.measures.quality.counterfactual import mean_gain
from embaudit.measures.quality.material import Material
from embaudit.measures.quality.measured import Measured, MeasuredPairs, measure_collection, measure_pairs
from embaudit.measures.quality.passes import SERVED, Pass
from embaudit.measures.quality.scale import LET_THROUGH, MIN_PAIRS
from embaudit.measures.quality.scores import ResampledScore
from embaudit.words.estimate import Estimate, shown, with_interval

# A smaller loss is none, though its interval is clear of 0; a larger one is half of what choosing a checkpoint makes.
SMALLEST, LARGE = 0.01, 0.05
# At this level, a gain that would have been found in four of five cases; above it nothing can be said.
LEVEL, POWERLESS = 0.05, 0.05
GAINED = Rule(
    "gained_on_data",
    look_if=f"no gain on any given data set with an interval above 0; or a loss of {number(SMALLEST)} on one",
    problem_if=f"none gained, and all lost more than {number(LARGE)}, intervals below 0",
    reason=f"`not measured` if not even {number(POWERLESS)} would be found in four of five cases",
)
LOST = Rule(
    "lost_on_sample",
    look_if=f"a loss of more than {number(SMALLEST)}, interval below 0",
    problem_if=f"more than {number(LARGE)} on both the pairs and the queries, and no gain on given data",
    reason="tuning for one domain usually costs a little elsewhere; one data set alone convicts nobody",
)


@dataclass(frozen=True)
class BaseComparison:
    """One data set with the vectors of both.

    Attributes:
        base: the same texts with the base's vectors, under the base's prompts and similarity.
        is_given: whether the data set is the user's own, not the embedded sample's.
    """

    tuned: Measured
    base: Measured
    is_given: bool

    @property
    def name(self) -> str:
        return self.tuned.name

    @property
    def scores(self) -> tuple[ResampledScore, ResampledScore]:
        """Of the tuned checkpoint and of the base."""
        return tuple(one.score(one.similarities()) for one in (self.tuned, self.base))  # type: ignore[return-value]

    @property
    def gain(self) -> ResampledScore:
        """Tuned − base, paired."""
        tuned, base = self.scores
        return tuned.minus(base)


def measure_tuned(tuned: Checkpoint, measured: Sequence[Measured], sample: Material) -> list[Measured]:
    """What was measured of the tuned checkpoint, and the sample where that was not; the user's own data first.

    Raises:
        MeasureError: if a vector is not finite.
    """
    ours: list[Measured] = list(measured)
    data = [one.pairs if isinstance(one, MeasuredPairs) else one.collection for one in measured]
    ours += [measure_pairs(tuned, pairs) for pairs in sample.pairs if pairs not in data]
    ours += [measure_collection(tuned, collection) for collection in sample.collections if collection not in data]
    return sorted(ours, key=lambda one: _is_of(one, sample))


def measure_beside(ours: Sequence[Measured], base: Checkpoint, sample: Material) -> list[BaseComparison]:
    """What was measured of the tuned checkpoint, with the base's vectors.

    Raises:
        MeasureError: if a vector is not finite.
    """
    return [BaseComparison(one, of_base(base, one), is_given=not _is_of(one, sample)) for one in ours]


def _is_of(one: Measured, sample: Material) -> bool:
    return one.pairs in sample.pairs if isinstance(one, MeasuredPairs) else one.collection in sample.collections


def of_base(base: Checkpoint, one: Measured) -> Measured:
    """The same data set with the base's vectors: its scorer, and so its resamples, are shared."""
    similarity = declared_similarity(base)
    if isinstance(one, MeasuredPairs):
        distinct = list(dict.fromkeys([*one.pairs.firsts, *one.pairs.seconds]))
        place = {text: index for index, text in enumerate(distinct)}
        vectors = Encoder(base.reading("text")).encode_texts(distinct)
        sides = [
            Pass({SERVED: vectors[[place[text] for text in side]]}) for side in (one.pairs.firsts, one.pairs.seconds)
        ]
        return replace(one, firsts=sides[0], seconds=sides[1], similarity=similarity, baselines={})
    queries = Encoder(base.reading("query")).encode_texts(one.collection.queries)
    documents = Encoder(base.reading("document")).encode_texts(one.collection.documents)
    return replace(
        one, queries=Pass({SERVED: queries}), documents=Pass({SERVED: documents}), similarity=similarity, baselines={}
    )


def gain_findings(beside: Sequence[BaseComparison], *, is_tuned: bool = True) -> list[Finding]:
    """What was gained on the given data, if any was given, and what was lost on the sample.

    Args:
        is_tuned: false if the weights are the base's, so that only how texts are read can differ.
    """
    given = [one for one in beside if one.is_given]
    sample = [one for one in beside if not one.is_given]
    gains = any(one.gain.estimate().is_above_zero for one in given)
    findings = [_of_given(given, gains=gains)] if given else []
    return [*findings, *([_of_sample(sample, gains=gains, is_tuned=is_tuned)] if sample else [])]


def _of_given(given: Sequence[BaseComparison], *, gains: bool) -> Finding:
    """``look`` without a clear gain; ``problem`` for a large and clear loss on all of the data, and no gain on any."""
    values = mean_gain([one.gain for one in given]).estimate()
    said = _all_said(given, values)
    losses = [one for one in given if one.gain.estimate().is_below_zero and one.gain.value < -SMALLEST]
    if gains:
        but = f", and lost on {' and '.join(one.name for one in losses)}" if losses else ""
        level: Level = "look" if losses else "ok"
        won = sum(one.gain.estimate().is_above_zero for one in given)
        where = f" on {won} of {len(given)} data sets" if won < len(given) else ""
        words = ("One kind of texts was won at the price of another.", "Mix texts of both into the training.")
        return GAINED.finding(level, f"On the given data, it gained{where}{but}: {said}.", *words, *values)
    if losses:
        is_large = len(losses) == len(given) and all(one.gain.value < -LARGE for one in losses)
        return GAINED.finding(
            "problem" if is_large else "look",
            f"On the given data, it does worse than the base: {said}.",
            "The tuning made it worse at what it is for, if these texts are like those it was tuned for.",
            "Look at the learning rate, the labels (are they the right way round?), and the negatives; until then "
            "serve the base.",
            *values,
        )
    powers = [power for one in given if (power := one.gain.detectable(LEVEL)) is not None]
    if not powers or min(powers) > POWERLESS:
        within = f": only a difference of {shown(min(powers))} would be found" if powers else ""
        return GAINED.finding(
            "not measured",
            f"Whether it gained on the given data could not be told{within} ({said}).",
            "",
            "Give more scored pairs (500) or judged queries (100).",
            *values,
        )
    return GAINED.finding(
        "look",
        f"On the given data, it gained nothing for certain: {said}.",
        f"A difference of {shown(min(powers))} would have been found in four of five cases.",
        "Train longer or on more data, or check that these texts are what it was tuned for.",
        *values,
    )


def _of_sample(sample: Sequence[BaseComparison], *, gains: bool, is_tuned: bool) -> Finding:
    """``problem`` only if it lost much on all of the sample and gained on none of the given data."""
    values = mean_gain([one.gain for one in sample]).estimate()
    said = _all_said(sample, values)
    losses = [one for one in sample if one.gain.estimate().is_below_zero and one.gain.value < -SMALLEST]
    if not losses:
        return LOST.finding("ok", f"On the embedded sample, it lost nothing for certain: {said}.", "", "", *values)
    is_large = len(losses) == len(sample) > 1 and all(one.gain.value < -LARGE for one in losses)
    is_problem = is_large and not gains
    usual = "Some of what the base knows of other texts is gone, which is the usual price of tuning for one domain"
    meaning = "This is more than a tuning for one domain usually costs, and no gain is known that would be worth it."
    if not is_tuned:
        return LOST.finding(
            "problem" if is_problem else "look",
            f"On the embedded sample, it lost: {said}.",
            "The weights are the base's, so this is how it reads texts: tokens, pooling, prompts or limits.",
            "Copy the base's tokenizer and settings.",
            *values,
        )
    return LOST.finding(
        "problem" if is_problem else "look",
        f"On the embedded sample, it lost: {said}.",
        meaning if is_problem else f"{usual}.",
        "If it has to serve other texts too, mix general pairs into the training, lower the learning rate, or average "
        "its weights with the base's."
        + ("" if gains else " Give what it was tuned for (--pairs, --data) to see what was gained."),
        *values,
    )


def _all_said(every: Sequence[BaseComparison], mean: Estimate) -> str:
    said = [_said(one) for one in every]
    return "; ".join([*said, f"{with_interval(mean, signed=True)} on average"] if len(said) > 1 else said)


def _said(one: BaseComparison) -> str:
    tuned, base = one.scores
    gain = with_interval(tuned.minus(base).estimate(), signed=True)
    return f"{one.tuned.metric} {gain} on {one.name} ({shown(base.value)} → {shown(tuned.value)})"


THROUGH_LOOK, KEPT_LOOK = 0.05, 0.1
RULE = Rule(
    "cut_off",
    look_if=f"the base's threshold for {percent(LET_THROUGH)} of unrelated pairs lets {percent(THROUGH_LOOK)} through "
    f"now, or keeps {percent(KEPT_LOOK)} less of the matching ones; either clearly, by McNemar's test "
    "([switch.md](switch.md))",
    reason="five times as many, or a tenth fewer: whoever compares scores with a number has to change it",
)


@dataclass(frozen=True)
class CutOff:
    """The base's threshold that lets 1 % of unrelated pairs through, and what it does to the tuned checkpoint.

    Attributes:
        base: the threshold.
        tuned: the one that lets as many through (``embaudit.corpora.downstream.material``).
        moved: tuned − base, paired.
        is_clear: whether the base's threshold clearly lets another share of unrelated pairs through now, or keeps
            another one of the matching pairs.
        through: the share of unrelated pairs that the base's threshold lets through now.
        kept_before, kept: the share of matching pairs that it kept, and keeps now.
    """

    name: str
    base: float
    tuned: float
    moved: Estimate
    is_clear: bool
    through: float
    kept_before: float
    kept: float


def measure_cut_off(each: BaseComparison) -> CutOff | None:
    """None for a collection, or if there are too few matching or unrelated pairs, or two similarities."""
    one, two = each.tuned, each.base
    if not isinstance(one, MeasuredPairs) or not isinstance(two, MeasuredPairs) or one.similarity != two.similarity:
        return None
    high, low = one.pairs.is_matching, one.pairs.is_unrelated
    if min(int(high.sum()), int(low.sum())) < MIN_PAIRS:
        return None
    ours, theirs, units = one.similarities(), two.similarities(), one.pairs.units
    base = float(np.quantile(theirs[low], 1 - LET_THROUGH, method="inverted_cdf"))
    ends = (-1.0, 1.0) if one.similarity == "cosine" else None
    same_share = transferred(theirs[low], ours[low], units[low], base, ends)
    # Of fewer than a hundred unrelated pairs, the base's lets none through, which is the share of many numbers.
    tuned = same_share.value
    if tuned is None:
        tuned = float(np.quantile(ours[low], 1 - LET_THROUGH, method="inverted_cdf"))
    return CutOff(
        one.name,
        base,
        tuned,
        Estimate(
            tuned - base,
            None if same_share.low is None else same_share.low - base,
            None if same_share.high is None else same_share.high - base,
        ),
        any(lets_other_share_through(theirs[kind], ours[kind], units[kind], base) for kind in (low, high)),
        float((ours[low] > base).mean()),
        float((theirs[high] > base).mean()),
        float((ours[high] > base).mean()),
    )


def cut_off_findings(found: Sequence[CutOff]) -> list[Finding]:
    """``look`` if a cut-off of the base would let through or drop clearly more now, where it moved most."""
    if not found:
        return []
    worst = max(found, key=lambda one: abs(one.moved.value or 0.0))
    values, has_effect = worst.moved, worst.through >= THROUGH_LOOK or worst.kept <= worst.kept_before - KEPT_LOOK
    sentence = (
        f"On {worst.name}, the threshold that lets 1 % of unrelated pairs through is {shown(worst.tuned)}; for the "
        f"base it is {shown(worst.base)}"
    )
    if not (worst.is_clear and has_effect):
        return [RULE.finding("ok", f"{sentence}. A cut-off chosen with the base would still do.", "", "", *values)]
    return [
        RULE.finding(
            "look",
            f"{sentence}. That one would let {100 * worst.through:.0f} % of them through now, and keep "
            f"{100 * worst.kept:.0f} % of matching pairs instead of {100 * worst.kept_before:.0f} %.",
            "A cut-off that was chosen with the base means something else now.",
            f"Change it where scores are compared with a number, here to {shown(worst.tuned)}.",
            *values,
        )
    ]
