"""Retention, pull and severity against slow, plain versions of their equations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_points import moments_of, points_of

from embaudit.measures.sticky.moments import Moments, Retention, pull, retention, rho, rho_before, score, severity
from embaudit.measures.sticky.points import Points

DRAWS, ANCHORS, GROUPS = 3, 5, 2


def similarities(seed: int, tokens: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Before, (K, A), and after, (T, K, A), in float32 as models give them."""
    generator = np.random.default_rng(seed)
    shape = (DRAWS, ANCHORS)
    before, after = generator.uniform(-0.3, 0.95, shape), generator.uniform(-0.3, 0.95, (tokens, *shape))
    return before, after.astype(np.float32).astype(np.float64)


def measured(before: np.ndarray, after: np.ndarray, u: float = 0.2) -> tuple[Points, Moments]:
    points = points_of(before, u, groups=min(GROUPS, before.reshape(len(before), -1).shape[1]))
    return points, moments_of(points, after)


def line_of(before: np.ndarray, after: np.ndarray) -> Retention:
    return retention(*measured(before, after))


@given(seed=st.integers(0, 10**6))
def test_retention_is_scipys_regression_line(seed: int) -> None:
    before, after = similarities(seed)
    line = line_of(before, after)
    for t in range(len(after)):
        expected = scipy.stats.linregress(before.ravel(), after[t].ravel())
        assert line.slope[t] == pytest.approx(expected.slope, abs=1e-9)
        assert line.intercept[t] == pytest.approx(expected.intercept, abs=1e-9)
        assert line.focal_point[t] == pytest.approx(expected.intercept / (1 - expected.slope), rel=1e-6)


@given(seed=st.integers(0, 10**6))
def test_pull_is_the_definition_summed_by_hand(seed: int) -> None:
    before, after = similarities(seed)
    u = float(np.median(before))
    points, moments = measured(before, after, u)
    values = pull(points, moments)
    below = [(k, a) for k in range(DRAWS) for a in range(ANCHORS) if before[k, a] < u]
    rho_0 = sum(abs(before[at] - u) for at in below) / len(below)
    assert rho_before(points) == pytest.approx(rho_0)
    for t in range(len(after)):
        rho_t = sum(abs(after[t][at] - u) for at in below) / len(below)
        assert values[t] == pytest.approx(1 - rho_t / rho_0)
        assert rho(points, moments)[t] == pytest.approx(rho_t)
    both = score(points, moments)
    assert np.array_equal(both.pull, values)
    assert np.array_equal(both.slope, retention(points, moments).slope)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_weights_count_draws_and_groups_as_often_as_they_say(seed: int) -> None:
    before, after = similarities(seed)
    weights = np.random.default_rng(seed).integers(0, 4, size=(3, DRAWS, GROUPS))
    weights[:, 0, 0] += 1
    u = float(before.max()) + 0.01
    points, moments = measured(before, after, u)
    lines, pulls = retention(points, moments, weights), pull(points, moments, weights)
    for b in range(3):
        # Anchors are dealt among the groups in turn.
        times = np.array([[weights[b, k, a % GROUPS] for a in range(ANCHORS)] for k in range(DRAWS)]).ravel()
        repeated = np.repeat(np.arange(before.size), times)
        x = before.ravel()[repeated]
        for t in range(len(after)):
            y = after[t].ravel()[repeated]
            expected = scipy.stats.linregress(x, y)
            assert lines.slope[b, t] == pytest.approx(expected.slope, abs=1e-7)
            assert lines.intercept[b, t] == pytest.approx(expected.intercept, abs=1e-7)
            assert pulls[b, t] == pytest.approx(1 - np.abs(y - u).mean() / np.abs(x - u).mean(), abs=1e-9)
        part = score(points, moments, weights[b])
        assert part.slope == pytest.approx(lines.slope[b])
        assert part.pull == pytest.approx(pulls[b])


def test_sums_stay_accurate_where_all_similarities_are_nearly_one() -> None:
    """A checkpoint whose vectors all look alike: differences in the fourth digit of values near one."""
    before = 0.99 + 1e-4 * np.linspace(-1, 1, 15).reshape(DRAWS, ANCHORS)
    after = (0.99 + 0.4 * (before - 0.99))[None]
    # Float32 keeps 6e-8 of 0.99, which is a thousandth of this spread.
    assert line_of(before, after).slope[0] == pytest.approx(0.4, abs=2e-3)


def test_a_token_that_drags_to_a_value_is_found_there() -> None:
    before = np.linspace(-0.2, 0.9, 12)
    kept = 0.3
    after = (kept * before + (1 - kept) * 0.45)[None]
    line = line_of(before, after)
    assert line.slope[0] == pytest.approx(kept)
    assert line.focal_point[0] == pytest.approx(0.45)


def test_a_token_that_changes_nothing_has_no_focal_point() -> None:
    before = np.linspace(-0.2, 0.9, 12).astype(np.float32).astype(np.float64)
    line = line_of(before, before[None])
    assert line.slope[0] == pytest.approx(1)
    assert np.isnan(line.focal_point[0])
    assert pull(*measured(before, before[None], 0.5))[0] == pytest.approx(0)


def test_a_token_that_moves_everything_to_u_pulls_fully() -> None:
    assert pull(*measured(np.array([-0.1, 0.0, 0.1]), np.full((1, 3), 0.25), 0.25))[0] == 1


def test_undefined_values_are_nan_and_not_zero() -> None:
    assert np.isnan(line_of(np.full(4, 0.5), np.zeros((1, 4))).slope[0])
    assert np.isnan(pull(*measured(np.array([0.5, 0.6]), np.zeros((1, 2)), 0.2))[0])


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (0.5, "strong"),
        (0.49, "moderate"),
        (0.25, "moderate"),
        (0.1, "weak"),
        (0.09, "negligible"),
        (-0.4, "negligible"),
    ],
)
def test_severity_is_graded_on_loss(loss: float, expected: str) -> None:
    assert severity(loss) == expected
