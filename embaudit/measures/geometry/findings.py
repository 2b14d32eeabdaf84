"""What the geometry comes to: whether unrelated texts look alike, and whether a few dimensions decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.finding import Finding, Rows, interval, level_from
from embaudit.measures.geometry.settings import GeometrySettings

# Half of the range of the cosine is taken by what all texts have in common.
ANISOTROPIC = 0.5
# So few dimensions that make half of a mean cosine that matters are worth knowing.
FEW = 3
MATTERS = 0.1


def findings(rows: Rows, settings: GeometrySettings) -> Iterator[Finding]:
    """At most two, from the audit's tables; none where no corpus has two texts."""
    known = [row for row in rows("geometry") if row["mean_cosine"] is not None]
    if not known:
        return
    yield _isotropy(max(known, key=lambda row: (row["mean_cosine"], row["corpus"])))
    dominated = [
        row for row in known if (row["dimensions_for_half"] or FEW + 1) <= FEW and row["mean_cosine"] >= MATTERS
    ]
    if dominated:
        yield _dominated(min(dominated, key=lambda row: (row["dimensions_for_half"], row["corpus"])))


def _isotropy(row: dict[str, Any]) -> Finding:
    low, high = row["mean_cosine_low"], row["mean_cosine_high"]
    level = level_from(row["mean_cosine"], look=ANISOTROPIC)
    return Finding(
        level,
        f"Two texts of {row['corpus']} have a cosine of {row['mean_cosine']:.2f}{interval(low, high)} on average.",
        "Unrelated texts look related: a threshold on the cosine that another checkpoint had does not fit."
        if level == "look"
        else "Unrelated texts look unrelated.",
        "Subtract the mean of a corpus before comparing." if level == "look" else "",
        name="isotropy",
        value=row["mean_cosine"],
        low=low,
        high=high,
    )


def _dominated(row: dict[str, Any]) -> Finding:
    few = row["dimensions_for_half"]
    makes = "1 dimension makes" if few == 1 else f"{few} dimensions make"
    return Finding(
        "look",
        f"{makes} half of the mean cosine of {row['corpus']}, of {row['dimension']:,}.",
        "Cosines read little else.",
        "Subtract the mean of a corpus before comparing.",
        name="dominating_dimensions",
        value=float(few),
    )
