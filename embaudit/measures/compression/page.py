"""Compression on a page: each way to store vectors, and what a search keeps against its bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, interval
from embaudit.declared.document import Column, Part, Section, Table

# Queries for the section's data, by name, for one audit.
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
    bounds = [mark for row in rows for mark in interval(row["bytes"], row["recall_low"], row["recall_high"])]
    return Chart(
        "What a search keeps with smaller vectors",
        "The share of the ten documents found by float32 that is still found, against the bytes of a stored vector "
        "(logarithmic), with 95 % intervals. Pale: as many random dimensions; a checkpoint trained to be cut is well "
        "above them with its first dimensions.",
        [
            [
                Panel(
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
            ]
        ],
        more=MORE,
    )
