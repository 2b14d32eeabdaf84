"""Findings about geometry: whether unrelated texts look alike, and whether a few dimensions dominate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.declared.finding import Finding, Level, Rows, interval, level_from, unless_ok
from embaudit.measures.geometry.settings import GeometrySettings

# What all texts have in common takes up half of the cosine's range.
ANISOTROPIC = 0.5
# At most FEW dimensions make up half of a mean cosine of at least MATTERS.
FEW = 3
MATTERS = 0.1
WITHOUT_MEAN = "Subtract the corpus mean before comparing vectors."


def findings(rows: Rows, settings: GeometrySettings) -> Iterator[Finding]:
    """At most two, from the audit's tables; none if no corpus has two texts."""
    known = [row for row in rows("geometry") if row["mean_cosine"] is not None]
    if not known:
        return
    yield _isotropy(max(known, key=lambda row: (row["mean_cosine"], row["corpus"])))
    positive = [row for row in known if row["dimensions_for_half"] is not None]
    if positive:
        # Corpora with a small mean cosine come last: there is little to dominate.
        yield _dominating(
            min(positive, key=lambda row: (row["mean_cosine"] < MATTERS, row["dimensions_for_half"], row["corpus"]))
        )


def _isotropy(row: dict[str, Any]) -> Finding:
    low, high = row["mean_cosine_low"], row["mean_cosine_high"]
    level = level_from(row["mean_cosine"], look=ANISOTROPIC)
    return Finding(
        level,
        f"Two texts in {row['corpus']} have a cosine of {row['mean_cosine']:.2f}{interval(low, high)} on average.",
        name="isotropy",
        value=row["mean_cosine"],
        low=low,
        high=high,
        **unless_ok(
            level,
            "Unrelated texts look related: cosine thresholds from other checkpoints do not carry over.",
            WITHOUT_MEAN,
        ),
    )


def _dominating(row: dict[str, Any]) -> Finding:
    few = row["dimensions_for_half"]
    level: Level = "look" if few <= FEW and row["mean_cosine"] >= MATTERS else "ok"
    return Finding(
        level,
        f"Half of the mean cosine in {row['corpus']} comes from {few} of {row['dimension']:,} dimensions.",
        name="dominating_dimensions",
        value=float(few),
        **unless_ok(level, "These few weigh as much in a cosine as all the others together.", WITHOUT_MEAN),
    )
