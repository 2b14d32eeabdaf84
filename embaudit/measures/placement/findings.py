"""Finding about placement: how much more harm the worst tokens do at the worst positions than at the search's."""

from __future__ import annotations

from collections.abc import Iterator

from embaudit.declared.finding import Finding, Rows, interval
from embaudit.declared.rule import Rule
from embaudit.measures.placement import ROTATION, PlacementSettings
from embaudit.measures.placement.page import WORDS

WORST_PLACES = Rule(
    "worst_places",
    "`placement.change` of the strategy with the largest loss",
    look=0.1,
    look_if="{look} beyond the places used in the search (severity's smallest step), and the interval is above 0",
    reason="severe tokens, on average",
)


def findings(rows: Rows, settings: PlacementSettings) -> Iterator[Finding]:
    """One, about the worst positions."""
    severe = [row for row in rows("placement") if row["role"] == "severe"]
    compared = [row for row in severe if row["change"] is not None]
    if not compared:
        return
    rotation = next(row for row in severe if row["strategy"] == ROTATION)
    worst = max(compared, key=lambda row: (row["loss"], row["strategy"]))
    low, high = worst["change_low"], worst["change_high"]
    yield WORST_PLACES.finding(
        WORST_PLACES.level(worst["change"]) if (low or 0) > 0 else "ok",
        f"Placed where they hurt most ({WORDS[worst['strategy']]}), up to {worst['budget']} copies of the "
        f"{worst['tokens']} worst tokens erase {worst['loss']:.2f} of the differences between a text's similarities, "
        f"against {rotation['loss']:.2f} at the positions of the search: "
        f"{worst['change']:+.2f}{interval(low, high, '+.2f')}.",
        "Whoever can choose the positions does more harm than the tokens' severity suggests.",
        "embaudit query placement-tokens",
        *(worst["change"], low, high),
    )
