"""The sequential search: who is kept, in which order draws are spent, what is missed."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.measures.sticky.scan import ScanInputs, ScanScores
from embaudit.measures.sticky.search import (
    CHOSEN_DRAWS,
    MIN_FOR_ORDER,
    Cut,
    grade_is_open,
    keep_worst,
    miss_rate,
    order_draws,
    reaches_threshold,
    undecided_tokens,
    would_survive,
)
from embaudit.measures.sticky.validation import ValidationInputs

U = 0.3


def distinct_scores(count: int, seed: int) -> ScanScores:
    generator = np.random.default_rng(seed)
    return ScanScores(generator.permutation(count) / 7.0, generator.permutation(count) / 11.0)


def slow_keep(scores: ScanScores, keep: int) -> set[int]:
    """One turn after the other: most pull, least slope, next most pull …; a token taken already costs no place."""
    by_pull = sorted(range(len(scores.pull)), key=lambda t: -scores.pull[t])
    by_slope = sorted(range(len(scores.slope)), key=lambda t: scores.slope[t])
    kept: set[int] = set()
    for most, least in zip(by_pull, by_slope, strict=True):
        for token in (most, least):
            if len(kept) < keep:
                kept.add(token)
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
    scores = ScanScores(generator.integers(0, 4, 30) / 4, generator.integers(0, 4, 30) / 4)
    kept, cut = keep_worst(scores, keep)
    assert len(kept) == keep
    assert cut.survivors(scores)[kept].all()
    # Who passes without being kept is as bad as the mildest kept one, and no worse.
    others = np.setdiff1d(np.flatnonzero(cut.survivors(scores)), kept)
    assert (scores.pull[others] <= (np.inf if cut.pull is None else cut.pull)).all()
    assert (scores.slope[others] >= (-np.inf if cut.slope is None else cut.slope)).all()


def test_one_place_goes_to_the_most_pulling_and_slopes_have_no_say() -> None:
    scores = ScanScores(np.array([0.1, 0.9, 0.5]), np.array([-5.0, 0.8, 0.2]))
    kept, cut = keep_worst(scores, 1)
    assert kept.tolist() == [1]
    assert (cut.pull, cut.slope) == (0.9, None)
    assert cut.survivors(scores).tolist() == [False, True, False]


def test_undefined_scores_take_no_place() -> None:
    scores = ScanScores(np.array([np.nan, 0.1, 0.2, 0.3]), np.array([np.nan, 0.3, 0.2, 0.1]))
    assert keep_worst(scores, 3)[0].tolist() == [1, 2, 3]
    assert keep_worst(scores, 4)[0].tolist() == [1, 2, 3]
    # Draws without a point below u: retention has all the places, and nobody survives by pull.
    kept, cut = keep_worst(ScanScores(np.full(4, np.nan), np.array([0.4, 0.1, 0.3, 0.2])), 2)
    assert kept.tolist() == [1, 3]
    assert (cut.pull, cut.slope) == (None, 0.2)
    assert cut.survivors(ScanScores(np.full(2, np.nan), np.array([0.15, 0.25]))).tolist() == [True, False]


def synthetic(tokens: int, noise: list[float], seed: int = 0) -> tuple[ScanInputs, np.ndarray, np.ndarray]:
    """Tokens that keep a share of every similarity, seen through draws of different noise: inputs, shares, after."""
    generator = np.random.default_rng(seed)
    draws, anchors = len(noise), 9
    # The same similarities in every draw: draws differ by their noise only.
    before = generator.permuted(np.tile(np.linspace(-0.5, 0.9, anchors), (draws, 1)), axis=1)
    shares = generator.uniform(0.2, 1.0, tokens)
    errors = generator.normal(size=(tokens, draws, anchors)) * np.array(noise)[None, :, None]
    inputs = ScanInputs((None,) * draws, np.empty((anchors, 0)), before, U)  # type: ignore[arg-type]
    return inputs, shares, shares[:, None, None] * before + errors


def slow_scores(inputs: ScanInputs, draws: list[int], after: np.ndarray) -> tuple[list[float], list[float]]:
    """(pull, slope) of each token, point by point."""
    pulls, slopes = [], []
    for token in after:
        x = [inputs.before[d, s] for d in draws for s in range(inputs.before.shape[1])]
        y = [token[d, s] for d in draws for s in range(inputs.before.shape[1])]
        slopes.append(float(np.polyfit(x, y, 1)[0]))
        below = [(a, b) for a, b in zip(x, y, strict=True) if a < inputs.u]
        pulls.append(1 - sum(abs(b - inputs.u) for _, b in below) / sum(abs(a - inputs.u) for a, _ in below))
    return pulls, slopes


def test_the_draw_that_says_most_comes_first() -> None:
    inputs, shares, after = synthetic(60, [0.3, 0.2, 0.3, 0.01, 0.2, 0.3, 0.3, 0.2])
    # The full scores themselves see the shares through all the noise.
    assert np.corrcoef(shares, slow_scores(inputs, list(range(8)), after)[1])[0, 1] > 0.9
    assert order_draws(inputs, after)[0] == 3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_next_draw_agrees_best_with_the_scores_from_all(seed: int) -> None:
    inputs, _, after = synthetic(35, [0.2] * 8, seed)
    order = order_draws(inputs, after)
    full = slow_scores(inputs, list(range(8)), after)

    def agreement(draws: list[int]) -> float:
        found = slow_scores(inputs, draws, after)
        return float(sum(np.corrcoef(a, b)[0, 1] for a, b in zip(found, full, strict=True)))

    for place in range(CHOSEN_DRAWS):
        rest = [draw for draw in range(8) if draw not in order[:place]]
        best = max(rest, key=lambda draw: agreement([*order[:place], draw]))
        assert order[place] == best, place
    assert order[CHOSEN_DRAWS:] == sorted(order[CHOSEN_DRAWS:])


@given(tokens=st.integers(1, 40), draws=st.integers(1, 9), seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_an_order_holds_every_draw_once(tokens: int, draws: int, seed: int) -> None:
    inputs, _, after = synthetic(tokens, [0.2] * draws, seed)
    order = order_draws(inputs, after)
    assert sorted(order) == list(range(draws))
    if tokens < MIN_FOR_ORDER:
        assert order == list(range(draws))


def test_a_draw_without_a_point_below_u_is_no_error_and_not_the_first() -> None:
    inputs, _, after = synthetic(40, [0.1] * 4)
    inputs.before[2] = np.linspace(0.5, 0.9, 9)
    order = order_draws(inputs, after)
    assert sorted(order) == [0, 1, 2, 3]
    assert order[0] != 2


def test_survivors_of_all_rungs_one_token_and_rung_at_a_time() -> None:
    inputs, _, after = synthetic(50, [0.2] * 6, seed=4)
    order = [4, 1, 5, 0, 2, 3]
    cuts = [(1, Cut(0.4, 0.35)), (3, Cut(0.35, 0.3))]
    expected = []
    for token in after:
        passes = True
        for spent, cut in cuts:
            (pull,), (slope,) = slow_scores(inputs, order[:spent], token[None])
            passes = passes and (pull >= cut.pull or slope <= cut.slope)
        expected.append(passes)
    assert 0 < sum(expected) < 50
    assert would_survive(inputs, after, order, cuts).tolist() == expected
    assert would_survive(inputs, after, order, []).all()


def test_a_pilot_that_is_narrowed_itself_survives_as_it_was_narrowed() -> None:
    inputs, _, after = synthetic(50, [0.2] * 6, seed=5)
    order = [3, 0, 1, 2, 4, 5]
    scores = ScanScores(*(np.array(values) for values in slow_scores(inputs, order[:2], after)))
    kept, cut = keep_worst(scores, 12)
    loose = Cut(cut.pull - 1e-9, cut.slope + 1e-9)
    assert np.flatnonzero(would_survive(inputs, after, order, [(2, loose)])).tolist() == kept.tolist()


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


def test_a_candidate_stops_two_standard_errors_short_of_the_threshold() -> None:
    values = np.array([0.10, 0.29, 0.31, 0.50, 0.9])
    # Means over tokens are 0 in each resample; every token's standard deviation is 0.1.
    deviations = 0.1 * np.array([[1, -1, 1, -1, 0], [-1, 1, -1, 1, 0]])
    resampled = values - values.mean() + deviations
    assert reaches_threshold("definition", values, resampled, 0.5).tolist() == [False, False, True, True, True]
    assert reaches_threshold("retention", values, resampled, 0.1).tolist() == [True, True, False, False, False]
    # What moves all candidates alike moves the threshold too.
    together = resampled + np.array([[3.0], [-2.0]])
    assert reaches_threshold("definition", values, together, 0.5).tolist() == [False, False, True, True, True]


def test_everyone_goes_on_without_a_threshold_and_undefined_resamples_are_passed_over() -> None:
    values, resampled = np.array([0.1, 0.5]), np.array([[0.1, 0.5], [0.2, 0.4]])
    assert reaches_threshold("retention", values, resampled, None).tolist() == [True, True]
    with_gap = np.concatenate([resampled, [[np.nan, np.nan]]])
    with np.errstate(all="ignore"), pytest.warns(RuntimeWarning, match="empty slice"):
        assert reaches_threshold("definition", values, with_gap, 0.3).tolist() == [False, True]


def test_a_grade_is_open_near_the_borders_of_moderate_and_strong_only() -> None:
    noise = np.random.default_rng(0).normal(0, 0.02, 4_000)[:, None]
    losses = np.array([0.1, 0.22, 0.26, 0.35, 0.48, 0.6])
    assert grade_is_open(losses, losses + noise).tolist() == [False, True, True, False, True, False]
    assert not grade_is_open(losses, np.tile(losses, (50, 1))).any()


def test_whoever_could_be_flagged_or_graded_up_goes_on_and_no_control() -> None:
    generator = np.random.default_rng(5)
    before = np.linspace(-0.4, 0.9, 90)
    # Forty ordinary candidates, one on the border of moderate, one far beyond all; ten controls.
    slopes = np.array([*np.linspace(0.68, 0.72, 40), 0.6, 0.2, *[0.8] * 10])
    after = slopes[:, None] * before + generator.normal(0, 0.01, (52, 90))
    points = tuple((pair, "suffix") for pair in range(90))
    common = ValidationInputs((), points, np.empty((0, 0)), before, U)  # type: ignore[arg-type]
    weights = generator.multinomial(90, np.full(90, 1 / 90), size=300)
    ids = np.arange(100, 152)
    lists: dict[Any, list[int]] = {"definition": [], "retention": list(range(100, 142))}
    found = undecided_tokens(common, ids, after, lists, list(range(142, 152)), weights)
    # A definition list of nobody has no threshold and nobody to go on for it.
    assert {140, 141} <= set(found)
    assert set(found) <= set(range(100, 142))
    assert len(found) < 12
