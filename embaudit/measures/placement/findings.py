"""What placement comes to: how much more than the search says the worst tokens take where they hurt most."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.finding import Finding, Rows, interval, level_from, unless_ok
from embaudit.measures.placement.page import WORDS
from embaudit.measures.placement.settings import ROTATION, PlacementSettings

# A tenth of a text's similarities beyond what the audit says of the token: severity's smallest step.
LOOK = 0.1


def findings(rows: Rows, settings: PlacementSettings) -> Iterator[Finding]:
    """One, of the worst places."""
    severe = [row for row in rows("placement") if row["role"] == "severe"]
    compared = [row for row in severe if row["change"] is not None]
    if not compared:
        return
    rotation = next(row for row in severe if row["strategy"] == ROTATION)
    worst = max(compared, key=lambda row: (row["loss"], row["strategy"]))
    low, high = worst["change_low"], worst["change_high"]
    # A difference that its interval does not tell from 0 is no reason to look.
    level = level_from(worst["change"] if (low or 0) > 0 else 0.0, LOOK)
    yield Finding(
        level,
        f"Where they hurt most ({WORDS[worst['strategy']]}), up to {worst['budget']} copies of the "
        f"{worst['tokens']} worst tokens take {worst['loss']:.2f} of a text's similarities, against "
        f"{rotation['loss']:.2f} in the places of the search: {worst['change']:+.2f}{interval(low, high, '+.2f')}.",
        name="worst_places",
        value=worst["change"],
        low=low,
        high=high,
        **unless_ok(
            level,
            "Whoever chooses the places does more harm than the severity of the tokens says.",
            "embaudit query placement-tokens",
        ),
    )
