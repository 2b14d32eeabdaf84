"""Finding about placement: how much more harm the worst tokens do at the worst positions than at the search's."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.declared.finding import Finding, Rows, interval, level_from, unless_ok
from embaudit.measures.placement.page import WORDS
from embaudit.measures.placement.settings import ROTATION, PlacementSettings

# A loss of a tenth beyond the one that the audit reports: the lowest step of severity.
LOOK = 0.1


def findings(rows: Rows, settings: PlacementSettings) -> Iterator[Finding]:
    """One, about the worst positions."""
    severe = [row for row in rows("placement") if row["role"] == "severe"]
    compared = [row for row in severe if row["change"] is not None]
    if not compared:
        return
    rotation = next(row for row in severe if row["strategy"] == ROTATION)
    worst = max(compared, key=lambda row: (row["loss"], row["strategy"]))
    low, high = worst["change_low"], worst["change_high"]
    # Only if the interval excludes 0.
    level = level_from(worst["change"] if (low or 0) > 0 else 0.0, LOOK)
    yield Finding(
        level,
        f"Placed where they hurt most ({WORDS[worst['strategy']]}), up to {worst['budget']} copies of the "
        f"{worst['tokens']} worst tokens erase {worst['loss']:.2f} of the differences between a text's similarities, "
        f"against {rotation['loss']:.2f} at the positions of the search: "
        f"{worst['change']:+.2f}{interval(low, high, '+.2f')}.",
        name="worst_places",
        value=worst["change"],
        low=low,
        high=high,
        **unless_ok(
            level,
            "Whoever can choose the positions does more harm than the tokens' severity suggests.",
            "embaudit query placement-tokens",
        ),
    )
