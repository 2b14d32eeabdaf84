"""How a search spends its encodes: pilot, budget, controls, and settings that cannot be."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from embaudit.errors import MeasureError
from embaudit.measures.sticky.plan import choose_controls, choose_tokens, points_per_token
from embaudit.measures.sticky.settings import Rung, StickySettings
from embaudit.profile import load_profile, profile_names


def vocabulary(count: int) -> list[dict[str, Any]]:
    return [{"token_id": 3 * i, "is_reachable": True, "category": "ok", "origin": "word"} for i in range(count)]


SEQUENTIAL = StickySettings(search="sequential", pilot_share=0.1, rungs=(Rung(draws=1, keep=0.2), Rung(draws=15)))


@given(count=st.integers(1, 400), limit=st.integers(1, 500), seed=st.integers(0, 1_000))
@settings(max_examples=30)
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
@settings(max_examples=40)
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
