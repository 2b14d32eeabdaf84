"""What the table of compression shows: findings, and the section of a page.

The smallest vectors that lose little, whether first dimensions hold more, and what a search keeps against its bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import hypot, sqrt
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.chart import interval as interval_marks
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import Finding, Level, Rows, Rule, interval, number
from embaudit.measures.compression import CompressionSettings
from embaudit.measures.compression.steps import DRAWS
from embaudit.statistics import MIN_UNITS, student_quantile

# Two points of nDCG@10 are what choosing among good checkpoints makes; the interval must exclude a larger loss. On the
# sample's 90 queries, intervals of cuts and of bits are ±.02 to ±.04 wide, so they are seldom held or refuted there:
# all-MiniLM-L6-v2 −.016 [−.035, −.001] for bits with rescoring, paraphrase-MiniLM-L3-v2 +.014 [−.020, +.048]. int8
# changes no query of either.
LOSS = 0.02
CHEAPEST = Rule(
    "cheapest",
    f"`compression.ndcg_change` of the smallest way whose interval excludes a loss above {number(LOSS)}",
    look_if="every smaller way surely loses more",
    reason="two points of nDCG@10, as for the impact. `ok` names that way and the smallest of which the queries cannot "
    "tell; `not measured` if they can tell of none. all-MiniLM-L6-v2 on the sample: int8, a quarter of the bytes, 0; "
    "bits with rescoring −.016 [−.035, −.001]",
)
# A quarter of the dimensions is among the sizes that Matryoshka checkpoints are trained for. Not trained for it, the
# first quarter is one draw of random dimensions more: −.023 [−.047, +.002] and +.004 [−.020, +.027].
JUDGED = "first quarter"
MORE_QUERIES = "Give a collection with more judged queries: --corpus retrieval=FOLDER."
DIMENSIONS = Rule(
    "dimensions",
    "`compression.beyond_random` of the first quarter of the dimensions",
    look_if="the checkpoint declares a cut (`truncate_dim`, config or card: Matryoshka), and they keep no more than "
    "random ones",
    reason="more only if it is beyond the interval over queries and the spread of draws together: of 150 random "
    "quarters of two checkpoints' dimensions, none was. `not measured` without an interval. all-MiniLM-L6-v2: −2.3 % "
    "[−4.7, +.2] of the ten nearest",
)


def findings(rows: Rows, settings: CompressionSettings) -> Iterator[Finding]:
    """At most two, from the audit's tables; none if it searched no collection."""
    ways = {row["way"]: row for row in rows("compression")}
    if not ways:
        return
    yield _cheapest([row for way, row in ways.items() if way != "float32"])
    if JUDGED in ways:
        yield _dimensions(ways[JUDGED])


def _cheapest(rows: list[dict[str, Any]]) -> Finding:
    smaller = sorted(rows, key=lambda row: (row["bytes"], -row["ndcg_change"]))
    held = next((row for row in smaller if _is_held(row)), None)
    if held is None:
        return _none_held(smaller)
    undecided = [row for row in smaller if row["bytes"] < held["bytes"] and not _is_lost(row)]
    rest = _undecided(undecided) if undecided else ""
    return CHEAPEST.finding(
        "ok",
        f"Stored as {held['way']}, vectors take {held['of_float32']:.0%} of the bytes, and a search of "
        f"{held['documents']:,} documents keeps {held['recall']:.1%} of the ten that float32 finds and its nDCG@10: "
        f"{held['ndcg']:.3f}, {_change(held)}.{rest}",
        "",
        "",
        *(held[f"ndcg_change{end}"] for end in ("", "_low", "_high")),
    )


def _none_held(smaller: list[dict[str, Any]]) -> Finding:
    best = max(smaller, key=lambda row: row["ndcg_change"])
    level: Level = "look" if all(map(_is_lost, smaller)) else "not measured"
    lost = f"Every smaller vector loses more than {LOSS} of nDCG@10"
    unknown = f"{best['queries']:,} queries cannot tell whether smaller vectors lose more than {LOSS} of nDCG@10"
    return CHEAPEST.finding(
        level,
        f"{lost if level == 'look' else unknown}; the least with {best['way']}: {_change(best)}.",
        "An index of smaller vectors finds other documents."
        if level == "look"
        else "What an index of smaller vectors would find is not known.",
        "Keep float32, or rescore more candidates with it." if level == "look" else MORE_QUERIES,
        *(best[f"ndcg_change{end}"] for end in ("", "_low", "_high")),
    )


def _dimensions(row: dict[str, Any]) -> Finding:
    excess, low, high = (row[f"beyond_random{end}"] for end in ("", "_low", "_high"))
    kept = f"The first {row['kept']:,} of {row['dimension']:,} dimensions keep {row['recall']:.0%} of the ten nearest"
    random = f"{excess:+.1%}{interval(low, high, '+.1%')} compared with as many random ones"
    declared, is_more = row["declared"], _is_more(row)
    level: Level = "not measured" if low is None else "look" if declared and not is_more else "ok"
    said = f" ({declared})" if declared else ""
    known = (
        f", so they were trained to be cut{said}."
        if is_more
        else f", although it is declared that they can be cut{said}."
        if declared
        else ": nothing says that they were trained to be cut, and any others would do as well."
    )
    return DIMENSIONS.finding(
        level,
        f"{kept}, {random}{'.' if level == 'not measured' else known}",
        "Whether the first dimensions hold more than others is not known."
        if level == "not measured"
        else "A cut loses as much as in a checkpoint that was never trained for it.",
        MORE_QUERIES
        if level == "not measured"
        else "Serve all dimensions, or check that these are the weights that the card describes.",
        *(excess, low, high),
    )


def _is_more(row: dict[str, Any]) -> bool:
    """Whether the first dimensions hold more than one more draw of random ones would, over queries and over draws."""
    if row["beyond_random_low"] is None:
        return False
    over_draws = student_quantile(DRAWS) * row["random_spread"] * sqrt(1 + 1 / DRAWS)
    over_queries = row["beyond_random"] - row["beyond_random_low"]
    return bool(row["beyond_random"] > hypot(over_draws, over_queries))


def _is_held(row: dict[str, Any]) -> bool:
    """Whether a loss above the limit is excluded: by the interval, or because no query's nDCG changed."""
    low = row["ndcg_change_low"]
    unchanged = row["ndcg_change"] == 0 and row["queries"] >= MIN_UNITS
    return bool(unchanged if low is None else low > -LOSS)


def _is_lost(row: dict[str, Any]) -> bool:
    high = row["ndcg_change_high"]
    return high is not None and high < -LOSS


def _change(row: dict[str, Any]) -> str:
    if row["ndcg_change"] == 0:
        return "unchanged"
    return f"{row['ndcg_change']:+.3f}{interval(row['ndcg_change_low'], row['ndcg_change_high'], '+.3f')}"


def _undecided(rows: list[dict[str, Any]]) -> str:
    """The smallest of the ways of which it is not known whether they lose more, and how many others there are."""
    first, *others = rows
    more = f", nor of {len(others)} other smaller ways" if others else ""
    return (
        f" Of {first['way']} ({first['of_float32']:.0%} of the bytes, {_change(first)}), {first['queries']:,} queries "
        f"cannot tell{more}."
    )


FACTS = {"compression": "SELECT * FROM compression WHERE audit_id = ? ORDER BY bytes DESC, way"}
COLUMNS = {
    **{"way": Column("stored as"), "bytes": Column("bytes", ","), "of_float32": Column("of float32", ".0%")},
    "recall": Column("recall of its ten [95 %]", ".1%", ".1%", is_bar=True),
    "ndcg": Column("nDCG@10 [95 %]", ".3f", ".3f"),
    "ndcg_change": Column("change [95 %]", "+.3f", "+.3f"),
    "beyond_random": Column("recall beyond random dimensions [95 %]", "+.1%", "+.1%"),
}
MORE = "embaudit query compression"


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Compression", list(_parts(facts["compression"]))) if facts["compression"] else None


def _parts(rows: list[Mapping[str, Any]]) -> Iterator[Part]:
    first = rows[0]
    yield Table.of(
        COLUMNS,
        rows,
        f"{first['queries']:,} queries among {first['documents']:,} documents of {first['data_set']}, "
        f"{first['dimension']:,} dimensions",
        more=MORE,
    )
    if first["words_ndcg"] is not None:
        yield f"BM25, which stores no vectors, has an nDCG@10 of {first['words_ndcg']:.3f} here."
    yield _chart(rows)


def _chart(rows: list[Mapping[str, Any]]) -> Chart:
    points = [Mark(row["bytes"], row["recall"], label=f"{row['way']}: {row['recall']:.1%}") for row in rows]
    names = [Mark(row["bytes"], row["recall"], label=row["way"]) for row in rows]
    random = [
        Mark(row["bytes"], row["random_recall"], label=f"{row['kept']} random dimensions: {row['random_recall']:.1%}")
        for row in rows
        if row["random_recall"] is not None and row["way"] != "first quarter, int8"
    ]
    bounds = [mark for row in rows for mark in interval_marks(row["bytes"], row["recall_low"], row["recall_high"])]
    panel = Panel(
        [
            Layer("rule", bounds, is_data=False),
            Layer("point", random, tone="soft"),
            Layer("point", points),
            # Beside the last point there is no room to its right.
            Layer("text", names[1:], tone="ink", is_data=False),
            Layer("text", names[:1], tone="ink", is_data=False, align="right"),
        ],
        Axis("bytes of a vector", ",d", is_log=True),
        Axis("recall of float32's ten", ".0%"),
    )
    return Chart(
        "What a search keeps with smaller vectors",
        "The share of the ten documents found by float32 that is still found, against the bytes of a stored vector "
        "(logarithmic), with 95 % intervals. Pale: as many random dimensions; a checkpoint trained to be cut is well "
        "above them with its first dimensions.",
        [[panel]],
        more=MORE,
    )
