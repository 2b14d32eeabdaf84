"""What temperatures come to: whether one helps, on texts that it was not chosen on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.finding import MAX_FINDINGS, Finding, Rows, interval
from embaudit.measures.tempscale.settings import TempscaleSettings


def findings(rows: Rows, settings: TempscaleSettings) -> Iterator[Finding]:
    """One for each task that gains, the largest gain first; or one that none does."""
    choices = [row for row in rows("tempscale_choice") if row["bin"] == 0]
    gains = sorted(
        (row for row in choices if row["recommendation"] == "yes"), key=lambda row: (-row["difference"], row["task"])
    )
    yield from (_gain(row) for row in gains[:MAX_FINDINGS])
    if choices and not gains:
        asked = ", ".join(row["task"].replace("_", " ") for row in choices)
        # An answer needs an interval, or a choice that fell on 1; too few items have neither.
        is_known = any(row["recommendation"] == "no" and (row["low"] is not None or row["tau"] == 1) for row in choices)
        yield Finding(
            "ok" if is_known else "not measured",
            f"No attention temperature below 1 was shown to help ({asked})."
            if is_known
            else f"It is not known whether an attention temperature helps: {choices[0]['reason'].rstrip('.')}.",
            name="temperature",
        )


def _gain(row: dict[str, Any]) -> Finding:
    task = row["task"].replace("_", " ")
    return Finding(
        "look",
        f"At an attention temperature of {row['tau']:g}, {task} scores {row['score_after']:.3f} instead of "
        f"{row['score_before']:.3f} ({row['difference']:+.3f}{interval(row['low'], row['high'], '+.3f')}, held out).",
        "The task gains without training.",
        f"embaudit apply-temperature CHECKPOINT --tau {row['tau']:g} --out DIR",
        name=f"temperature_{row['task']}",
        value=row["difference"],
        low=row["low"],
        high=row["high"],
    )
