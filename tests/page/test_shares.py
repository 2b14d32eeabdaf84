"""The chart of several measures side by side: what it compares, and when there is nothing to compare."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from embaudit.declared.chart import Chart
from embaudit.measures import MEASURES
from embaudit.pages.compare import SHARES, shares_section
from embaudit.pages.write import read_audit
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.query import named_queries
from embaudit.warehouse.regression import Figure
from embaudit.warehouse.tables import TABLES

ONE = [
    Figure("surface", "lower case", "overlap", 1.0, 1.0, 1.0),
    Figure("surface", "swapped letters", "overlap", 0.5, 0.4, 0.6),
    Figure("surface", "swapped letters", "moved", 0.3),
    Figure("meaning", "roles, close rewording", "nearer", 0.0, 0.0, 0.1),
]
OTHER = [
    Figure("surface", "swapped letters", "overlap", 0.7, 0.6, 0.8),
    Figure("meaning", "roles, close rewording", "nearer", 0.2, 0.1, 0.3),
    Figure("language", "de", "found", 0.9, 0.8, 1.0),
]


def charts(*sides: tuple[str, list[Figure]]) -> list[Chart]:
    section = shares_section(sides)
    assert section is not None
    return [part for part in section.parts if isinstance(part, Chart)]


def points(chart: Chart) -> dict[tuple[str, str, str], float]:
    """Panel, row and series of each point."""
    return {(one["panel"], one["y"], one["series"]): one["x"] for one in chart.records()}


def test_every_share_is_a_figure_from_0_to_1_of_which_more_is_better() -> None:
    assert len(SHARES) == len({name for name, measure in MEASURES.items() if measure.shares}) == 7
    for table, column in SHARES:
        declared = TABLES[table].columns[column]
        assert declared.within == pytest.approx((0, 1), abs=1e-5), column
        assert declared.figure and declared.figure is not True and declared.figure.when == "lower", column  # noqa: PT018
        assert declared.interval, column


def test_the_named_query_lists_the_same_figures() -> None:
    listed = re.findall(r"\('(\w+)', '(\w+)', '(\w+)'\)", named_queries()["probes"].sql)
    assert {(table, column): measure for measure, table, column in listed} == SHARES


def test_an_audits_shares_are_all_such_figures_with_their_intervals(published_warehouse: Path) -> None:
    with open_reader(published_warehouse) as connection:
        figures = connection.execute("SELECT summary, item, measure, value FROM summary_figure").fetchall()
        intervals = connection.execute("SELECT summary, item, measure, low, high FROM summary_interval").fetchall()
    ends = {tuple(row[:3]): tuple(row[3:]) for row in intervals}
    expected = [(*row, *ends.get(row[:3], (None, None))) for row in figures if (row[0], row[2]) in SHARES]
    assert len({(row[0], row[2]) for row in expected}) == len(SHARES)
    found = [tuple(row.values()) for row in read_audit(published_warehouse, None)["shares"]]
    assert sorted(found, key=repr) == sorted(expected, key=repr)


def test_an_audit_shows_the_mean_of_each_measure() -> None:
    (overview,) = charts(("tiny", ONE))
    assert points(overview) == {("", "surface", ""): 0.75, ("", "meaning", ""): 0.0}


def test_checkpoints_are_compared_over_the_items_that_all_have() -> None:
    overview, items = charts(("one", ONE), ("other", OTHER))
    assert points(overview) == {
        ("", "surface", "one"): 0.5,
        ("", "surface", "other"): 0.7,
        ("", "meaning", "one"): 0.0,
        ("", "meaning", "other"): 0.2,
    }
    assert points(items) == {
        ("surface", "swapped letters", "one"): 0.5,
        ("surface", "swapped letters", "other"): 0.7,
        ("meaning", "roles, close rewording", "one"): 0.0,
        ("meaning", "roles, close rewording", "other"): 0.2,
    }


@pytest.mark.parametrize(
    "sides",
    [
        [("none", [])],
        # Its own section shows it.
        [("one measure", OTHER[-1:])],
        [("one", ONE[-1:]), ("other", OTHER[-1:])],
        [("one", ONE), ("other", OTHER[:1])],
    ],
)
def test_one_measure_needs_no_chart_of_several(sides: list[tuple[str, list[Figure]]]) -> None:
    assert shares_section(sides) is None
