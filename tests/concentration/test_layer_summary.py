"""Averages of a layer: means of ratios, ratios of means, intervals, nulls, and how often Theorem 1 holds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from embaudit.measures.layers.layers import RATIOS, SPREADS
from embaudit.measures.layers.steps import share_that_holds, summarise_layer
from embaudit.statistics.intervals import mean_with_interval
from embaudit.words.estimate import Estimate


def values_of(count: int = 5, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    return {name: generator.uniform(0.5, 2, size=count) for name in (*RATIOS, *SPREADS)}


def test_means_of_ratios_and_ratios_of_means_are_both_kept() -> None:
    values = values_of()
    values |= {"contraction": values["spread_z"] / values["spread_h"]}
    stat = summarise_layer(3, values)
    assert (stat.layer, stat.texts) == (3, 5)
    assert stat.means["contraction"].value == pytest.approx(np.mean(values["spread_z"] / values["spread_h"]))
    assert stat.of_means["contraction"] == pytest.approx(values["spread_z"].mean() / values["spread_h"].mean())
    mean_Y, mean_X = (np.square(values[name]).mean() for name in ("mean_norm_y", "mean_norm_x"))
    assert stat.of_means["r"] == pytest.approx(values["spread_h"].mean() / mean_Y)
    spread = values["spread_x"].mean() / mean_X
    assert stat.of_means["normalised_spread"] == pytest.approx(spread)
    assert stat.of_means["c"] == pytest.approx(spread / (values["spread_y"].mean() / mean_Y))


def test_the_interval_is_students() -> None:
    sample = np.array([0.2, 0.5, 0.3, 0.9])
    mean, low, high = mean_with_interval(sample)
    wanted = stats.t.interval(0.95, 3, loc=sample.mean(), scale=stats.sem(sample))
    assert (mean, low, high) == pytest.approx((sample.mean(), *wanted))


def test_undefined_values_are_left_out_and_all_undefined_is_none() -> None:
    assert mean_with_interval(np.array([np.nan, np.nan])) == Estimate()
    assert mean_with_interval(np.array([np.nan, 0.4])) == Estimate(0.4)
    mean, low, high = mean_with_interval(np.array([np.nan, 0.2, 0.4]))
    assert mean == pytest.approx(0.3)
    assert low is not None
    assert high is not None
    assert low < mean < high


def test_share_of_texts_for_which_the_bound_holds() -> None:
    values = {
        "c": np.array([1.0, 1.0, 1.0, np.nan]),
        "r": np.array([1.0, 1.0, 1.0, 1.0]),
        "lambda_gaussian": np.array([0.0, 1.0, 0.25, 1.0]),
        # The bounds are 1, 4 and 2.25.
        "normalised_spread": np.array([1.0, 4.1, 2.0, 1.0]),
    }
    assert share_that_holds(values, "lambda_gaussian") == pytest.approx(2 / 3)
    assert share_that_holds({name: value[3:] for name, value in values.items()}, "lambda_gaussian") is None


def test_spreads_of_nothing_give_no_ratio() -> None:
    values = values_of() | {name: np.zeros(5) for name in SPREADS}
    assert set(summarise_layer(0, values).of_means.values()) == {None}
