"""The sequential search: who is kept, in which order draws are spent, what is missed, and the books kept of it."""

from __future__ import annotations

from math import ceil, comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from embaudit.errors import MeasureError
from embaudit.profile import Rung, StickySettings, load_profile, profile_names
from embaudit.sticky.plan import choose_controls, choose_tokens, points_per_token
from embaudit.sticky.scan import ScanInputs, ScanScores
from embaudit.sticky.search import (
    CHOSEN_DRAWS,
    FEWEST_FOR_ORDER,
    Cut,
    grade_is_open,
    keep_worst,
    miss_rate,
    order_draws,
    reaches_threshold,
    undecided_tokens,
    would_survive,
)
from embaudit.sticky.tally import ScoreBoard, misses_of
from embaudit.sticky.validation import ValidationInputs

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
@settings(max_examples=80, deadline=None)
def test_who_is_kept_and_that_the_cut_says_the_same(seed: int, count: int, keep: int) -> None:
    scores = distinct_scores(count, seed)
    kept, cut = keep_worst(scores, keep)
    assert kept.tolist() == sorted(slow_keep(scores, keep))
    assert len(kept) == min(keep, count)
    # With distinct values the cut tells the kept from the dropped exactly.
    assert np.flatnonzero(cut.survivors(scores)).tolist() == kept.tolist()


@given(seed=st.integers(0, 10**6), keep=st.integers(1, 30))
@settings(max_examples=60, deadline=None)
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
@settings(max_examples=30, deadline=None)
def test_an_order_holds_every_draw_once(tokens: int, draws: int, seed: int) -> None:
    inputs, _, after = synthetic(tokens, [0.2] * draws, seed)
    order = order_draws(inputs, after)
    assert sorted(order) == list(range(draws))
    if tokens < FEWEST_FOR_ORDER:
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


@pytest.fixture
def board() -> ScoreBoard:
    """Ten tokens with one draw, four of them with three, two of those with fifteen; token 9 is the pilot's."""
    board = ScoreBoard()
    ids = np.arange(10)
    board.add(ids[:9], 1, ScanScores(np.linspace(0, 0.8, 9), np.linspace(0.9, 0.1, 9)))
    board.add(ids[5:9], 3, ScanScores(np.array([0.5, np.nan, 0.7, 0.6]), np.array([0.4, np.nan, 0.2, 0.3])))
    board.add(ids[7:9], 15, ScanScores(np.array([0.1, 0.2]), np.array([0.95, 0.85])))
    board.add(ids[9:], 15, ScanScores(np.array([0.15]), np.array([0.9])), is_pilot=True)
    return board


def test_rungs_count_the_tokens_that_got_at_least_so_many_draws(board: ScoreBoard) -> None:
    assert board.tokens == 10
    assert board.rungs() == [
        {"draws": 1, "tokens": 10},
        {"draws": 3, "tokens": 5},
        {"draws": 15, "tokens": 3},
    ]


def test_later_rungs_come_first_however_bad_the_dropped_looked(board: ScoreBoard) -> None:
    assert board.lowest_slopes(10) == [8, 9, 7, 5, 6, 4, 3, 2, 1, 0]
    assert board.lowest_slopes(2) == [8, 9]


def test_rows_of_the_board(board: ScoreBoard) -> None:
    rows = board.rows({"definition": [8, 9], "retention": [8, 7]})
    assert [row["token_id"] for row in rows] == list(range(10))
    assert [row["draws"] for row in rows] == [1] * 5 + [3] * 2 + [15] * 3
    assert [row["shortlisted_by"] for row in rows[6:]] == [None, "retention", "definition+retention", "definition"]
    assert [row["is_pilot"] for row in rows] == [False] * 9 + [True]
    assert (rows[6]["pull"], rows[6]["slope"]) == (None, None)
    assert (rows[7]["pull"], rows[7]["slope"]) == (0.1, 0.95)
    for name, best in (("pull_rank", [8, 9, 7, 5, 6, 4, 3, 2, 1, 0]), ("slope_rank", [8, 9, 7, 5, 6, 4, 3, 2, 1, 0])):
        assert [row["token_id"] for row in sorted(rows, key=lambda row: row[name])] == best, name


@given(seed=st.integers(0, 10**6), count=st.integers(1, 40))
@settings(max_examples=30, deadline=None)
def test_ranks_are_complete(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    board = ScoreBoard()
    for draws in (1, 3, 15):
        chosen = generator.permutation(count)[: max(1, count // draws)]
        values = np.where(generator.random((2, len(chosen))) < 0.2, np.nan, generator.normal(size=(2, len(chosen))))
        board.add(chosen, draws, ScanScores(*values))
    rows = board.rows({})
    for name in ("pull_rank", "slope_rank"):
        assert sorted(row[name] for row in rows) == list(range(1, board.tokens + 1))


def test_misses_by_protocol() -> None:
    pilot, survives = np.array([1, 2, 3, 4]), np.array([True, False, True, False])
    found = misses_of({"definition": [1, 2, 4, 99], "retention": [77]}, pilot, survives)
    assert found["definition"] is not None
    assert {name: found["definition"][name] for name in ("belonging", "missed", "rate")} == {
        "belonging": 3,
        "missed": 2,
        "rate": 2 / 3,
    }
    assert found["retention"] == {"belonging": 0, "missed": 0, "low": None, "high": None, "rate": None}
    assert misses_of({"definition": [1], "retention": [2]}, pilot, None) == {"definition": None, "retention": None}


def vocabulary(count: int) -> list[dict[str, Any]]:
    return [{"token_id": 3 * i, "is_reachable": True, "category": "ok", "origin": "word"} for i in range(count)]


SEQUENTIAL = StickySettings(search="sequential", pilot_share=0.1, rungs=(Rung(draws=1, keep=0.2), Rung(draws=15)))


@given(count=st.integers(1, 400), limit=st.integers(1, 500), seed=st.integers(0, 1_000))
@settings(max_examples=30, deadline=None)
def test_the_pilot_is_a_random_part_of_the_scanned_tokens(count: int, limit: int, seed: int) -> None:
    chosen = choose_tokens(vocabulary(count), SEQUENTIAL, limit, seed)
    assert len(chosen.token_ids) == min(count, limit)
    assert len(chosen.pilot) == ceil(0.1 * len(chosen.token_ids))
    assert set(chosen.pilot) <= set(chosen.token_ids) <= set(range(0, 3 * count, 3))
    assert chosen.pilot.tolist() == sorted(set(chosen.pilot.tolist()))
    again = choose_tokens(vocabulary(count), SEQUENTIAL, limit, seed)
    assert again.pilot.tolist() == chosen.pilot.tolist()


def test_every_token_is_as_likely_to_be_of_the_pilot_as_another() -> None:
    times = np.zeros(40)
    for seed in range(400):
        times[choose_tokens(vocabulary(40), SEQUENTIAL, None, seed).pilot // 3] += 1
    # 4 of 40, 400 times: binomial with mean 40 and standard deviation 6.
    assert times.sum() == 1_600
    assert times.min() > 40 - 5 * 6
    assert times.max() < 40 + 5 * 6


def test_an_exhaustive_search_needs_no_pilot() -> None:
    assert len(choose_tokens(vocabulary(50), StickySettings(), None, 0).pilot) == 0


def planned_encodes(chosen_tokens: int, pilot: int, settings: StickySettings) -> int:
    """What the search takes, rung by rung, and the validation if every candidate goes all the way."""
    listed = min(settings.longest_shortlist or chosen_tokens, ceil(settings.shortlist_share * chosen_tokens))
    encodes, rest, done = pilot * settings.scoring_pairs, chosen_tokens - pilot, 0
    rungs = settings.rungs if settings.search == "sequential" else (Rung(draws=settings.scoring_pairs),)
    for rung in rungs:
        encodes += rest * (rung.draws - done)
        done = rung.draws
        if rung.keep is not None:
            rest = min(rest, max(ceil(rung.keep * chosen_tokens), 4 * listed))
    return encodes + (2 * listed + settings.controls) * points_per_token(settings)


budgets = st.builds(
    StickySettings,
    search=st.sampled_from(["sequential", "exhaustive"]),
    rotate_operators=st.booleans(),
    validation_pairs=st.integers(10, 60),
    controls=st.integers(10, 40),
    longest_shortlist=st.integers(1, 40),
    pilot_share=st.floats(0.01, 0.3),
    rungs=st.builds(
        lambda first, second: (Rung(draws=1, keep=first), Rung(draws=4, keep=first * second), Rung(draws=15)),
        st.floats(0.02, 0.5),
        st.floats(0.1, 1),
    ),
    most_encodes=st.integers(20_000, 60_000),
)


@given(budget=budgets, size=st.integers(100, 60_000))
@settings(max_examples=40, deadline=None)
def check_budget(search: str, budget: StickySettings, size: int) -> None:
    budget = budget.model_copy(update={"search": search})
    assert budget.most_encodes is not None
    try:
        chosen = choose_tokens(vocabulary(size), budget, None, 0)
    except MeasureError:
        reserved = (2 * (budget.longest_shortlist or 0) + budget.controls) * points_per_token(budget)
        assert reserved + budget.scoring_pairs > budget.most_encodes
        return
    assert planned_encodes(len(chosen.token_ids), len(chosen.pilot), budget) <= budget.most_encodes


def test_an_exhaustive_search_stays_within_its_budget() -> None:
    check_budget("exhaustive")


def test_a_sequential_search_stays_within_its_budget() -> None:
    check_budget("sequential")


def test_a_shortlist_without_a_longest_length_is_paid_from_the_budget() -> None:
    budget = StickySettings(most_encodes=200_000, longest_shortlist=None, validation_pairs=60, controls=20)
    chosen = choose_tokens(vocabulary(30_000), budget, None, 0)
    assert planned_encodes(len(chosen.token_ids), 0, budget) <= 200_000


@pytest.mark.parametrize("search", ["sequential", "exhaustive"])
def test_a_budget_is_spent_and_not_only_kept(search: str) -> None:
    sizes = {"most_encodes": 60_000, "longest_shortlist": 10, "validation_pairs": 60, "controls": 20}
    budget = load_profile("standard").sticky.model_copy(update={"search": search, **sizes})
    chosen = choose_tokens(vocabulary(50_000), budget, None, 0)
    scanned = len(chosen.token_ids)
    assert len(chosen.pilot) == (ceil(0.05 * scanned) if search == "sequential" else 0)
    assert planned_encodes(scanned, len(chosen.pilot), budget) <= 60_000
    pilot_of_more = ceil(0.05 * (scanned + 1)) if search == "sequential" else 0
    assert planned_encodes(scanned + 1, pilot_of_more, budget) > 60_000
    assert len(choose_tokens(vocabulary(100), budget, None, 0).token_ids) == 100


def test_a_budget_that_validation_alone_uses_up_is_an_error() -> None:
    budget = StickySettings(most_encodes=1_000, longest_shortlist=10, validation_pairs=60, controls=20)
    with pytest.raises(MeasureError, match="the budget allows 0"):
        choose_tokens(vocabulary(100), budget, None, 0)


@pytest.mark.parametrize("name", profile_names())
def test_everything_takes_back_the_savings_and_nothing_else(name: str) -> None:
    sticky = load_profile(name).sticky
    every = sticky.everything()
    assert (every.search, every.rotate_operators) == ("exhaustive", False)
    assert (every.most_encodes, every.longest_shortlist) == (None, None)
    saved = {"search", "rotate_operators", "most_encodes", "longest_shortlist"}
    assert every.model_dump(exclude=saved) == sticky.model_dump(exclude=saved)
    chosen = choose_tokens(vocabulary(500), every, None, 0)
    assert (len(chosen.token_ids), len(chosen.pilot)) == (500, 0)
    assert load_profile("quick").sticky.search == "sequential"


def test_controls_move_by_one_at_most_where_one_more_token_is_asked_for() -> None:
    tokens = vocabulary(2_000)
    few = choose_controls(tokens, np.array([11]), 200, 0)
    more = choose_controls(tokens, np.array([11, int(few[5])]), 200, 0)
    assert len(set(few.tolist()) & set(more.tolist())) == 199
    # A random sample, not the most frequent words: low ids are no more likely than high ones.
    assert abs(np.mean(few) - np.mean([token["token_id"] for token in tokens])) < 150


def test_rungs_that_do_not_rise_are_refused() -> None:
    with pytest.raises(ValidationError, match="must rise"):
        StickySettings(rungs=(Rung(draws=6), Rung(draws=3), Rung(draws=15)))


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
