"""Meaning on a page: how often a rewording is nearer than a contrast, as a chart and a table."""

from __future__ import annotations

from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Section, Table
from embaudit.measures.meaning.triples import CONTRASTS, REWORDINGS

# Queries for the section's data, by name, for one audit.
FACTS = {"meaning": "SELECT * FROM meaning WHERE audit_id = ? ORDER BY rewording, nearer, contrast"}
COLUMNS = {
    **{"contrast": Column("contrast"), "rewording": Column("rewording"), "triples": Column("triples", ",")},
    **{"nearer": Column("nearer [95 %]", ".2f", is_bar=True), "words_nearer": Column("by words", ".2f")},
    "margin": Column("margin [95 %]", "+.3f", "+.3f"),
    "rewording_similarity": Column("similarity to the rewording", ".3f"),
    "contrast_similarity": Column("to the contrast", ".3f"),
}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    rows = facts["meaning"]
    if not rows:
        return None
    table = Table.of(
        COLUMNS,
        rows,
        "Triples of a sentence, a rewording and a contrast, in which the rewording is nearer",
        brief=len(CONTRASTS),
        more="embaudit query meaning",
    )
    return Section("Meaning", [_chart(rows), table])


def _chart(rows: list[dict[str, Any]]) -> Chart:
    places = [
        Mark(x=row["nearer"], y=row["contrast"], series=f"{row['rewording']} rewording", label=f"{row['nearer']:.2f}")
        for row in rows
    ]
    intervals = [
        Mark(x=row["nearer_low"], x2=row["nearer_high"], y=row["contrast"], series=f"{row['rewording']} rewording")
        for row in rows
    ]
    chance = Layer("rule", [Mark(x=0.5)], tone="soft", is_dashed=True, is_data=False)
    ordered = [row["contrast"] for row in rows if row["rewording"] == REWORDINGS[0]]
    panel = Panel(
        [chance, Layer("rule", intervals, is_data=False), Layer("point", places)],
        Axis("share of triples in which the rewording is nearer", ".0%", domain=(0, 1)),
        Axis(categories=ordered),
    )
    return Chart(
        "A rewording, or almost the same words?",
        "Each point: how often a sentence is nearer to its rewording than to a contrast of this kind, with its 95 % "
        "interval; dashed: chance. Words alone are always wrong.",
        [[panel]],
        more="embaudit query meaning",
    )
