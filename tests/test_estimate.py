"""An estimate: how it is written, and which interval it takes."""

from __future__ import annotations

import pytest

from embaudit.declared.document import Column
from embaudit.words.estimate import Estimate, all_columns, shown, with_interval

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
