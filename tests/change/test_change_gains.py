"""Scores and scale beside the base, on pairs whose similarities are chosen: every level, and figures by a loop."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy
from some_rows import mostly_slow

from embaudit.measures.quality.material import ScoredPairs
from embaudit.measures.quality.measured import MeasuredPairs
from embaudit.measures.quality.passes import SERVED, Pass
from embaudit.measures.quality.scores import PairScorer
from embaudit.questions.change.gains import BaseComparison, cut_off_findings, gain_findings, measure_cut_off

MANY, FEW = 500, 15


def pairs_of(count: int, name: str) -> ScoredPairs:
    scores = np.random.default_rng(7).integers(0, 6, count).astype(float)
    return ScoredPairs(name, tuple(f"a{n}" for n in range(count)), tuple(f"b{n}" for n in range(count)), tuple(scores))


def measured(pairs: ScoredPairs, noise: float, *, shift: float = 0.0, seed: int = 1) -> MeasuredPairs:
    """Vectors whose cosines are the scores with noise: more noise, lower ρ."""
    drawn = np.random.default_rng(seed).normal(size=len(pairs.scores))
    cosines = np.clip(0.15 * pairs.wanted + noise * drawn + shift, -1, 1)
    ones = np.stack([np.ones_like(cosines), np.zeros_like(cosines)], axis=1)
    others = np.stack([cosines, np.sqrt(1 - cosines**2)], axis=1)
    return MeasuredPairs(pairs, PairScorer(pairs), Pass({SERVED: ones}), Pass({SERVED: others}), [], [], "cosine", {})


def beside(tuned: float, base: float, *, is_given: bool, count: int = MANY, name: str = "x") -> BaseComparison:
    pairs = pairs_of(count, name)
    one = measured(pairs, tuned)
    other = measured(pairs, base)
    return BaseComparison(one, replace(other, scorer=one.scorer), is_given)


# Noise by which ρ is about .99, .95, .86 and .6.
LOW, MIDDLE, HIGH, HUGE = 0.03, 0.08, 0.15, 0.3
GAIN, SAME, LOSS, LARGE_LOSS = (LOW, HIGH), (MIDDLE, MIDDLE * 1.001), (MIDDLE * 1.4, MIDDLE), (HUGE, LOW)


@pytest.mark.parametrize(
    ("given", "sample", "levels"),
    mostly_slow(
        [
            ((), (SAME,), {"lost_on_sample": "ok"}),
            ((), (LOSS,), {"lost_on_sample": "look"}),
            # A large loss on one data set alone convicts nobody.
            ((), (LARGE_LOSS,), {"lost_on_sample": "look"}),
            ((), (LARGE_LOSS, SAME), {"lost_on_sample": "look"}),
            ((), (LARGE_LOSS, LARGE_LOSS), {"lost_on_sample": "problem"}),
            # With a gain where it counts, it is a trade.
            ((GAIN,), (LARGE_LOSS, LARGE_LOSS), {"gained_on_data": "ok", "lost_on_sample": "look"}),
            ((SAME,), (LARGE_LOSS, LARGE_LOSS), {"gained_on_data": "look", "lost_on_sample": "problem"}),
            ((GAIN,), (SAME,), {"gained_on_data": "ok", "lost_on_sample": "ok"}),
            ((GAIN, LOSS), (SAME,), {"gained_on_data": "look", "lost_on_sample": "ok"}),
            ((LOSS,), (SAME,), {"gained_on_data": "look", "lost_on_sample": "ok"}),
            ((LARGE_LOSS,), (SAME,), {"gained_on_data": "problem", "lost_on_sample": "ok"}),
            ((LARGE_LOSS, SAME), (SAME,), {"gained_on_data": "look", "lost_on_sample": "ok"}),
        ],
        7,
    ),
)
def test_levels(
    given: tuple[tuple[float, float], ...], sample: tuple[tuple[float, float], ...], levels: dict[str, str]
) -> None:
    data = [beside(*noise, is_given=True, name=f"g{n}") for n, noise in enumerate(given)]
    data += [beside(*noise, is_given=False, name=f"s{n}") for n, noise in enumerate(sample)]
    assert {finding.name: finding.level for finding in gain_findings(data)} == levels


def test_too_few_pairs_tell_nothing() -> None:
    noisy = pairs_of(FEW, "few")
    one, other = measured(noisy, HIGH, seed=1), measured(noisy, HIGH, seed=2)
    (finding,) = gain_findings([BaseComparison(one, replace(other, scorer=one.scorer), is_given=True)])
    assert (finding.name, finding.level) == ("gained_on_data", "not measured")


def test_gain_is_the_difference_of_two_scores_on_the_same_resamples() -> None:
    each = beside(*GAIN, is_given=True)
    wanted = each.tuned.pairs.wanted  # type: ignore[union-attr]
    sides = [one.similarities() for one in (each.tuned, each.base)]
    by_scipy = [float(scipy.stats.spearmanr(values, wanted).statistic) for values in sides]
    assert each.gain.value == pytest.approx(by_scipy[0] - by_scipy[1], abs=1e-9)
    for row in (0, 17):
        times = each.tuned.scorer.weights[row].astype(int)  # type: ignore[union-attr]
        drawn = np.repeat(np.arange(len(wanted)), times)
        one, two = (float(scipy.stats.spearmanr(values[drawn], wanted[drawn]).statistic) for values in sides)
        assert each.gain.resampled[row] == pytest.approx(one - two, abs=1e-9)


@pytest.mark.parametrize(("shift", "level"), [(0.0, "ok"), (0.01, "ok"), (0.2, "look"), (-0.35, "look")])
def test_a_cut_off_of_the_base(shift: float, level: str) -> None:
    pairs = pairs_of(MANY, "x")
    one, two = measured(pairs, 1.05 * MIDDLE, shift=shift), measured(pairs, MIDDLE)
    found = measure_cut_off(BaseComparison(one, replace(two, scorer=one.scorer), is_given=False))
    assert found is not None
    unrelated = [place for place, score in enumerate(pairs.scores) if score <= 1]
    matching = [place for place, score in enumerate(pairs.scores) if score >= 4]
    ours, theirs = one.similarities(), two.similarities()
    cut = sorted(theirs[unrelated])[math.ceil(0.99 * len(unrelated)) - 1]
    assert found.base == pytest.approx(cut)
    assert found.through == sum(ours[place] > cut for place in unrelated) / len(unrelated)
    assert found.kept == sum(ours[place] > cut for place in matching) / len(matching)
    (finding,) = cut_off_findings([found])
    assert (finding.name, finding.level) == ("cut_off", level)


@pytest.mark.parametrize("kind", ["another similarity", "too few"])
def test_no_cut_off_where_there_is_none(kind: str) -> None:
    pairs = pairs_of(FEW if kind == "too few" else MANY, "x")
    one, two = measured(pairs, LOW), measured(pairs, LOW)
    two = replace(two, similarity="dot") if kind == "another similarity" else two
    assert measure_cut_off(BaseComparison(one, two, is_given=False)) is None
    assert cut_off_findings([]) == []
