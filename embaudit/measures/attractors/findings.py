"""What the tables of attractors show: findings, and the section of a page.

Do texts without content stand above relevant ones, and does one text stand everywhere?
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import Finding, Level, Rows, Rule, interval, percent
from embaudit.measures.attractors import AttractorsSettings
from embaudit.statistics import MIN_UNITS

Row = dict[str, Any]
# An interval that reaches three times the limit says nothing.
UNCLEAR = 0.15
JUNK = Rule(
    "junk",
    "1 − `attractor_summary.clean`",
    look=0.05,
    is_share=True,
    look_if="interval above {look}",
    reason="one query in twenty with navigation, notices or placeholders above every relevant document is more than "
    "users overlook: 0 % for all-MiniLM-L6-v2, 3 % for paraphrase-MiniLM-L3-v2, 24 % for TF-IDF. `not measured` below "
    f"ten queries, or if the interval holds {{look}} and reaches {percent(UNCLEAR)}",
)
# Skewness, and its interval; it must exceed that of TF-IDF, too, since some collections have such texts.
SKEWED = 2.0
HUBS = Rule(
    "hubs",
    "`attractor_summary.top_share`, `skew`",
    look=0.25,
    is_share=True,
    look_if=f"interval of the share above {{look}}, or of the skewness above {SKEWED:g} and that of TF-IDF",
    reason="one document in every fourth list of ten; 10 % and 11 % for these two, 19 % for TF-IDF. Skewness is 1.1 "
    "for both, 2.3 for TF-IDF, .2 and .3 for random vectors: collections have texts that are near many others. `not "
    "measured` up to twenty documents",
)
# Where there are too few queries or documents to tell.
MORE = "Audit with a larger collection: --corpus retrieval=FOLDER"
IN_THE_WAY = (
    "Navigation, notices and placeholders that stand in an index take the place of answers.",
    "Remove such texts before they are encoded (embaudit query attractors lists the kinds).",
)
# Of a text in a sentence.
SHOWN = 60


def findings(rows: Rows, settings: AttractorsSettings) -> Iterator[Finding]:
    """Two, from the audit's tables."""
    for row in rows("attractor_summary"):
        yield _junk(row, rows("attractor"))
        yield _hubs(row, sorted(rows("hub"), key=lambda one: one["rank"]))


def _junk(row: Row, kinds: list[Row]) -> Finding:
    if row["clean_high"] is None:
        sentence = f"Whether texts without content come up is not known: {_few(row)}."
        return JUNK.finding("not measured", sentence, advice=MORE)
    # The share of queries that are not clean, and its interval.
    share, low, high = (1 - row[end] for end in ("clean", "clean_high", "clean_low"))
    level: Level = "look" if low > JUNK.look else "ok" if high <= UNCLEAR else "not measured"
    worst = max(kinds, key=lambda one: (one["above"], one["met"], one["kind"]), default=None)
    named = ""
    if level == "look" and worst is not None and worst["worst_text"]:
        named = f" Most often: {worst['kind']} ({worst['above']:.0%}), such as “{_short(worst['worst_text'])}”."
    words = "" if row["words_clean"] is None else f" (by TF-IDF for {1 - row['words_clean']:.0%})"
    return JUNK.finding(
        level,
        f"For {share:.0%}{interval(low, high, '.0%')} of {row['queries']:,} queries, one of {row['texts']} texts "
        f"without content stands above every relevant document{words}.{named}"
        + (" Too few queries to tell whether that is many." if level == "not measured" else ""),
        *(("", MORE) if level == "not measured" else IN_THE_WAY),
        *(share, low, high),
    )


def _hubs(row: Row, hubs: list[Row]) -> Finding:
    askers = row["documents"] + row["queries"]
    if row["skew_low"] is None or row["top_share_low"] is None:
        sentence = (
            f"Whether some documents come up everywhere is not known: {row['documents']:,} documents are too few."
        )
        return HUBS.finding("not measured", sentence, advice=MORE)
    is_skewed = row["skew_low"] > max(SKEWED, row["words_skew"] or 0.0)
    level: Level = "look" if is_skewed or row["top_share_low"] > HUBS.look else "ok"
    others = {"TF-IDF": row["words_skew"], "random vectors": row["random_skew"]}
    known = ", ".join(f"{what} {value:.1f}" for what, value in others.items() if value is not None)
    beside = f" ({known})" if known else ""
    text = f" (“{_short(hubs[0]['text'])}”)" if level == "look" and hubs else ""
    return HUBS.finding(
        level,
        f"The document that comes up most{text} is among the ten nearest of {row['top_share']:.0%}"
        f"{interval(row['top_share_low'], row['top_share_high'], '.0%')} of {askers:,} texts; occurrences have a "
        f"skewness of {row['skew']:.1f}{interval(row['skew_low'], row['skew_high'], '.1f')}{beside}.",
        "A few documents stand in the results of many queries that they have nothing to do with.",
        "embaudit query hubs lists them. Subtract the mean vector of the documents, or remove them if they are "
        "boilerplate.",
        *(row[f"top_share{end}"] for end in ("", "_low", "_high")),
    )


def _few(row: Row) -> str:
    return f"{row['queries']:,} queries are fewer than {MIN_UNITS}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN].rstrip()} …"


FACTS = {
    "attractors": "SELECT * FROM attractor WHERE audit_id = ? ORDER BY above DESC, met DESC, kind",
    "attractor_hubs": "SELECT * FROM hub WHERE audit_id = ? ORDER BY rank",
    "attractor_summary": "SELECT * FROM attractor_summary WHERE audit_id = ? ORDER BY data_set",
}
KIND_COLUMNS = {
    **{"kind": Column("texts without content"), "texts": Column("texts", ",")},
    "met": Column("among the ten best [95 %]", ".0%", ".0%", is_bar=True),
    "chance": Column("at random", ".0%"),
    "words_met": Column("by TF-IDF", ".0%"),
    "above": Column("above all relevant [95 %]", ".0%", ".0%"),
    "words_above": Column("above all, by TF-IDF", ".0%"),
    "worst_text": Column("worst of them", is_prose=True, is_detail=True),
}
HUB_COLUMNS = {
    "text": Column("document", is_prose=True),
    "occurrences": Column("occurrences", ","),
    "words_occurrences": Column("by TF-IDF", ","),
    "met": Column("of the queries", ".0%"),
    "relevant": Column("relevant for", ","),
    "above_relevant": Column("above relevant ones for", ","),
    "words": Column("words", ","),
}
HUBS_SHOWN = 5


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Attractors", list(_parts(facts))) if facts["attractors"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    first = facts["attractors"][0]
    yield Table.of(
        KIND_COLUMNS,
        [{**row, "worst_text": _cell(row["worst_text"])} for row in facts["attractors"]],
        f"Queries of {first['data_set']} that meet texts without content",
        headline=HUBS_SHOWN,
        more="embaudit query attractors",
    )
    for row in facts["attractor_summary"]:
        others = {"TF-IDF": row["words_skew"], "random vectors": row["random_skew"]}
        beside = ", ".join(f"{value:.2f} for {name}" for name, value in others.items() if value is not None)
        if row["skew"] is not None:
            yield f"Skewness of the documents' occurrences: {row['skew']:.2f}{f'; {beside}' if beside else ''}."
    if facts["attractor_hubs"]:
        yield Table.of(
            HUB_COLUMNS,
            [{**row, "text": _cell(row["text"])} for row in facts["attractor_hubs"]],
            "Documents that are among the ten nearest of most documents and queries",
            brief=HUBS_SHOWN,
            more="embaudit query hubs",
        )


def _cell(text: str | None) -> str | None:
    return text if text is None or len(text) <= SHOWN else f"{text[:SHOWN].rstrip()} …"
