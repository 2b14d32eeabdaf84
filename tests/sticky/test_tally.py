"""The books of a search: last scores, ranks, rungs, and what the shortlists owe to the pilot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.measures.sticky.moments import Scores
from embaudit.measures.sticky.plan import ScoreBoard, misses_of


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


@given(seed=st.integers(0, 10**6), count=st.integers(1, 40))
@settings(max_examples=30)
def test_ranks_are_complete(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    board = ScoreBoard()
    for draws in (1, 3, 15):
        chosen = generator.permutation(count)[: max(1, count // draws)]
        values = np.where(generator.random((2, len(chosen))) < 0.2, np.nan, generator.normal(size=(2, len(chosen))))
        board.add(chosen, draws, Scores(*values))
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
