"""What counts as worse, by cases worked out by hand; and every rule against figures that a warehouse really has."""

from __future__ import annotations

from pathlib import Path

import pytest
from plausible import plausible_rows

from embaudit.declared.figure import OF_INTERVAL
from embaudit.measures.sticky.steps.verdicts import ACCEPTED_SHARE
from embaudit.warehouse.regression import RULES, Figure, compare, read_figures

SOCM = ("socm_summary", "wikipedia", "socm_mean")


def one(own: Figure, before: Figure) -> dict[str, object]:
    (row,) = compare([own], [before])
    return row


def test_a_change_is_measured_against_both_intervals() -> None:
    """Half-widths .03 down from the new and .04 up from the old value: .05 together."""
    before = Figure(*SOCM, 0.50, 0.47, 0.54)
    worse = one(Figure(*SOCM, 0.56, 0.53, 0.60), before)
    assert worse["tolerance"] == pytest.approx(0.05)
    assert (worse["is_worse"], worse["worse_when"]) == (True, "higher")
    assert worse["delta"] == pytest.approx(0.06)
    assert worse["relative_change"] == pytest.approx(0.12)
    assert one(Figure(*SOCM, 0.54, 0.51, 0.60), before)["is_worse"] is False
    # Better by as much: the other sides of the intervals, .04 up from the new and .03 down from the old.
    better = one(Figure(*SOCM, 0.40, 0.37, 0.44), before)
    assert better["tolerance"] == pytest.approx(0.05)
    assert better["is_worse"] is False


def test_without_an_interval_the_stated_tolerance_counts() -> None:
    before = Figure(*SOCM, 0.50)
    assert one(Figure(*SOCM, 0.519, 0.51, 0.53), before)["is_worse"] is False
    assert one(Figure(*SOCM, 0.521, 0.51, 0.53), before)["is_worse"] is True


def test_another_precision_must_be_exceeded_too() -> None:
    """In half precision a figure may move by 2 % of itself, a tenth of its interval, or .002: the largest."""
    before = Figure(*SOCM, 0.50)
    half = one(Figure(*SOCM, 0.525, dtype="bfloat16"), before)
    assert (half["is_worse"], half["by_precision"]) == (False, pytest.approx(0.0105))
    assert half["tolerance"] == pytest.approx(0.02 + 0.0105)
    assert one(Figure(*SOCM, 0.532, dtype="bfloat16"), before)["is_worse"] is True
    same = one(Figure(*SOCM, 0.525, dtype="bfloat16"), Figure(*SOCM, 0.50, dtype="bfloat16"))
    assert (same["is_worse"], same["by_precision"]) == (True, 0.0)
    wide = one(Figure(*SOCM, 0.02, -0.48, 0.52, "float16"), Figure(*SOCM, 0.01, 0.0, 0.02))
    assert wide["by_precision"] == pytest.approx(0.1)
    assert OF_INTERVAL == ACCEPTED_SHARE


def test_a_count_is_worse_beyond_two_and_a_tenth() -> None:
    def worse(after: float, before: float) -> object:
        name = ("sticky_severity", "moderate", "estimated")
        return one(Figure(*name, after), Figure(*name, before))["is_worse"]

    assert [worse(2, 0), worse(3, 0), worse(33, 30), worse(34, 30), worse(0, 30)] == [False, True, False, True, False]


def test_less_spread_is_worse_in_the_states_that_are_pooled_and_in_no_layer() -> None:
    def figures(value: float) -> list[Figure]:
        layers = [Figure("layer_stat", f"wikipedia, layer {layer}", "normalised_spread", value) for layer in range(3)]
        return [*layers, Figure("pooled_stat", "wikipedia", "normalised_spread", value)]

    rows = compare(figures(0.4), figures(0.5))
    assert [row["summary"] for row in rows if row["is_worse"]] == ["pooled_stat"]
    assert {row["worse_when"] for row in rows} == {"lower", None}
    assert not any(row["is_worse"] for row in compare(figures(0.5), figures(0.4)))


def test_a_figure_without_a_direction_is_stored_and_never_worse() -> None:
    name = ("socm_summary", "wikipedia", "d_sigma_mean")
    row = one(Figure(*name, 9.0), Figure(*name, 0.0))
    assert (row["worse_when"], row["tolerance"], row["is_worse"]) == (None, None, False)
    assert (row["delta"], row["relative_change"]) == (9.0, None)


def test_only_what_both_have_is_compared() -> None:
    other = Figure("socm_summary", "msmarco", "socm_mean", 0.5)
    assert compare([Figure(*SOCM, 0.5), other], [Figure(*SOCM, 0.5)]) == compare(
        [Figure(*SOCM, 0.5)], [Figure(*SOCM, 0.5)]
    )


def test_every_rule_is_of_a_figure_that_audits_have_and_intervals_reach_it(published_once: Path) -> None:
    rows = plausible_rows()
    figures = read_figures(str(published_once), "a1")
    assert {(figure.summary, figure.measure) for figure in figures} >= set(RULES)
    by_name = {figure.name: figure for figure in figures}
    assert len(by_name) == len(figures), "a figure has one interval"
    socm = rows["socm_summary"][0]
    assert by_name[SOCM] == Figure(*SOCM, socm["socm_mean"], socm["socm_low"], socm["socm_high"])
    worst = max((row for row in rows["sticky_validation"] if row["role"] == "candidate"), key=lambda row: row["loss"])
    assert by_name["sticky_token", "retention", "worst_loss"].high == pytest.approx(worst["loss_high"])
    pooled = by_name["pooled_stat", "wikipedia", "within_text_cosine"]
    assert pooled.low is not None
    assert pooled.high is not None
    assert pooled.low < pooled.value < pooled.high


def test_the_documentation_states_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "watch.md").read_text()
    for (summary, measure), rule in RULES.items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{summary}.{measure}`")]
        _, _, worse, tolerance, _ = (cell.strip() for cell in row.split("|"))
        assert worse == rule.when
        stated = [f"{rule.absolute:g}"] * bool(rule.absolute) + [f"{rule.relative:.0%}".replace("%", " %")] * bool(
            rule.relative
        )
        assert tolerance == ", or ".join(stated)
    assert page.count("| higher |") + page.count("| lower |") == len(RULES)
