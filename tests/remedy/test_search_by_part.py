"""A τ for each layer or head: where a greedy descent ends, and what is said of its end."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embaudit.corpora.downstream.labelled import Classification
from embaudit.corpora.downstream.material import LabelledTexts
from embaudit.measures.tempscale.compare import compare
from embaudit.measures.tempscale.search import MAX_SWEEPS, Found, Taus, descend, report

GRID = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
TAUS = st.lists(st.sampled_from(GRID), min_size=1, max_size=4).map(tuple)


@given(wanted=TAUS, start=st.sampled_from(GRID))
def test_parts_that_do_not_hang_together_are_found_one_by_one(wanted: Taus, start: float) -> None:
    """Of every combination within reach the best: a step of the grid a sweep."""

    def score(taus: Taus) -> float:
        return -sum(abs(one - best) for one, best in zip(taus, wanted, strict=True))

    reach = [tau for tau in GRID if abs(GRID.index(tau) - GRID.index(start)) <= MAX_SWEEPS]
    found = descend((start,) * len(wanted), GRID, score)
    assert score(found.taus) == pytest.approx(max(score(taus) for taus in product(reach, repeat=len(wanted))))
    assert found.trials <= 1 + 2 * MAX_SWEEPS * len(wanted)


@given(start=st.sampled_from(GRID), parts=st.integers(1, 5), seed=st.integers(0, 1_000))
def test_it_ends_no_lower_than_it_began_and_asks_nothing_twice(start: float, parts: int, seed: int) -> None:
    scores: dict[Taus, float | None] = {}

    def score(taus: Taus) -> float | None:
        assert taus not in scores
        one = np.random.default_rng([seed, *(round(10 * tau) for tau in taus)]).normal()
        scores[taus] = None if one > 1 else float(one)
        return scores[taus]

    found = descend((start,) * parts, GRID, score)
    assert found.trials == len(scores)
    known = [one for one in scores.values() if one is not None]
    best = scores[found.taus]
    assert best == max(known) if known else found.taus == (start,) * parts


def test_what_gains_nothing_stays_where_it_was() -> None:
    assert descend((0.8, 0.8), GRID, lambda taus: 0.5) == Found((0.8, 0.8), 5)
    assert descend((0.8, 0.8), GRID, lambda taus: None) == Found((0.8, 0.8), 5)


@pytest.mark.parametrize(("single", "several", "answer"), [(0.5, 4.0, "yes"), (4.0, 4.2, "no"), (0.5, 0.4, "no")])
def test_it_is_better_where_it_beats_no_temperature_and_one_for_all(single: float, several: float, answer: str) -> None:
    generator = np.random.default_rng(0)
    labels = np.arange(200) % 2
    labelled = LabelledTexts(tuple(f"text {i}" for i in range(200)), tuple("ab"[label] for label in labels))
    task = Classification("classification_knn", labelled, np.full(200, 50), folds=5, neighbours=5, seed=0)
    noise = generator.normal(size=(200, 6))
    untouched, one, own = ({"text": noise + signal * np.eye(6)[labels]} for signal in (0.4, single, several))
    outcomes = (task.outcomes(untouched), task.outcomes(one), task.outcomes(own))
    row = report(task, "layer", 0.8, Found((0.9, 0.8), 7), outcomes, resamples=300, seed=0)
    assert (row.recommendation, row.taus, row.trials, row.items, row.units) == (answer, "0.9,0.8", 7, 100, 100)
    # Both differences are those of the grid's arms, where one is the other's τ = 1.
    for before, difference in (
        (untouched, (row.difference, row.low, row.high)),
        (one, (row.beyond, row.beyond_low, row.beyond_high)),
    ):
        arms, _ = compare(task, {1.0: before, 0.8: own}, None, resamples=300, seed=0)
        (arm,) = [arm for arm in arms if (arm.arm, arm.split, arm.bin) == ("temperature", "report", 0)]
        assert difference == (arm.difference, arm.low, arm.high)
        assert row.score_after == arm.score
