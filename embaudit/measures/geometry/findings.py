"""What the geometry comes to: whether unrelated texts look alike, and whether a few dimensions decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.finding import Finding, Level, Rows, interval, level_from, unless_ok
from embaudit.measures.geometry.settings import GeometrySettings

# Half of the range of the cosine is taken by what all texts have in common.
ANISOTROPIC = 0.5
# So few dimensions that make half of a mean cosine that matters are worth knowing.
FEW = 3
MATTERS = 0.1
WITHOUT_MEAN = "Subtract the mean of a corpus before comparing."


def findings(rows: Rows, settings: GeometrySettings) -> Iterator[Finding]:
    """At most two, from the audit's tables; none where no corpus has two texts."""
    known = [row for row in rows("geometry") if row["mean_cosine"] is not None]
    if not known:
        return
    yield _isotropy(max(known, key=lambda row: (row["mean_cosine"], row["corpus"])))
    positive = [row for row in known if row["dimensions_for_half"] is not None]
    if positive:
        # Where there is little to dominate it matters last.
        yield _dominated(
            min(positive, key=lambda row: (row["mean_cosine"] < MATTERS, row["dimensions_for_half"], row["corpus"]))
        )


def _isotropy(row: dict[str, Any]) -> Finding:
    low, high = row["mean_cosine_low"], row["mean_cosine_high"]
    level = level_from(row["mean_cosine"], look=ANISOTROPIC)
    return Finding(
        level,
        f"Two texts of {row['corpus']} have a cosine of {row['mean_cosine']:.2f}{interval(low, high)} on average.",
        name="isotropy",
        value=row["mean_cosine"],
        low=low,
        high=high,
        **unless_ok(
            level,
            "Unrelated texts look related: a threshold on the cosine that another checkpoint had does not fit.",
            WITHOUT_MEAN,
        ),
    )


def _dominated(row: dict[str, Any]) -> Finding:
    few = row["dimensions_for_half"]
    level: Level = "look" if few <= FEW and row["mean_cosine"] >= MATTERS else "ok"
    return Finding(
        level,
        f"{few} of {row['dimension']:,} dimensions make up half of the mean cosine of {row['corpus']}.",
        name="dominating_dimensions",
        value=float(few),
        **unless_ok(level, "These few weigh as much in a cosine as all others together.", WITHOUT_MEAN),
    )
