"""The search: what embeddings predict, who is kept, how far halves agree, and what is missed."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_points import moments_of, points_of

from embaudit.measures.sticky.moments import Scores, score
from embaudit.measures.sticky.points import Points
from embaudit.measures.sticky.search import (
    MIN_PILOT,
    Stage,
    agreement,
    halves,
    keep_worst,
    miss_rate,
    predict,
    reliability,
    weigh_evidence,
)

U = 0.3


def distinct_scores(count: int, seed: int) -> Scores:
    generator = np.random.default_rng(seed)
    return Scores(generator.permutation(count) / 7.0, generator.permutation(count) / 11.0)


def slow_keep(scores: Scores, keep: int) -> set[int]:
    """Least slope, most pull, least slope, and again; a token that is taken already costs no place."""
    by_pull = sorted(range(len(scores.pull)), key=lambda t: -scores.pull[t])
    by_slope = sorted(range(len(scores.slope)), key=lambda t: scores.slope[t])
    kept: set[int] = set()
    while len(kept) < keep and (by_pull or by_slope):
        for waiting in (by_slope, by_pull, by_slope):
            if waiting and len(kept) < keep:
                kept.add(waiting.pop(0))
    return kept


@given(seed=st.integers(0, 10**6), count=st.integers(1, 60), keep=st.integers(1, 70))
@settings(max_examples=80)
def test_who_is_kept_and_that_the_cut_says_the_same(seed: int, count: int, keep: int) -> None:
    scores = distinct_scores(count, seed)
    kept, cut = keep_worst(scores, keep)
    assert kept.tolist() == sorted(slow_keep(scores, keep))
    assert len(kept) == min(keep, count)
    # With distinct values the cut tells the kept from the dropped exactly.
    assert np.flatnonzero(cut.survivors(scores)).tolist() == kept.tolist()


@given(seed=st.integers(0, 10**6), keep=st.integers(1, 30))
@settings(max_examples=60)
def test_with_ties_every_kept_token_passes_the_cut(seed: int, keep: int) -> None:
    generator = np.random.default_rng(seed)
    scores = Scores(generator.integers(0, 4, 30) / 4, generator.integers(0, 4, 30) / 4)
    kept, cut = keep_worst(scores, keep)
    assert len(kept) == keep
    assert cut.survivors(scores)[kept].all()
    # Who passes without being kept is as bad as the mildest kept one, and no worse.
    others = np.setdiff1d(np.flatnonzero(cut.survivors(scores)), kept)
    assert (scores.pull[others] <= (np.inf if cut.pull is None else cut.pull)).all()
    assert (scores.slope[others] >= (-np.inf if cut.slope is None else cut.slope)).all()


def test_one_place_goes_to_the_least_retaining_and_pull_has_no_say() -> None:
    scores = Scores(np.array([0.1, 0.9, 0.5]), np.array([-5.0, 0.8, 0.2]))
    kept, cut = keep_worst(scores, 1)
    assert kept.tolist() == [0]
    assert (cut.pull, cut.slope) == (None, -5.0)
    assert cut.survivors(scores).tolist() == [True, False, False]


def test_undefined_scores_take_no_place() -> None:
    scores = Scores(np.array([np.nan, 0.1, 0.2, 0.3]), np.array([np.nan, 0.3, 0.2, 0.1]))
    assert keep_worst(scores, 3)[0].tolist() == [1, 2, 3]
    assert keep_worst(scores, 4)[0].tolist() == [1, 2, 3]
    # Draws without a point below u: retention has all the places, and nobody survives by pull.
    kept, cut = keep_worst(Scores(np.full(4, np.nan), np.array([0.4, 0.1, 0.3, 0.2])), 2)
    assert kept.tolist() == [1, 3]
    assert (cut.pull, cut.slope) == (None, 0.2)
    assert cut.survivors(Scores(np.full(2, np.nan), np.array([0.15, 0.25]))).tolist() == [True, False]


def vocabulary_with_a_cause(seed: int = 0, tokens: int = 900, noise: float = 0.3) -> tuple[np.ndarray, Scores]:
    """Embeddings of which two directions make slope and pull, but for noise; and the scores."""
    generator = np.random.default_rng(seed)
    embeddings = generator.normal(size=(tokens, 12))
    slope, pull = (embeddings[:, place] + noise * generator.normal(size=tokens) for place in (0, 1))
    return embeddings, Scores(pull, slope)


def test_a_prediction_finds_what_the_embedding_causes() -> None:
    embeddings, scores = vocabulary_with_a_cause()
    pilot = np.sort(np.random.default_rng(1).choice(900, 300, replace=False))
    predicted = predict(embeddings, pilot, scores.at(pilot), seed=0)
    rest = np.setdiff1d(np.arange(900), pilot)
    for name in ("definition", "retention"):
        truth, guess = scores.of(name), predicted.of(name)
        assert scipy.stats.spearmanr(truth[rest], guess[rest]).statistic > 0.9
        # Out of fold: no better on the tokens that it learned from.
        assert scipy.stats.spearmanr(truth[pilot], guess[pilot]).statistic == pytest.approx(
            scipy.stats.spearmanr(truth[rest], guess[rest]).statistic, abs=0.04
        )


def test_a_prediction_of_noise_is_none() -> None:
    """With as many columns as tokens an in-sample fit would be perfect."""
    generator = np.random.default_rng(0)
    embeddings, pilot = generator.normal(size=(400, 200)), np.arange(0, 400, 2)
    scores = Scores(generator.normal(size=200), generator.normal(size=200))
    predicted = predict(embeddings, pilot, scores, seed=0)
    found = agreement(predicted.slope[pilot], scores.slope)
    assert found.rho is not None
    assert abs(found.rho) < 0.25


def test_the_norm_of_an_embedding_counts() -> None:
    generator = np.random.default_rng(2)
    directions = generator.normal(size=(600, 8))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    norms = generator.uniform(0.2, 2, 600)
    pilot = np.arange(300)
    predicted = predict(directions * norms[:, None], pilot, Scores(norms[:300], -norms[:300]), seed=0)
    assert scipy.stats.spearmanr(predicted.pull[300:], norms[300:]).statistic > 0.95


def test_a_prediction_from_too_few_tokens_says_nothing() -> None:
    embeddings, scores = vocabulary_with_a_cause()
    pilot = np.arange(MIN_PILOT)
    undefined = Scores(np.where(np.arange(MIN_PILOT) == 3, np.nan, scores.pull[pilot]), scores.slope[pilot])
    predicted = predict(embeddings, pilot, undefined, seed=0)
    assert np.isnan(predicted.pull).all()
    assert np.isfinite(predicted.slope).all()


def test_evidence_is_weighed_as_the_pilot_says() -> None:
    generator = np.random.default_rng(3)
    truth = generator.normal(size=4_000)
    good, poor = truth + 0.2 * generator.normal(size=4_000), truth + 2 * generator.normal(size=4_000)
    pilot, rest = np.arange(2_000), np.arange(2_000, 4_000)
    blend = weigh_evidence([poor[pilot], good[pilot]], truth[pilot], [poor[rest], good[rest]])
    errors = [np.square(one - truth[rest]).mean() for one in (blend, good[rest], poor[rest])]
    assert errors[0] < errors[1] < errors[2]
    # Independent errors of variance .04 and 4, a truth of variance 1: 1/(1 + 25 + .25).
    assert errors[0] == pytest.approx(1 / 26.25, rel=0.1)
    few = slice(0, MIN_PILOT - 1)
    last = weigh_evidence([poor[few], good[few]], truth[few], [poor[rest], good[rest]])
    assert np.array_equal(last, good[rest])


def test_a_stage_judges_its_pilot_as_it_judges_others() -> None:
    embeddings, scores = vocabulary_with_a_cause(noise=0.5)
    pilot = np.arange(300)
    predicted = predict(embeddings, pilot, scores.at(pilot), 0)
    generator = np.random.default_rng(5)
    drawn = Scores(scores.pull + generator.normal(size=900), scores.slope + generator.normal(size=900))
    stage = Stage(predicted.at(pilot), drawn.at(pilot), scores.at(pilot))
    others = np.arange(300, 900)
    judged = stage.judge(predicted.at(others), drawn.at(others))
    for name in ("definition", "retention"):
        readings = (judged, drawn.at(others), predicted.at(others))
        found = [scipy.stats.spearmanr(one.of(name), scores.of(name)[others]).statistic for one in readings]
        assert found[0] > max(found[1:])
    assert np.array_equal(stage.of_pilot().slope, stage.judge(predicted.at(pilot), drawn.at(pilot)).slope)
    # Before anything is drawn the prediction is all there is.
    first = Stage(predicted.at(pilot), None, scores.at(pilot))
    assert first.of_pilot() is first.predicted


def noisy(tokens: int, draws: int, anchors: int, groups: int, seed: int = 0) -> tuple[Points, np.ndarray, np.ndarray]:
    """Tokens that keep a share of every similarity, with effects of their own in every draw and to every anchor."""
    generator = np.random.default_rng(seed)
    before = generator.uniform(-0.5, 0.9, (draws, anchors))
    shares = generator.uniform(0.6, 1.0, tokens)
    own = generator.normal(0, 0.3, (tokens, draws, 1)) + generator.normal(0, 0.3, (tokens, 1, anchors))
    return points_of(before, U, groups=groups), shares, (shares[:, None, None] + own) * before


def test_halves_share_neither_draws_nor_anchors() -> None:
    points, _, after = noisy(200, 8, 20, 2)
    moments = moments_of(points, after)
    split = halves(points, moments, 7)
    order = np.random.default_rng([7, 8, 2])
    draws, groups = order.permutation(8), order.permutation(2)
    for side, found in enumerate(split[0]):
        x = points.before[np.ix_(draws[side::2], np.arange(groups[side], 20, 2))]
        for t in range(3):
            y = after[t][np.ix_(draws[side::2], np.arange(groups[side], 20, 2))].astype(np.float32)
            assert found.slope[t] == pytest.approx(np.polyfit(x.ravel(), y.ravel(), 1)[0], abs=1e-6)


def test_halves_with_shared_anchors_would_agree_on_the_anchors() -> None:
    """What one group of anchors cannot tell: tokens that differ in nothing but what they have to these anchors."""
    generator = np.random.default_rng(0)
    before = generator.uniform(-0.5, 0.9, (1, 10)) + generator.normal(0, 0.05, (8, 10))
    to_anchor = 1 + generator.normal(0, 0.5, (150, 1, 10))
    after = to_anchor * before + generator.normal(0, 0.02, (150, 8, 10))
    points = points_of(before, U, groups=2)
    moments = moments_of(points, after)
    found = reliability(halves(points, moments, 0))["retention"].rho
    shared = [score(points.at(range(side, 8, 2)), moments.at(slice(None), range(side, 8, 2))).slope for side in (0, 1)]
    assert np.corrcoef(*shared)[0, 1] > 0.9
    assert found is not None
    assert abs(found) < 0.25
    alone = points_of(before, U)
    assert halves(alone, moments_of(alone, after), 0) == []


def test_reliability_is_one_for_tokens_that_always_do_the_same_and_undefined_for_few_draws() -> None:
    before = np.random.default_rng(0).uniform(-0.5, 0.9, (6, 8))
    shares = np.linspace(0.2, 0.9, 40)
    points = points_of(before, U, groups=2)
    found = reliability(halves(points, moments_of(points, shares[:, None, None] * before), 0))
    assert found["retention"].rho == pytest.approx(1)
    few = points.at(range(3))
    undefined = reliability(halves(few, moments_of(few, shares[:, None, None] * before[:3]), 0))
    assert (undefined["definition"].rho, undefined["definition"].low) == (None, None)


def test_agreement_has_bonett_and_wrights_interval() -> None:
    generator = np.random.default_rng(1)
    first = generator.normal(size=200)
    second = first + generator.normal(size=200)
    second[7] = np.nan
    found = agreement(first, second)
    kept = np.delete(np.arange(200), 7)
    rho = float(scipy.stats.spearmanr(first[kept], second[kept]).statistic)
    half = 1.96 * ((1 + rho**2 / 2) / (199 - 3)) ** 0.5
    assert found.rho == pytest.approx(rho)
    assert (found.low, found.high) == pytest.approx(tuple(np.tanh(np.arctanh(rho) + np.array([-half, half]))))
    constant = agreement(np.zeros(20), first[:20])
    assert (constant.rho, constant.low, constant.high) == (None, None, None)
    assert agreement(first[:20], first[:20]).low is None


def binomial_tail(count: int, trials: int, p: float) -> float:
    """P(X ≥ count)."""
    return sum(comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(count, trials + 1))


def bisect(of_p: Any, wanted: float) -> float:
    """Where an increasing function of p in [0, 1] takes a value."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if of_p(middle) < wanted else (low, middle)
    return low


@pytest.mark.parametrize(("belonging", "missed"), [(20, 0), (20, 1), (20, 7), (20, 20), (1, 0), (1, 1), (90, 3)])
def test_the_miss_rate_and_its_interval_by_bisection(belonging: int, missed: int) -> None:
    belongs, survives = np.zeros(200, dtype=bool), np.zeros(200, dtype=bool)
    belongs[:belonging] = True
    survives[missed:150] = True
    found = miss_rate(belongs, survives)
    assert (found.belonging, found.missed) == (belonging, missed)
    assert found.rate == missed / belonging
    # Clopper–Pearson: the p under which so many, or so few, misses have a chance of 2.5 %.
    low = 0.0 if missed == 0 else bisect(lambda p: binomial_tail(missed, belonging, p), 0.025)
    high = 1.0 if missed == belonging else bisect(lambda p: binomial_tail(missed + 1, belonging, p), 0.975)
    assert found.low == pytest.approx(low, abs=1e-9)
    assert found.high == pytest.approx(high, abs=1e-9)


def test_no_rate_where_nothing_belongs() -> None:
    found = miss_rate(np.zeros(5, dtype=bool), np.zeros(5, dtype=bool))
    assert (found.belonging, found.missed, found.rate, found.low, found.high) == (0, 0, None, None, None)
