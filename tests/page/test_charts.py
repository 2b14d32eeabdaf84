"""Charts: what Vega-Lite makes of marks, that their words stay words, and what each measure draws."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup
from plausible import plausible_rows

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, interval
from embaudit.declared.document import Page, Section, figures
from embaudit.measures import MEASURES
from embaudit.measures.layers.findings import curve_chart
from embaudit.measures.length.page import cosine_chart
from embaudit.measures.socm.page import CELLS, density_chart
from embaudit.measures.sticky.charts import shift_chart
from embaudit.pages.compare import SHARES, shares_section
from embaudit.pages.html import FULL_WIDTH, render, specification, svg
from embaudit.pages.write import audit_page, read_audit
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.query import named_queries
from embaudit.warehouse.regression import Figure
from embaudit.warehouse.tables import TABLES
from embaudit.words.sentences import visible


def chart_of(*layers: Layer, x: Axis | None = None, y: Axis | None = None, **named: Any) -> Chart:
    panel = Panel(layers, x or Axis("x"), y or Axis("y"), width=200, height=100)
    return Chart("title", "How to read it.", [[panel]], **named)


def drawn(chart: Chart) -> ElementTree.Element:
    (picture,) = ElementTree.fromstring(svg(chart, {}))
    return picture


def titles(chart: Chart) -> list[str]:
    return ["".join(title.itertext()) for title in drawn(chart).iter("title")]


def page_charts(facts: dict[str, Any]) -> list[Chart]:
    return [part for section in audit_page(facts).sections for part in section.parts if isinstance(part, Chart)]


def test_points_lie_where_their_figures_say() -> None:
    marks = [Mark(0, 0.0, label="first"), Mark(10, 1.0, label="last")]
    picture = drawn(chart_of(Layer("point", marks), x=Axis(domain=(0, 10)), y=Axis(domain=(0, 1))))
    places = [re.findall(r"[\d.]+", path.attrib.get("transform", "translate(0,0)")) for path in picture.iter("path")
              if path.find("title") is not None]  # fmt: skip
    # From the lower left to the upper right of a plane of 200 by 100.
    assert [[float(at) for at in place] for place in places] == [[0, 100], [200, 0]]


def test_a_mark_says_what_it_is_and_a_line_has_points_to_rest_on() -> None:
    marks = [Mark(0, 1.0, series="a", label="a, 0: 1.0"), Mark(1, 2.0, series="a", label="a, 1: 2.0")]
    assert titles(chart_of(Layer("line", marks))) == ["a, 0: 1.0", "a, 1: 2.0"]
    assert titles(chart_of(Layer("line", [Mark(0, 1.0), Mark(1, 2.0)]))) == []


def test_a_picture_has_the_style_sheets_colours_and_nothing_to_load() -> None:
    marks = [Mark(n, n, series=f"s{n}", label=str(n)) for n in range(8)]
    picture = str(
        svg(chart_of(Layer("point", marks), Layer("rule", interval(1, 0.5, 2.5)), tones={"s0": "problem"}), {})
    )
    colours = set(re.findall(r'(?:fill|stroke)="([^"]*)"', picture)) - {"none", "transparent"}
    assert {"var(--problem)", "var(--one)", "var(--six)"} <= colours
    assert all(colour.startswith("var(--") for colour in colours), colours
    assert not re.search(r"url\(|href|xmlns|<script|http|class=", picture.partition("<svg")[2])


def test_all_pictures_are_equally_wide_so_that_letters_are_equally_large(full_facts: dict[str, Any]) -> None:
    widths = [float(drawn(chart).attrib["viewBox"].split()[2]) for chart in page_charts(full_facts)]
    assert len(widths) == 18
    assert set(widths) == {FULL_WIDTH}


def test_nothing_is_drawn_of_nothing() -> None:
    empty = chart_of(Layer("line", []), Layer("rule", [Mark(y=0.5)], is_data=False))
    assert svg(empty, {}) == ""
    assert "<figure" not in render(Page("t", [], [], [Section("s", [empty])]))


def test_a_panel_without_marks_is_left_out_and_the_others_stay() -> None:
    empty = Panel([Layer("point", [])], Axis("x"), Axis("y"), title="nothing measured")
    full = Panel([Layer("point", [Mark(0, 1.0, label="there")])], Axis("x"), Axis("y"), title="measured")
    for rows in ([[empty], [full]], [[empty, full]], [[full, empty], [full]], [[full], [full, empty]]):
        picture = str(svg(Chart("t", "How to read it.", rows), {}))
        assert ">measured<" in picture
        assert "nothing measured" not in picture


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), None])
def test_a_figure_that_is_no_number_has_no_place(odd: float | None) -> None:
    marks = [Mark(0, 0.5, label="there"), Mark(1, odd, label="nowhere")]
    assert "there" in titles(chart_of(Layer("point", marks)))
    assert "NaN" not in str(svg(chart_of(Layer("point", marks)), {}))


@given(st.lists(st.text(min_size=1, max_size=20), min_size=30, max_size=60))
@settings(max_examples=5, deadline=None)
def test_text_from_strangers_stays_text(texts: list[str]) -> None:
    texts += ['"><script>alert(1)</script>', "]]>", "&amp;", "datum.x", "\x1b[31m\u202e", "1e5", "null", "{{ 7 * 7 }}"]
    marks = [Mark(n, n, series=text, label=text) for n, text in enumerate(texts)]
    words = chart_of(Layer("point", marks), x=Axis(texts[0]), y=Axis(texts[-1]))
    assert titles(words) == [visible(text) for text in texts]


def test_a_picture_that_stands_in_the_earlier_page_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def page_of(label: str) -> Page:
        return Page("t", [], [], [Section("s", [chart_of(Layer("point", [Mark(0, 0.5, label=label)]))])])

    first = render(page_of("the"))
    monkeypatch.setattr("embaudit.pages.html._draw", lambda wording, key: Markup("<svg>anew</svg>"))
    assert render(page_of("the"), first) == first
    assert "<svg>anew</svg>" in render(page_of("other"), first)
    assert "<svg>anew</svg>" in render(page_of("the"), first.replace("data-key", "data-other"))


def test_the_table_below_a_chart_has_its_figures() -> None:
    table = figures(
        chart_of(
            Layer("rule", [Mark(y=0.5)], is_data=False),
            Layer("rule", interval("the", 0.1, 0.3, "weak")),
            Layer("point", [Mark("the", 0.2, series="weak", label="loss 0.2")]),
            more="embaudit query worst-tokens",
        )
    )
    assert [column.title for column in table.columns] == ["series", "is", "x", "y", "y, to"]
    assert list(table.rows) == [["weak", "", "the", 0.1, 0.3], ["weak", "loss 0.2", "the", 0.2, None]]
    assert interval("the", None, None) == []


def test_every_chart_of_a_page_says_how_to_read_it_and_offers_its_figures(full_facts: dict[str, Any]) -> None:
    charts = page_charts(full_facts)
    assert [chart.title for chart in charts] == [
        *("What users complain about", "If the network stopped after each layer"),
        *(
            "Candidates compared with ordinary tokens",
            "Similarity before and after insertion",
            "Input embeddings and loss",
        ),
        *("What mean pooling keeps and discards, wikipedia", "Two texts and their tokens, wikipedia"),
        *("Layer by layer", "What stays among the ten best documents", "A rewording, or almost the same words?"),
        *("What evidence gains, by its place in a document", "What a search keeps with smaller vectors"),
        *("nDCG@10 by the size of pieces", "Which translations are found"),
        *("Similarity by length, wikipedia", "σ_a by length, wikipedia", "Score by temperature"),
        "Loss by position of the copies",
    ]
    html = render(audit_page(full_facts))
    assert html.count("<figure>") == html.count("Figures of this chart") == html.count('role="img"') == len(charts)
    for chart in charts:
        assert len(chart.caption) > 80
        assert chart.more.startswith("embaudit query ")
        assert figures(chart).rows


def test_the_shift_is_shown_of_the_flattest_token_beside_an_ordinary_one(full_facts: dict[str, Any]) -> None:
    worst, ordinary = shift_chart(full_facts).panels
    assert worst.title.startswith("龸: slope 0.35")
    assert ordinary.title.startswith("the: slope 0.85")
    # Where after = 0.0583 + 0.35 before meets the diagonal.
    (focus,) = worst.layers[-1].marks
    assert focus.x == focus.y == pytest.approx(0.0583 / 0.65, abs=1e-3)


def test_a_backbone_is_dashed_beside_the_checkpoint(full_facts: dict[str, Any]) -> None:
    rows = full_facts["layers"]
    corpus = rows[0]["corpus"]
    alone, beside = curve_chart({corpus: rows}, []), curve_chart({corpus: rows}, rows)
    assert "Dashed" not in alone.caption
    assert "Dashed: the backbone" in beside.caption
    dashes = [str(specification(chart)).count("strokeDash") for chart in (alone, beside)]
    assert dashes == [0, len(beside.panels)]


def test_limits_are_drawn_where_texts_come_near_them(full_facts: dict[str, Any]) -> None:
    summary, bins = full_facts["length"][0], full_facts["length_bins"]
    longest = max(row["high"] for row in bins)
    for limit, words in ((longest, [f"reads {longest:,}"]), (longest + 1, [])):
        chart = cosine_chart({**summary, "configured_limit": limit, "position_limit": None}, bins)
        assert [mark.label for mark in chart.panels[0].layers[1].marks] == words


def test_what_draws_is_imported_only_to_draw() -> None:
    code = (
        "import sys, embaudit.pages.html, embaudit.pages.write; "
        "print({'vl_convert', 'altair', 'matplotlib'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "set()"


def test_no_pair_is_lost_in_cells_and_every_contour_has_one_socm() -> None:
    counts = [
        {"corpus": "w", "mu": mu, "sigma": sigma, "pairs": 1 + mu} for mu in range(0, 120, 7) for sigma in (3, 150)
    ]
    above, main, beside = density_chart("w", counts).panels
    cells, *lines = main.layers
    assert sum(int(mark.label.split()[0].replace(",", "")) for mark in cells.marks) == sum(c["pairs"] for c in counts)
    assert len({mark.x for mark in cells.marks}) <= CELLS
    assert sum(mark.y2 for mark in above.layers[0].marks) == sum(mark.x2 for mark in beside.layers[0].marks)
    for line in (layer for layer in lines if layer.kind == "line"):
        assert len({round((1 - mark.x) * mark.y, 9) for mark in line.marks}) == 1
        assert all(mark.x <= main.x.domain[1] and mark.y <= main.y.domain[1] + 1e-9 for mark in line.marks)


def test_the_pairs_of_highest_socm_are_shown_with_their_texts(full_facts: dict[str, Any]) -> None:
    rows = plausible_rows()
    texts = [row["text"] for row in rows["text"]]
    by_hand = sorted(rows["socm_pair"], key=lambda row: (-row["socm"], row["first"], row["second"]))[:3]
    assert [(row["socm"], row["first_text"], row["second_text"]) for row in full_facts["socm_worst"]] == [
        (row["socm"], texts[row["first"]], texts[row["second"]]) for row in by_hand
    ]


# ---- the chart of several measures side by side: what it compares, and when there is nothing to compare ----


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
