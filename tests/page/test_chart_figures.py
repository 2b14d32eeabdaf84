"""What each chart of an audit's page shows: which figures of which tables, with which intervals, and in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from statistics import fmean
from typing import Any

import pytest

from embaudit.declared.chart import Chart, Mark, Place
from embaudit.measures import MEASURES
from embaudit.measures.placement.work import WORDS
from embaudit.measures.position import DEPTHS
from embaudit.measures.sticky.charts import group_chart
from embaudit.pages.write import audit_page

Row = Mapping[str, Any]
Facts = Mapping[str, Any]
Point = tuple[Place, Place]
Span = tuple[Place, Place, Place, Place]


@pytest.fixture(scope="module")
def charts(full_facts: dict[str, Any]) -> dict[str, Chart]:
    parts = chain.from_iterable(section.parts for section in audit_page(full_facts).sections)
    return {part.title: part for part in parts if isinstance(part, Chart)}


def marks(chart: Chart, *kinds: str) -> list[Mark]:
    return [mark for panel in chart.panels for layer in panel.layers if layer.kind in kinds for mark in layer.marks]


def points(chart: Chart) -> list[Point]:
    """Of what the table below the chart lists."""
    layers = [layer for panel in chart.panels for layer in panel.layers if layer.is_data]
    return [(mark.x, mark.y) for layer in layers if layer.kind in ("line", "point") for mark in layer.marks]


def spans(chart: Chart) -> list[Span]:
    """Intervals: upright ones as (x, low, None, high), level ones as (low, y, high, None)."""
    found = [(x, y, x2, y2 if y2 != y else None) for x, y, x2, y2, *_ in marks(chart, "rule", "area")]
    return [span for span in found if (span[2] is None) != (span[3] is None)]


@dataclass(frozen=True)
class Shown:
    """Points and intervals that a chart should have."""

    points: list[Point]
    spans: list[Span] = field(default_factory=list)

    def __add__(self, other: Shown) -> Shown:
        return Shown(self.points + other.points, self.spans + other.spans)

    @property
    def bare(self) -> Shown:
        return Shown(self.points)


def upright(rows: Iterable[Row], x: str, name: str) -> Shown:
    """A figure over a column of the same table, with its bounds where it has them."""
    rows = [row for row in rows if row[name] is not None]
    bounded = [row for row in rows if row.get(f"{name}_low") is not None]
    points = [(row[x], row[name]) for row in rows]
    return Shown(points, [(row[x], row[f"{name}_low"], None, row[f"{name}_high"]) for row in bounded])


def level(rows: Iterable[Row], name: str, y: str) -> Shown:
    found = upright(rows, y, name)
    spans: list[Span] = [(low, place, high, None) for place, low, _, high in found.spans]
    return Shown([(value, place) for place, value in found.points], spans)


def numbered(rows: list[Row]) -> list[Row]:
    return [{**row, "place": place} for place, row in enumerate(rows, 1)]


def where(rows: list[Row], **equal: object) -> list[Row]:
    return [row for row in rows if all(row[name] == value for name, value in equal.items())]


def all_but(rows: list[Row], **equal: object) -> list[Row]:
    return [row for row in rows if not any(row[name] == value for name, value in equal.items())]


def of_shares(facts: Facts) -> Shown:
    of: dict[str, list[float]] = {}
    for row in facts["shares"]:
        name = next(name for name, one in MEASURES.items() if (row["summary"], row["measure"]) in one.shares.items())
        of.setdefault(name, []).append(row["value"])
    spans: list[Span] = [(min(values), name, max(values), None) for name, values in of.items()]
    return Shown([(fmean(values), name) for name, values in of.items()], spans)


def of_temperatures(facts: Facts) -> Shown:
    drawn = [row for row in where(facts["temperature_arms"], arm="temperature") if row["difference"] is not None]
    bounds = [{**row, "difference_low": row["low"], "difference_high": row["high"]} for row in drawn]
    return upright(bounds, "tau", "difference")


def of_cosines(facts: Facts) -> Shown:
    named = [
        {**row, "cosine_mean_low": row["cosine_low"], "cosine_mean_high": row["cosine_high"]}
        for condition in ("natural", "truncation", "windows", "input_embeddings")
        for row in where(facts["length_bins"], corpus="wikipedia", condition=condition)
    ]
    return upright(named, "length", "cosine_mean")


def of_places(facts: Facts) -> Shown:
    return level([{**row, "in words": WORDS[row["strategy"]]} for row in facts["placement"]], "loss", "in words")


def of_norms(facts: Facts) -> Shown:
    tokens = facts["sticky_norms"] + facts["sticky_candidates"]
    return upright(all_but(tokens, embedding_norm=None), "embedding_norm", "loss").bare


CURVES = ("within_text_cosine", "normalised_spread", "contraction", "lambda_head_mean", "r", "sigma_a")
SHOWN: dict[str, Callable[[Facts], Shown]] = {
    "What users complain about": of_shares,
    "If the network stopped after each layer": lambda facts: upright(facts["quality_layers"], "layer", "score"),
    "Candidates compared with ordinary tokens": lambda facts: (
        upright(numbered(facts["sticky_candidates"]), "place", "loss")
        + upright(numbered(facts["sticky_ordinary"]), "place", "loss")
    ),
    "Similarity before and after insertion": lambda facts: upright(facts["sticky_shifts"], "before", "after"),
    "Input embeddings and loss": of_norms,
    "Two texts and their tokens, wikipedia": lambda facts: upright(
        where(facts["socm_planes"], corpus="wikipedia"), "x", "y"
    ),
    "Layer by layer": lambda facts: sum((upright(facts["layers"], "layer", name) for name in CURVES), start=Shown([])),
    "What stays among the ten best documents": lambda facts: (
        level(facts["surface"], "overlap", "change") + level(facts["surface"], "words_overlap", "change")
    ),
    "A rewording, or almost the same words?": lambda facts: level(facts["meaning"], "nearer", "contrast"),
    "What evidence gains, by its place in a document": lambda facts: (
        upright([row for row in facts["position"] if row["depth"] in DEPTHS], "tokens_before", "gain")
        + upright([row for row in facts["position"] if row["depth"] in DEPTHS], "tokens_before", "words_gain")
    ),
    "What a search keeps with smaller vectors": lambda facts: (
        upright(facts["compression"], "bytes", "recall")
        + upright(all_but(facts["compression"], way="first quarter, int8"), "bytes", "random_recall")
    ),
    "nDCG@10 by the size of pieces": lambda facts: (
        upright(all_but(facts["chunk"], way="whole"), "size", "score")
        + upright(where(facts["chunk"], way="best"), "size", "words_score")
    ),
    "Which translations are found": lambda facts: (
        level(facts["languages"], "found", "name")
        + level(all_but(facts["languages"], found=None), "words_found", "name")
    ),
    "Similarity by length, wikipedia": of_cosines,
    "σ_a by length, wikipedia": lambda facts: (
        upright(facts["length_sigma"], "tokens", "sigma_a") + upright(facts["length_sigma"], "tokens", "bound")
    ),
    "Score by temperature": of_temperatures,
    "Loss by position of the copies": of_places,
}
# Intervals that reach beyond a share's ends, in these made-up rows.
BEYOND = {"A rewording, or almost the same words?", "What stays among the ten best documents"}
# Its cells are counts of pairs (test_charts.py).
COUNTED = "What mean pooling keeps and discards, wikipedia"


def test_every_chart_is_looked_at(charts: dict[str, Chart]) -> None:
    assert set(charts) == {*SHOWN, COUNTED}


@pytest.mark.parametrize("title", SHOWN)
def test_a_chart_shows_its_tables_figures_and_their_intervals(
    charts: dict[str, Chart], full_facts: dict[str, Any], title: str
) -> None:
    shown = SHOWN[title](full_facts)
    assert shown.points
    assert sorted(points(charts[title]), key=str) == sorted(shown.points, key=str)
    assert sorted(spans(charts[title]), key=str) == sorted(shown.spans, key=str)


@pytest.mark.parametrize("title", [*SHOWN, COUNTED])
def test_everything_lies_within_the_axes(charts: dict[str, Chart], title: str) -> None:
    for panel in charts[title].panels:
        for axis, places in ((panel.x, ("x", "x2")), (panel.y, ("y", "y2"))):
            found = [getattr(mark, place) for layer in panel.layers for mark in layer.marks for place in places]
            drawn = {place for place in found if place is not None}
            if axis.categories:
                assert drawn <= set(axis.categories)
            elif axis.domain is not None and title not in BEYOND:
                assert all(axis.domain[0] - 1e-9 <= place <= axis.domain[1] + 1e-9 for place in drawn), (title, axis)


def in_words(value: Place) -> set[str]:
    """A figure as labels write it."""
    assert isinstance(value, float | int)
    return {f"{value:{form}}" for form in (".2f", ".3f", ".0%", ".1%")}


@pytest.mark.parametrize("title", [title for title in SHOWN if title != "Two texts and their tokens, wikipedia"])
def test_a_point_says_the_figure_that_it_stands_for(charts: dict[str, Chart], title: str) -> None:
    for panel in charts[title].panels:
        for layer in panel.layers:
            if layer.is_data and layer.kind in ("line", "point"):
                for mark in layer.marks:
                    value = mark.x if panel.y.categories else mark.y
                    assert any(said in mark.label for said in in_words(value)), (title, mark)


def test_groups_are_shown_by_their_quantiles() -> None:
    rows: list[dict[str, Any]] = [
        {"attribute": attribute, "value": value, "tokens": 1_200, "losses": [low, low + 0.1, low + 0.2, low + 0.4, 0.9]}
        for attribute, value, low in (("script", "Latin", 0.0), ("script", "Han", 0.1), ("origin", "added", -0.3))
    ]
    chart = group_chart({"sticky_groups": rows})
    assert [panel.title for panel in chart.panels] == ["script", "origin"]
    assert points(chart) == [(row["losses"][2], f"{row['value']} (1,200)") for row in rows]
    named = [(row["losses"], f"{row['value']} (1,200)") for row in rows]
    assert sorted(spans(chart)) == sorted(
        (losses[low], name, losses[high], None) for losses, name in named for low, high in ((0, 4), (1, 3))
    )
    assert [panel.x.domain for panel in chart.panels] == [pytest.approx((-0.32, 0.92))] * 2
