"""Figures: how their items are called, and the views that gather them."""

from __future__ import annotations

import duckdb
import pytest

from embaudit.declared.figure import Summary, SummaryFigure, Worse, cell_view, figure_view, interval_view
from embaudit.measures import MEASURES
from embaudit.warehouse.tables import SUMMARIES

LAYERS = Summary(
    "stat", "{corpus}, layer {layer}", (SummaryFigure("r", "r", Worse("lower"), "r_low", "r_high", dtype="own"),)
)
WORST = Summary("token", "it's worst", (SummaryFigure("loss", "max(loss)"),), is_aggregate=True)


def test_an_item_and_its_parts() -> None:
    assert LAYERS.item_sql == "corpus || ', layer ' || layer"
    assert LAYERS.parts_of("a, layer b, layer 12") == {"corpus": "a, layer b", "layer": "12"}
    assert WORST.item_sql == "'it''s worst'"
    assert WORST.parts_of("it's worst") == {}
    with pytest.raises(ValueError, match="not an item of stat"):
        LAYERS.parts_of("wikipedia")


def test_views_gather_cells_figures_and_intervals() -> None:
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE audit AS SELECT unnest(['a', 'b']) AS audit_id, 'published' AS status, 'float32' AS dtype"
        )
        connection.execute("INSERT INTO audit VALUES ('c', 'checked', 'float32')")
        connection.execute(
            "CREATE TABLE stat (audit_id VARCHAR, corpus VARCHAR, layer INTEGER, r DOUBLE, r_low DOUBLE, "
            "r_high DOUBLE, own VARCHAR)"
        )
        connection.execute(
            "INSERT INTO stat VALUES ('a', 'w', 0, 2, 1, 3, 'bfloat16'), ('a', 'w', 1, NULL, NULL, NULL, NULL), "
            "('c', 'w', 0, 1, 1, 1, NULL)"
        )
        connection.execute("CREATE TABLE token (audit_id VARCHAR, loss DOUBLE)")
        connection.execute("INSERT INTO token VALUES ('b', 0.1), ('b', 0.3)")
        for sql in (cell_view((LAYERS, WORST)), figure_view(), interval_view((LAYERS, WORST))):
            connection.execute(sql)
        cells = connection.execute("FROM summary_cell ORDER BY ALL").fetchall()
        # In the figure's own precision, or else the audit's.
        empty = ("a", "stat", "w, layer 1", "r", None, "float32")
        assert cells == [
            ("a", "stat", "w, layer 0", "r", 2.0, "bfloat16"),
            empty,
            ("b", "token", "it's worst", "loss", 0.3, "float32"),
        ]
        assert connection.execute("FROM summary_figure ORDER BY ALL").fetchall() == [
            one for one in cells if one != empty
        ]
        intervals = connection.execute("FROM summary_interval WHERE low IS NOT NULL ORDER BY ALL").fetchall()
        assert intervals == [("a", "stat", "w, layer 0", "r", 1.0, 3.0), ("c", "stat", "w, layer 0", "r", 1.0, 1.0)]


def test_every_summary_is_a_view_or_a_table_with_its_own_name() -> None:
    assert set(SUMMARIES) == {
        *("sticky_summary", "sticky_token", "sticky_reference_summary", "socm_summary", "layer_stat", "length_rise"),
        *("sticky_severity", "geometry", "pooled_stat", "socm_cut", "socm_length", "socm_contrast", "socm_pooling"),
        *(
            "length_ranking",
            "quality",
            "surface",
            "meaning",
            "meaning_search",
            "position",
            "attractor",
            "attractor_summary",
        ),
        *("chunk", "chunk_length", "compression", "language"),
        *("occurrence_corpus", "sticky_shape", "impact", "mitigation", "mitigation_loss", "placement"),
    }


def test_what_a_reader_asks_for_first_is_a_figure() -> None:
    named = [
        (table, name)
        for measure in MEASURES.values()
        for table, names in measure.headline_figures.items()
        for name in names
    ]
    assert named
    for table, name in named:
        assert name in {figure.name for figure in SUMMARIES[table].figures}, (table, name)
