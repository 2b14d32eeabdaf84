"""How a fingerprint is made of vectors: held against a slow calculation, and what must not change it."""

from __future__ import annotations

import sys
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embaudit.questions.vectors.fingerprint import Fingerprint, origin_of
from embaudit.questions.vectors.fitted import GAP, fitted, halves, held_out_counts, trials, with_owners_joined

sys.path.append(str(Path(__file__).resolve().parent))
from test_fingerprint import D, rows_of


def owners_of(model: str, owners: int = 4, rows: int = 30) -> dict[str, list[np.ndarray]]:
    return {f"owner {n}": [rows_of(model, rows + n, n)] for n in range(owners)}


def column(rows: list[list[float]], d: int) -> list[float]:
    return [row[d] for row in rows]


def slow_direction(stores: list[list[list[float]]]) -> list[float]:
    total = [0.0] * D
    for rows in stores:
        mean = [sum(column(rows, d)) / len(rows) for d in range(D)]
        length = sqrt(sum(one * one for one in mean))
        total = [one + own / length for one, own in zip(total, mean, strict=True)]
    length = sqrt(sum(one * one for one in total))
    return [one / length for one in total]


def slow_log_spread(rows: list[list[float]]) -> list[float]:
    found = []
    for d in range(D):
        mean = sum(column(rows, d)) / len(rows)
        variance = sum((one - mean) ** 2 for one in column(rows, d)) / len(rows)
        found.append(log(max(sqrt(variance), 1e-5)))
    return found


def slow_correlation(one: list[float], other: list[float]) -> float:
    first, second = sum(one) / D, sum(other) / D
    above = sum((a - first) * (b - second) for a, b in zip(one, other, strict=True))
    return above / sqrt(sum((a - first) ** 2 for a in one) * sum((b - second) ** 2 for b in other))


def slow_quantile(values: list[float], share: float) -> float:
    place = share * (len(values) - 1)
    ordered, below = sorted(values), int(place)
    after = ordered[min(below + 1, len(values) - 1)]
    return ordered[below] + (place - below) * (after - ordered[below])


def test_direction_and_its_limit_are_those_of_a_slow_calculation() -> None:
    own = owners_of("pointed a")
    other = rows_of("pointed b", 25, 9)
    found = fitted("a", own, [other])
    stores = [one.tolist() for [one] in own.values()]
    assert found.direction == pytest.approx(slow_direction(stores))
    lowest = []
    for place, rows in enumerate(stores):
        rest = slow_direction([one for n, one in enumerate(stores) if n != place])
        along = [sum(a * b for a, b in zip(row, rest, strict=True)) for row in rows]
        lowest.append(slow_quantile(along, 0.01))
    along = [sum(a * b for a, b in zip(row, slow_direction(stores), strict=True)) for row in other.tolist()]
    highest = max(4 / sqrt(D), slow_quantile(along, 0.99))
    assert found.measure == "direction"
    assert found.highest_other == pytest.approx(highest)
    assert found.limit == pytest.approx((min(lowest) + highest) / 2)


def test_spread_and_its_limit_are_those_of_a_slow_calculation() -> None:
    own = owners_of("spread a", owners=3)
    found = fitted("a", own, [])
    spreads = [slow_log_spread(one.tolist()) for [one] in own.values()]

    def mean(some: list[list[float]]) -> list[float]:
        return [sum(each) / len(some) for each in zip(*some, strict=True)]

    assert found.spread == pytest.approx(mean(spreads))
    lowest = min(
        slow_correlation(one, mean([kept for m, kept in enumerate(spreads) if m != n])) for n, one in enumerate(spreads)
    )
    assert found.measure == "spread"
    assert found.limit == pytest.approx((lowest + 4 / sqrt(D)) / 2)


def test_of_one_store_the_limit_is_from_halves_about_different_things_and_the_direction_is_not_used() -> None:
    rows = rows_of("spread a", 80, 1)
    found = fitted("a", {"one": [rows]}, [])
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    along = rows @ vectors[:, np.argmax(values)]
    sides = [rows[along <= np.median(along)], rows[along > np.median(along)]]
    assert sorted(map(len, halves(rows))) == [40, 40]
    lowest = slow_correlation(*(slow_log_spread(one.tolist()) for one in sides))
    assert found.measure == "spread"
    assert found.limit == pytest.approx((lowest + 4 / sqrt(D)) / 2)
    # Its mean may be that of what the store is about.
    assert fitted("b", {"one": [rows_of("pointed a", 80, 1)]}, []).measure is None
    assert [one.measure for one in trials({"one": [rows_of("pointed a", 80, 1)]}, [])] == ["spread"]


def test_a_related_model_moves_the_limit_or_leaves_none() -> None:
    own = owners_of("pointed a")
    alone = fitted("a", own, [])
    near = 0.4 * rows_of("pointed a", 40, 50) + 0.6 * rows_of("pointed b", 40, 51)
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    beside = fitted("a", own, [near])
    assert beside.measure == "direction"
    assert beside.limit > alone.limit
    assert beside.highest_other == pytest.approx(np.quantile(near @ beside.direction, 0.99))
    assert fitted("a", own, [rows_of("pointed a", 40, 50)]).measure is None


def test_what_was_left_out_is_counted_with_limits_made_without_it() -> None:
    others = {"b": [rows_of("pointed b", 30, 7)], "plain": [rows_of("plain", 30, 8)]}
    assert vars(held_out_counts("a", owners_of("pointed a"), others)) == {
        "named": 4,
        "own": 4,
        "wrongly": 0,
        "others": 2,
    }
    # Of two, one is left without another to find a limit.
    assert vars(held_out_counts("a", owners_of("pointed a", 2), {})) == {
        "named": 0,
        "own": 0,
        "wrongly": 0,
        "others": 0,
    }


def test_a_dimension_that_is_still_does_not_make_spreads_alike() -> None:
    one, other = rows_of("plain", 60, 1), rows_of("plain elsewhere", 60, 2)
    one[:, 3] = other[:, 3] = 1e-9
    found = fitted("a", {"1": [one], "2": [rows_of("plain", 60, 3)]}, [])
    still = Fingerprint(
        **{**vars(fitted("a", {"1": [one]}, [])), "measure": "spread", "limit": 0.5, "highest_other": 0}
    )
    assert still.still == (3,)
    assert found.measure is None
    origin = origin_of(other, [still])
    assert origin is not None
    assert origin.best is None
    assert origin.tried[0].value < 4 / sqrt(D)


def test_stores_with_the_same_rows_have_one_owner() -> None:
    rows, others = rows_of("plain", 40, 1), rows_of("plain", 40, 2)
    half = np.concatenate([rows[:20], rows_of("plain", 20, 3)])
    assert with_owners_joined(["a", "b", "c"], [rows, others, half], 0.9999, 0.1) == ["a", "b", "a"]
    few = np.concatenate([rows[:2], rows_of("plain", 38, 3)])
    assert with_owners_joined(["a", "b"], [rows, few], 0.9999, 0.1) == ["a", "b"]
    assert with_owners_joined(["a", "b"], [rows, few], 0.97) == ["a", "a"]


@given(st.integers(0, 1_000), st.sampled_from(["pointed a", "zeros", "spread a", "plain"]), st.integers(1, 5))
def test_the_order_of_rows_and_owners_changes_nothing_and_a_limit_is_between_the_two(
    seed: int, model: str, owners: int
) -> None:
    own = {f"owner {n}": [rows_of(model, 32, seed + n)] for n in range(owners)}
    rng = np.random.default_rng(seed)
    shuffled = {name: [one[rng.permutation(len(one))] for one in stores] for name, stores in reversed(own.items())}
    one, other = fitted(model, own, []), fitted(model, shuffled, [])
    assert (one.measure, one.still, one.rows) == (other.measure, other.still, other.rows)
    assert one.direction == pytest.approx(other.direction)
    assert one.spread == pytest.approx(other.spread)
    if one.measure is not None:
        assert one.limit == pytest.approx(other.limit, abs=1e-6)
        assert one.limit - one.highest_other >= GAP / 2 - 1e-9
