"""How a search spends its encodes: pilot, stages, shortlists, controls, ranks, and the books that it keeps."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.measures.listed import load_profile, profile_names
from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.moments import Scores
from embaudit.measures.sticky.plan import (
    EXHAUSTIVE_PILOT,
    GOING_ON,
    ScoreBoard,
    choose_controls,
    choose_shortlists,
    choose_tokens,
    misses_of,
    rank,
    shortlist_length,
    spend,
)
from embaudit.measures.sticky.search import MIN_PILOT
from embaudit.words.errors import MeasureError


def vocabulary(count: int, reachable: int | None = None) -> list[dict[str, Any]]:
    found = count if reachable is None else reachable
    categories = ["ok"] * found + ["unreachable_special"] * (count - found)
    return [
        {"token_id": 3 * i, "is_reachable": i < found, "category": category, "origin": "word"}
        for i, category in enumerate(categories)
    ]


def spent(pilot: int, stages: tuple[tuple[int, int], ...], draws: int) -> int:
    """What a plan takes, stage by stage."""
    encodes, done = pilot * draws, 0
    for in_all, tokens in stages:
        encodes += tokens * (in_all - done)
        done = in_all
    assert done == draws
    return encodes


@given(budget=st.integers(2_000, 400_000), tokens=st.integers(1, 300_000), draws=st.integers(4, 40))
@settings(max_examples=200)
def test_a_budget_is_kept_and_spent(budget: int, tokens: int, draws: int) -> None:
    pilot, stages = spend(budget, tokens, draws)
    in_all, counts = zip(*stages, strict=True)
    assert list(in_all) == sorted(set(in_all))
    assert list(counts) == sorted(counts, reverse=True)
    assert pilot + counts[0] <= tokens
    encodes = spent(pilot, stages, draws)
    if tokens * draws <= budget or tokens <= MIN_PILOT:
        assert encodes == tokens * draws
    else:
        # A pilot that is too small to learn from would make the rest worthless.
        assert encodes <= max(budget, MIN_PILOT * draws)
        assert encodes > 0.95 * budget - 4 * draws * len(stages)


@pytest.mark.parametrize(("budget", "tokens"), [(None, 5_000), (80_000, 5_000)])
def test_with_enough_for_all_every_token_gets_all_draws(budget: int | None, tokens: int) -> None:
    assert spend(budget, tokens, 16) == (EXHAUSTIVE_PILOT, ((16, tokens - EXHAUSTIVE_PILOT),))
    chosen = choose_tokens(vocabulary(tokens), budget, 16, None, 0)
    assert chosen.is_exhaustive
    assert len(chosen.token_ids) == tokens
    assert not choose_tokens(vocabulary(tokens), 79_999, 16, None, 0).is_exhaustive


def test_draws_double_while_tokens_become_fewer() -> None:
    pilot, stages = spend(40_000, 250_000, 16)
    assert pilot == 833
    assert [draws for draws, _ in stages] == [2, 4, 8, 16]
    for (_, before), (_, after) in pairwise(stages):
        assert after == pytest.approx(GOING_ON * before, abs=1)


def test_what_quick_spends_on_a_vocabulary_of_thirty_thousand() -> None:
    assert spend(40_000, 29_191, 16) == (833, ((2, 3_711), (4, 2_412), (8, 1_567), (16, 1_019)))


def test_what_a_small_vocabulary_leaves_of_a_budget_carries_more_tokens_on() -> None:
    """All others get two draws, and more of them go on than otherwise."""
    pilot, stages = spend(60_000, 6_000, 16)
    assert stages[0] == (2, 6_000 - pilot)
    assert stages[1][1] > (GOING_ON + 0.02) * stages[0][1]


@given(count=st.integers(1, 4_000), limit=st.integers(1, 5_000), seed=st.integers(0, 1_000))
@settings(max_examples=30)
def test_the_pilot_is_a_random_part_of_the_searched_tokens(count: int, limit: int, seed: int) -> None:
    chosen = choose_tokens(vocabulary(count), 6_000, 16, limit, seed)
    assert len(chosen.token_ids) == min(count, limit)
    assert chosen.eligible == count
    assert set(chosen.pilot) <= set(chosen.token_ids) <= set(range(0, 3 * count, 3))
    for ids in (chosen.pilot, chosen.token_ids):
        assert ids.tolist() == sorted(set(ids.tolist()))
    again = choose_tokens(vocabulary(count), 6_000, 16, limit, seed)
    assert again.pilot.tolist() == chosen.pilot.tolist()


def test_every_token_is_as_likely_to_be_of_the_pilot_as_another() -> None:
    times = np.zeros(1_000)
    for seed in range(400):
        times[choose_tokens(vocabulary(1_000), 4_800, 16, None, seed).pilot // 3] += 1
    # 100 of 1 000, 400 times: binomial with mean 40 and standard deviation 6.
    assert times.sum() == 40_000
    assert times.min() > 40 - 5 * 6
    assert times.max() < 40 + 5 * 6


def test_unreachable_tokens_are_not_searched() -> None:
    chosen = choose_tokens(vocabulary(100, 80), None, 16, None, 1)
    assert (len(chosen.token_ids), chosen.eligible, int(chosen.token_ids.max())) == (80, 80, 3 * 79)


def test_nothing_to_scan_is_an_error() -> None:
    with pytest.raises(MeasureError, match="no token to scan"):
        choose_tokens(vocabulary(10, 0), None, 16, None, 0)


@pytest.mark.parametrize("name", profile_names())
def test_everything_takes_back_the_savings_and_nothing_else(name: str) -> None:
    sticky = load_profile(name).sticky
    every = sticky.everything()
    saved = {"similarity_entries", "scan_encodes", "max_shortlist"}
    assert {getattr(every, name) for name in saved} == {None}
    assert every.model_dump(exclude=saved) == sticky.model_dump(exclude=saved)


@pytest.mark.parametrize("name", [name for name in profile_names() if "sticky" in load_profile(name).measures])
def test_profiles_and_what_they_promise(name: str) -> None:
    profile = load_profile(name)
    assert profile.name == name
    sticky = profile.sticky
    assert (sticky.basis == "screened") == (name == "quick")
    assert (sticky.scan_encodes is None) == (name == "paper")
    # Hundreds of anchors for each purpose, where the corpus has them.
    assert (sticky.sentences - sticky.draws - sticky.validation_draws) // 2 >= 250


def test_shortlists_are_the_share_of_searched_tokens_by_each_protocol() -> None:
    ids = np.arange(100, 200)
    scores = Scores(pull=np.linspace(0, 1, 100), slope=np.linspace(0, 1, 100))
    few = StickySettings(shortlist_share=0.01)
    shortlists = choose_shortlists(ids, scores, shortlist_length(few, 1_000))
    assert shortlists["definition"] == list(range(190, 200))
    assert shortlists["retention"] == list(range(100, 110))
    capped = choose_shortlists(ids, scores, shortlist_length(few.model_copy(update={"max_shortlist": 3}), 1_000))
    assert capped["retention"] == [100, 101, 102]


def test_controls_are_ordinary_and_never_candidates() -> None:
    candidates = np.arange(0, 150, 3)
    controls = choose_controls(vocabulary(200, 150), candidates, 30, 0)
    assert len(controls) == 30
    assert not set(controls) & set(candidates)
    assert controls.max() < 450


def test_controls_move_by_one_at_most_where_one_more_token_is_asked_for() -> None:
    tokens = vocabulary(2_000)
    few = choose_controls(tokens, np.array([11]), 200, 0)
    more = choose_controls(tokens, np.array([11, int(few[5])]), 200, 0)
    assert len(set(few.tolist()) & set(more.tolist())) == 199
    # A random sample, not the most frequent words: low ids are no more likely than high ones.
    assert abs(np.mean(few) - np.mean([token["token_id"] for token in tokens])) < 150


@given(seed=st.integers(0, 10**6))
def test_ranks_are_complete_and_more_draws_come_first(seed: int) -> None:
    generator = np.random.default_rng(seed)
    draws = generator.choice([2, 4, 16], size=30)
    badness = np.where(generator.random(30) < 0.1, np.nan, generator.normal(size=30))
    ranks = rank(draws, badness)
    assert sorted(ranks) == list(range(1, 31))
    order = np.argsort(ranks)
    for a, b in pairwise(order):
        assert (draws[a], np.nan_to_num(badness[a], nan=-np.inf)) >= (draws[b], np.nan_to_num(badness[b], nan=-np.inf))


# ---- the books ----


@pytest.fixture
def board() -> ScoreBoard:
    """Ten tokens with one draw, four of them with three, two of those with fifteen; token 9 is the pilot's."""
    board = ScoreBoard()
    ids = np.arange(10)
    board.add(ids[:9], 1, Scores(np.linspace(0, 0.8, 9), np.linspace(0.9, 0.1, 9)))
    board.add(ids[5:9], 3, Scores(np.array([0.5, np.nan, 0.7, 0.6]), np.array([0.4, np.nan, 0.2, 0.3])))
    board.add(ids[7:9], 15, Scores(np.array([0.1, 0.2]), np.array([0.95, 0.85])))
    board.add(ids[9:], 15, Scores(np.array([0.15]), np.array([0.9])), is_pilot=True)
    return board


def test_rungs_count_the_tokens_that_got_at_least_so_many_draws(board: ScoreBoard) -> None:
    assert board.tokens == 10
    assert board.rungs() == [
        {"draws": 1, "tokens": 10},
        {"draws": 3, "tokens": 5},
        {"draws": 15, "tokens": 3},
    ]


def test_more_draws_come_first_however_bad_the_dropped_looked(board: ScoreBoard) -> None:
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
