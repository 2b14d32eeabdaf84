"""Intervals and estimates: how they are found, chosen and written."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import bootstrap, spearmanr

from embaudit.declared.document import Column
from embaudit.statistics import (
    MIN_UNITS,
    correlation_interval,
    difference_half_width,
    exact_share,
    grouped_half_width,
    jackknife_half_width,
    mean_interval,
    mean_with_interval,
    percentile_intervals,
    score_share,
    spearman,
    student_half_width,
    student_quantile,
)
from embaudit.words.estimate import Estimate, all_columns, shown, with_interval

GENERATOR = np.random.default_rng(5)
DIFFERENCES = GENERATOR.normal(0.2, 1.0, size=120)


def test_without_shared_texts_it_is_scipys_bootstrap_of_the_mean() -> None:
    found = mean_interval(DIFFERENCES, np.arange(120), 2_000, 0)
    own = bootstrap((DIFFERENCES,), np.mean, n_resamples=2_000, method="percentile", rng=np.random.default_rng(0))
    assert found == pytest.approx((own.confidence_interval.low, own.confidence_interval.high), abs=1e-9)
    half_width = 1.96 * DIFFERENCES.std() / np.sqrt(120)
    assert found == pytest.approx((DIFFERENCES.mean() - half_width, DIFFERENCES.mean() + half_width), abs=0.03)


def test_items_of_one_unit_are_drawn_together() -> None:
    """Ten copies of each item say no more than one."""
    alone = mean_interval(DIFFERENCES, np.arange(120), 1_000, 0)
    copies = mean_interval(np.repeat(DIFFERENCES, 10), np.repeat(np.arange(120), 10), 1_000, 0)
    assert copies == pytest.approx(alone, abs=1e-9)


def test_an_interval_covers_the_truth_as_often_as_it_says() -> None:
    generator = np.random.default_rng(0)
    covered = 0
    for run in range(200):
        found = mean_interval(generator.normal(0.3, 1, size=60), np.arange(60), 300, run)
        assert found is not None
        covered += found[0] <= 0.3 <= found[1]
    assert 0.89 <= covered / 200 <= 0.99


def test_few_units_have_no_interval() -> None:
    assert mean_interval(np.ones(50), np.arange(50) % (MIN_UNITS - 1), 200, 0) is None
    # Enough units, but all equal: a width of zero would say that the mean is certain.
    assert mean_interval(np.ones(50), np.arange(50) % MIN_UNITS, 200, 0) is None


def test_correlations_differ_by_what_they_do() -> None:
    wanted = GENERATOR.normal(size=150)
    good, bad = wanted + GENERATOR.normal(0, 0.4, size=150), wanted + GENERATOR.normal(0, 2, size=150)
    assert spearman(good, wanted) == pytest.approx(spearmanr(good, wanted).statistic, abs=1e-12)
    assert spearman(np.round(good), np.round(wanted)) == pytest.approx(
        spearmanr(np.round(good), np.round(wanted)).statistic, abs=1e-12
    )
    interval = correlation_interval(bad, good, wanted, np.arange(150), 300, 0)
    assert interval is not None
    assert 0 < interval[0] < spearman(good, wanted) - spearman(bad, wanted) < interval[1]  # type: ignore[operator]
    assert correlation_interval(bad, bad, wanted, np.arange(150), 200, 0) is None


def test_where_nothing_varies_there_is_no_correlation() -> None:
    assert spearman(np.ones(20), np.arange(20.0)) is None
    assert correlation_interval(np.ones(20), np.ones(20), np.arange(20.0), np.arange(20), 200, 0) is None


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    without = (DIFFERENCES.sum() - DIFFERENCES) / (len(DIFFERENCES) - 1)
    error = DIFFERENCES.std(ddof=1) / np.sqrt(len(DIFFERENCES))
    assert jackknife_half_width(without) == pytest.approx(1.96 * error)


def test_students_interval_covers_the_mean_of_five_as_often_as_it_says() -> None:
    samples = np.random.default_rng(1).normal(3, 2, size=(2_000, 5))
    covered = sum(abs(sample.mean() - 3) <= (student_half_width(sample) or 0) for sample in samples)
    assert 0.94 <= covered / 2_000 <= 0.96
    assert student_half_width(np.ones(1)) is None


def test_a_share_of_none_and_of_all_is_not_certain() -> None:
    assert exact_share(0, 10) == pytest.approx((0, 1 - 0.025 ** (1 / 10)))
    assert exact_share(10, 10) == pytest.approx((0.025 ** (1 / 10), 1))


def test_a_difference_has_both_widths() -> None:
    assert difference_half_width(0.3, 0.4) == pytest.approx(0.5)


NAN = np.nan


@pytest.mark.parametrize(
    ("resampled", "interval"),
    [
        (np.arange(101.0), (2.5, 97.5)),
        ([0.0, NAN, 1.0], (0.025, 0.975)),
        # Where all that is defined agrees, or nothing is defined, there is no interval.
        (np.ones(101), (None, None)),
        ([0.4, NAN, 0.4], (None, None)),
        ([NAN, 0.0, 0.0], (None, None)),
        ([-1.0, np.inf, -1.0], (None, None)),
        ([NAN, 0.4, NAN], (None, None)),
        ([NAN, NAN, NAN], (None, None)),
        ([0.1 + 0.2, 0.3, 0.3], (None, None)),
        # All but a few agree: both percentiles are the same.
        ([*[0.0] * 999, 1.0], (None, None)),
    ],
)
def test_percentiles_of_what_is_defined(resampled: list[float], interval: tuple[float | None, float | None]) -> None:
    columns = np.column_stack([resampled, np.arange(len(resampled))])
    assert percentile_intervals(columns)[0] == interval
    assert percentile_intervals(columns)[1] != (None, None)


@pytest.mark.parametrize("values", [[0.3] * 20, [0.1 + 0.2, *[0.3] * 19], [0.0] * 20, [1e9] * 20])
def test_no_interval_is_of_zero_width(values: list[float]) -> None:
    array = np.array(values)
    assert student_half_width(array) is None
    assert mean_with_interval(array) == Estimate(array.mean())
    assert jackknife_half_width(array) is None
    assert mean_interval(array, np.arange(20), 200, 0) is None
    assert percentile_intervals(array[:, None]) == [(None, None)]


@pytest.mark.parametrize(
    ("value", "interval", "held"),
    [
        (0.5, (0.4, 0.6), (0.4, 0.6)),
        (0.4, (0.4, 0.6), (0.4, 0.6)),
        # Rounding is no miss: the end moves to the value.
        (0.3, (0.1 + 0.2, 0.6), (0.3, 0.6)),
        (0.39, (0.4, 0.6), (None, None)),
        (0.61, (0.4, 0.6), (None, None)),
        (0.5, None, (None, None)),
        (0.5, (None, None), (None, None)),
        (None, (0.4, 0.6), (None, None)),
        (NAN, (0.4, 0.6), (None, None)),
    ],
)
def test_an_interval_that_misses_its_value_is_none(
    value: float | None, interval: tuple[float, float] | None, held: tuple[float | None, float | None]
) -> None:
    _, *ends = Estimate.holding(value, interval)
    assert tuple(ends) == held


def test_groups_of_a_mean_are_students_interval() -> None:
    """Of equal size: that of the groups' means; of any size, half-widths stay near that of single items."""
    values = GENERATOR.normal(size=100)
    for sizes, expected in (([4] * 25, None), ([3, 5] * 12 + [4], student_half_width(values))):
        groups = np.split(values, np.cumsum(sizes)[:-1])
        without = np.array([(values.sum() - group.sum()) / (100 - len(group)) for group in groups])
        found = grouped_half_width(values.mean(), without, np.array(sizes) / 100)
        if expected is None:
            assert found == pytest.approx(student_half_width(np.array([group.mean() for group in groups])))
            assert found == pytest.approx((jackknife_half_width(without) or 0) * student_quantile(25) / 1.96)
        else:
            assert found == pytest.approx(expected, rel=0.35)
    assert grouped_half_width(1.0, np.ones(25), np.full(25, 0.04)) is None


@pytest.mark.parametrize(("hits", "trials"), [(0, 100), (7, 100), (100, 100)])
def test_a_score_interval_is_wilsons(hits: int, trials: int) -> None:
    z, share = 1.959964, hits / trials
    middle = (share + z**2 / 2 / trials) / (1 + z**2 / trials)
    half = z * np.sqrt(share * (1 - share) / trials + z**2 / 4 / trials**2) / (1 + z**2 / trials)
    assert score_share(hits, trials) == pytest.approx((middle - half, middle + half), abs=1e-6)
    # It holds the share itself, up to rounding, also at either end.
    assert middle - half <= share + 1e-12
    assert middle + half >= share - 1e-12


# ---- estimates ----


FULL, BARE, NONE = Estimate(0.431, 0.414, 0.447), Estimate(0.431), Estimate()


@pytest.mark.parametrize(
    ("estimate", "sentence", "signed", "percent", "cell"),
    [
        (FULL, "0.43 [0.41, 0.45]", "+0.431 [+0.414, +0.447]", "43.1 % [41.4, 44.7]", "0.431 [0.41, 0.45]"),
        (BARE, "0.43", "+0.431", "43.1 %", "0.431"),
        (NONE, "–", "–", "–", ""),
    ],
)
def test_it_is_written_with_its_interval(
    estimate: Estimate, sentence: str, signed: str, percent: str, cell: str
) -> None:
    assert (f"{estimate:.2f}", f"{estimate:+.3f}", estimate.percent(1)) == (sentence, signed, percent)
    assert Column("share [95 %]", ".3f").text(estimate) == cell


def test_figures_between_minus_one_and_one_are_written_as_in_papers() -> None:
    assert [shown(0.74), shown(-0.031), shown(0.19, signed=True)] == [".74", "−.03", "+.19"]
    assert [with_interval(FULL), with_interval(BARE, signed=True)] == [".43 [.41, .45]", "+.43"]


def test_it_travels_as_columns_as_json_and_unpacked() -> None:
    columns = FULL.columns("gain")
    assert columns == {"gain": 0.431, "gain_low": 0.414, "gain_high": 0.447}
    assert Estimate.of(columns, "gain") == Estimate(**FULL.as_json()) == Estimate(*FULL) == FULL
    assert Estimate.of({"gain": 1.0}, "gain") == Estimate(1.0), "a column without an interval"
    assert all_columns({"gain": FULL, "won": BARE}) == {**columns, "won": 0.431, "won_low": None, "won_high": None}


@pytest.mark.parametrize(
    ("estimate", "lowest", "highest", "is_above", "is_below"),
    [
        (FULL, 0.414, 0.447, True, False),
        (Estimate(-0.2, -0.3, -0.1), -0.3, -0.1, False, True),
        (Estimate(0.1, -0.1, 0.3), -0.1, 0.3, False, False),
        # Without an interval nothing is certain.
        (BARE, 0.431, 0.431, False, False),
    ],
)
def test_what_its_interval_says(
    estimate: Estimate, lowest: float, highest: float, is_above: bool, is_below: bool
) -> None:
    assert (estimate.lowest, estimate.highest) == (lowest, highest)
    assert (estimate.is_above_zero, estimate.is_below_zero) == (is_above, is_below)


def test_intervals_from_a_half_width_widened_or_cut_at_the_scale() -> None:
    assert Estimate.around(0.5, 0.25) == Estimate(0.5, 0.25, 0.75)
    assert Estimate.around(0.5, None) == Estimate(0.5)
    assert Estimate.reaching(0.5, (0.6, 0.7)) == Estimate(0.5, 0.5, 0.7)
    assert Estimate.around(0.9, 0.25).within(0, 1) == Estimate(0.9, 0.65, 1)
    assert BARE.within(0, 0.1) is BARE
