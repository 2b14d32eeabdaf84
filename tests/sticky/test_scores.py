"""Retention, pull and severity against slow, plain versions of their equations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.measures.sticky.scores import pull, retention, rho, severity

similarities = st.floats(-1, 1, allow_nan=False, width=32)


def points(seed: int, tokens: int = 4, count: int = 9) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.uniform(-0.3, 0.95, count), generator.uniform(-0.3, 0.95, (tokens, count))


@given(seed=st.integers(0, 10**6))
def test_retention_is_scipys_regression_line(seed: int) -> None:
    before, after = points(seed)
    line = retention(before, after)
    for t in range(len(after)):
        expected = scipy.stats.linregress(before, after[t])
        assert line.slope[t] == pytest.approx(expected.slope, abs=1e-9)
        assert line.intercept[t] == pytest.approx(expected.intercept, abs=1e-9)
        assert line.focal_point[t] == pytest.approx(expected.intercept / (1 - expected.slope), rel=1e-6)


@given(seed=st.integers(0, 10**6))
def test_pull_is_the_definition_summed_by_hand(seed: int) -> None:
    before, after = points(seed)
    u = float(np.median(before))
    values = pull(before, after, u)
    for t in range(len(after)):
        below = [i for i in range(len(before)) if before[i] < u]
        rho_t = sum(abs(after[t, i] - u) for i in below) / len(below)
        rho_0 = sum(abs(before[i] - u) for i in below) / len(below)
        assert values[t] == pytest.approx(1 - rho_t / rho_0)
        assert rho(after, before, u)[t] == pytest.approx(rho_t)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_weights_count_points_as_often_as_they_say(seed: int) -> None:
    before, after = points(seed)
    generator = np.random.default_rng(seed)
    weights = generator.integers(0, 4, size=(3, len(before)))
    weights[:, 0] += 1
    u = float(before.max()) + 0.01
    lines, pulls = retention(before, after, weights), pull(before, after, u, weights)
    for b in range(3):
        repeated = np.repeat(np.arange(len(before)), weights[b])
        if len(set(before[repeated])) < 2:
            continue
        plain = retention(before[repeated], after[:, repeated])
        assert lines.slope[b] == pytest.approx(plain.slope, abs=1e-7)
        assert lines.intercept[b] == pytest.approx(plain.intercept, abs=1e-7)
        assert pulls[b] == pytest.approx(pull(before[repeated], after[:, repeated], u), abs=1e-9)


def test_a_token_that_drags_to_a_value_is_found_there() -> None:
    before = np.linspace(-0.2, 0.9, 12)
    kept = 0.3
    after = (kept * before + (1 - kept) * 0.45)[None]
    line = retention(before, after)
    assert line.slope[0] == pytest.approx(kept)
    assert line.focal_point[0] == pytest.approx(0.45)


def test_a_token_that_changes_nothing_has_no_focal_point() -> None:
    before = np.linspace(-0.2, 0.9, 12)
    line = retention(before, before[None])
    assert line.slope[0] == pytest.approx(1)
    assert np.isnan(line.focal_point[0])
    assert pull(before, before[None], 0.5)[0] == pytest.approx(0)


def test_a_token_that_moves_everything_to_u_pulls_fully() -> None:
    before = np.array([-0.1, 0.0, 0.1])
    assert pull(before, np.full((1, 3), 0.2), 0.2)[0] == 1


def test_undefined_values_are_nan_and_not_zero() -> None:
    assert np.isnan(retention(np.full(4, 0.5), np.zeros((1, 4))).slope[0])
    assert np.isnan(pull(np.array([0.5, 0.6]), np.zeros((1, 2)), 0.2)[0])


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
