"""Languages on a page: each beside English, and which translations are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Part, Section, Table, count

# Queries for the section's data, by name, for one audit.
FACTS = {
    "languages": "SELECT * FROM language WHERE audit_id = ? ORDER BY found DESC NULLS FIRST, language",
    "language_severe": (
        "SELECT script, count(*) FILTER (severity IN ('strong', 'moderate')) AS severe FROM sticky_token "
        "WHERE audit_id = ? GROUP BY script ORDER BY script"
    ),
}
MORE = "embaudit query languages"
ROW_HEIGHT = 20
COLUMNS = {
    **{"name": Column("language"), "script": Column("script")},
    "found": Column("translations found [95 %]", ".0%", ".0%", is_bar=True),
    "words_found": Column("by characters", ".0%"),
    "margin": Column("margin [95 %]", "+.3f", "+.3f", is_detail=True),
    "unknown": Column("unknown tokens", ".1%"),
    "premium": Column("tokens beside English", ".2f", is_detail=True),
    "alike": Column("cosine of two sentences", ".2f"),
    "told_apart": Column("told apart [95 %]", ".0%", ".0%"),
    "same_ids": Column("pairs with the same ids", ",", is_detail=True),
}
Row = Mapping[str, Any]


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Languages", list(_parts(facts))) if facts["languages"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    rows = facts["languages"]
    severe = {row["script"]: row["severe"] for row in facts["language_severe"]}
    # Severe tokens only if they were searched for.
    of_script = {"severe": Column("severe tokens of the script", ",", is_detail=True)} if severe else {}
    yield Table.of(
        COLUMNS | of_script,
        [{**row, "severe": severe.get(row["script"], 0)} for row in rows],
        f"The same {count(rows[0]['sentences'], 'sentence')} in each language",
        more=MORE,
    )
    if empty := [row for row in rows if row["empty"]]:
        said = ", ".join(f"{row['empty']:,} in {row['name']}" for row in empty)
        yield f"Sentences of which the tokenizer leaves nothing: {said}."
    yield _chart([row for row in rows if row["found"] is not None])


def _chart(rows: list[Row]) -> Chart:
    names = [row["name"] for row in rows]
    bounds = [Mark(row["found_low"], row["name"], x2=row["found_high"]) for row in rows if row["found_low"] is not None]
    points = [Mark(row["found"], row["name"], label=f"{row['name']}: {row['found']:.0%}") for row in rows]
    characters = [
        Mark(row["words_found"], row["name"], label=f"{row['name']}, by characters: {row['words_found']:.0%}")
        for row in rows
    ]
    return Chart(
        "Which translations are found",
        "The share of sentences that are nearest to their translation into English among all sentences, mean of both "
        "directions, with 95 % intervals. Pale: by three characters each, which finds names, numbers and cognates. "
        "Dashed: chance.",
        [
            [
                Panel(
                    [
                        Layer("rule", [Mark(x=row["chance"]) for row in rows[:1]], "soft", True, is_data=False),
                        Layer("rule", bounds, is_data=False),
                        Layer("point", characters, tone="soft"),
                        Layer("point", points),
                    ],
                    Axis("translations found", ".0%", (0, 1)),
                    Axis(categories=names),
                    height=ROW_HEIGHT * len(names),
                )
            ]
        ],
        more=MORE,
    )
