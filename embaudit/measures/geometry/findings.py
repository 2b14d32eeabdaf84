"""Findings about geometry: whether unrelated texts look alike, and whether a few dimensions dominate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.finding import Finding, Level, Rows, interval
from embaudit.declared.rule import Rule, number
from embaudit.measures.geometry import GeometrySettings

# Below this mean cosine, there is little to dominate.
MATTERS = 0.1
ISOTROPY = Rule(
    "isotropy",
    "`geometry.mean_cosine`",
    look=0.5,
    reason="half of the cosine's range is taken up by what all texts have in common",
)
DOMINATING = Rule(
    "dominating_dimensions",
    "`geometry.dimensions_for_half`",
    look=3,
    worse="lower",
    reason=f"only where the mean cosine is at least {number(MATTERS)}: below that, there is little to dominate",
)
WITHOUT_MEAN = "Subtract the corpus mean before comparing vectors."


def findings(rows: Rows, settings: GeometrySettings) -> Iterator[Finding]:
    """At most two, from the audit's tables; none if no corpus has two texts."""
    known = [row for row in rows("geometry") if row["mean_cosine"] is not None]
    if not known:
        return
    yield _isotropy(max(known, key=lambda row: (row["mean_cosine"], row["corpus"])))
    positive = [row for row in known if row["dimensions_for_half"] is not None]
    if positive:
        # Corpora with a small mean cosine come last.
        yield _dominating(
            min(positive, key=lambda row: (row["mean_cosine"] < MATTERS, row["dimensions_for_half"], row["corpus"]))
        )


def _isotropy(row: dict[str, Any]) -> Finding:
    value, low, high = (row[f"mean_cosine{end}"] for end in ("", "_low", "_high"))
    return ISOTROPY.finding(
        ISOTROPY.level(value),
        f"Two texts in {row['corpus']} have a cosine of {value:.2f}{interval(low, high)} on average.",
        "Unrelated texts look related: cosine thresholds from other checkpoints do not carry over.",
        WITHOUT_MEAN,
        *(value, low, high),
    )


def _dominating(row: dict[str, Any]) -> Finding:
    few = row["dimensions_for_half"]
    level: Level = DOMINATING.level(few) if row["mean_cosine"] >= MATTERS else "ok"
    return DOMINATING.finding(
        level,
        f"Half of the mean cosine in {row['corpus']} comes from {few} of {row['dimension']:,} dimensions.",
        "These few weigh as much in a cosine as all the others together.",
        WITHOUT_MEAN,
        float(few),
    )
