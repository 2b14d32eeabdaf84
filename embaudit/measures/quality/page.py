"""Quality on a page: scores beside what needs no network, layer by layer, and what other readings would gain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Part, Section, Table

# Queries for the section's data, by name, for one audit.
FACTS = {
    "quality": "SELECT * FROM quality WHERE audit_id = ? ORDER BY kind, data_set",
    "quality_layers": "SELECT * FROM quality_layer WHERE audit_id = ? ORDER BY kind, data_set, layer",
    "quality_readings": (
        "SELECT *, avg(gain) OVER (PARTITION BY reading) AS mean FROM quality_reading WHERE audit_id = ? "
        "ORDER BY mean DESC, reading, kind, data_set"
    ),
}
METRICS = {"pairs": "Spearman's ρ", "queries": "nDCG@10", "golden": "success@10"}
SCORES = {
    **{"data_set": Column("data set"), "of": Column("score of", is_prose=True), "items": Column("number", ",")},
    "score": Column("score [95 %]", ".3f"),
    "words_gain": Column("gain on word overlap [95 %]", "+.3f", "+.2f"),
    "input_gain": Column("gain on its input embeddings [95 %]", "+.3f", "+.2f"),
}
SCALE = {
    "data_set": Column("data set"),
    "unrelated_median": Column("unrelated pairs: median", ".2f"),
    "matching_median": Column("matching pairs: median", ".2f"),
    "threshold": Column("lets 1 % of unrelated through [95 %]", ".3f"),
    "kept": Column("keeps of matching [95 %]", ".0%", ".0%"),
    **{"directions": Column("directions", ".0f"), "separation": Column("separation", ".1f")},
}
READINGS = {
    **{"reading": Column("reading", is_prose=True), "aspect": Column("changes")},
    **{"data_set": Column("data set"), "kind": Column("score of")},
    "gain": Column("gain on the declared reading [95 %]", "+.3f", "+.2f"),
}
READINGS_SHOWN = 8
BESIDE = 2
Row = Mapping[str, Any]


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Quality", list(_parts(facts))) if facts["quality"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    rows = facts["quality"]
    yield Table.of(
        SCORES,
        [{**row, "of": f"{row['kind']}, {METRICS[row['kind']]}"} for row in rows],
        "Scores, beside what needs no network",
        more="embaudit query quality",
    )
    if scaled := [row for row in rows if row["threshold"] is not None]:
        yield Table.of(SCALE, scaled, "The scale of its scores, for thresholds")
    if facts["quality_layers"]:
        yield _layer_chart(rows, facts["quality_layers"])
    if facts["quality_readings"]:
        yield Table.of(
            READINGS,
            facts["quality_readings"],
            "The same checkpoint read otherwise, best first",
            brief=READINGS_SHOWN,
            more="embaudit query quality-readings",
        )


def _layer_chart(data: list[Row], layers: list[Row]) -> Chart:
    """A panel per data set."""
    panels = []
    for one in data:
        rows = [row for row in layers if (row["data_set"], row["kind"]) == (one["data_set"], one["kind"])]
        if rows:
            panels.append(_panel(one, rows))
    return Chart(
        "If the network stopped after each layer",
        "The score of the states that each layer leaves, pooled as declared; 0 is the input embeddings with their "
        "positions. A healthy network rises to its end or near it; a layer behind which the line falls makes the "
        "vectors worse. Dashed: word overlap, which needs no network.",
        [panels[start : start + BESIDE] for start in range(0, len(panels), BESIDE)],
        more="embaudit query quality-layers",
    )


def _panel(one: Row, rows: list[Row]) -> Panel:
    bands = [
        Mark(row["layer"], row["score_low"], y2=row["score_high"], series=one["data_set"])
        for row in rows
        if row["score_low"] is not None
    ]
    curve = [
        Mark(row["layer"], row["score"], series=one["data_set"], label=f"layer {row['layer']}: {row['score']:.3f}")
        for row in rows
    ]
    words = [] if one["words_score"] is None else [Mark(y=one["words_score"])]
    return Panel(
        [
            Layer("area", bands, is_data=False),
            Layer("rule", words, tone="soft", is_dashed=True, is_data=False),
            Layer("line", curve),
            Layer("point", curve, is_data=False),
        ],
        Axis("layers", "d", (0, rows[-1]["layer"])),
        Axis(title="", format=".2f"),
        f"{METRICS[one['kind']]}, {one['items']:,} {one['kind']} of {one['data_set']}",
        height=150,
    )
