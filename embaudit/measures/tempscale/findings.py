"""Findings about attention temperature: whether one helps, on texts that it was not chosen on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from embaudit.declared.finding import MAX_FINDINGS, Finding, Rows, interval
from embaudit.declared.rule import Rule
from embaudit.measures.tempscale import TempscaleSettings

GAIN = Rule(
    "temperature_{task}",
    "`tempscale_choice`",
    look_if="the task gains",
    reason="the interval of the held-out difference is above 0: there is something to gain, and nothing is broken",
)
NO_GAIN = Rule(
    "temperature",
    GAIN.source,
    reason="`ok`, if no task gains, needs an interval, or a choice of 1; otherwise `not measured`",
)
BY_PART = Rule(
    "temperature_{task}_by_{part}",
    "`tempscale_search`",
    look_if="one τ per layer or head gains more",
    reason="both intervals are above 0: that of the difference from τ = 1, and that of the difference from the best "
    "single τ",
)
# Arms without a temperature, as they begin a sentence.
BASELINES = {"chunk_average": "Averaging chunks", "centring": "Centring", "whitening": "Whitening"}


def findings(rows: Rows, settings: TempscaleSettings) -> Iterator[Finding]:
    """One per task that gains, largest gain first, or one saying that none does; then gains from per-part τ."""
    found = [*_of_one(rows), *(_by_part(row) for row in rows("tempscale_search") if row["recommendation"] == "yes")]
    yield from islice(found, MAX_FINDINGS)


def _of_one(rows: Rows) -> Iterator[Finding]:
    choices = [row for row in rows("tempscale_choice") if row["bin"] == 0]
    gains = sorted(
        (row for row in choices if row["recommendation"] == "yes"), key=lambda row: (-row["difference"], row["task"])
    )
    arms = [row for row in rows("tempscale") if row["bin"] == 0 and row["split"] == "report"]
    for row in gains:
        yield _gain(row, [arm for arm in arms if arm["task"] == row["task"] and arm["arm"] in BASELINES])
    if choices and not gains:
        asked = ", ".join(row["task"].replace("_", " ") for row in choices)
        # A "no" needs an interval, or a choice of τ = 1; with too few items there is neither.
        is_known = any(row["recommendation"] == "no" and (row["low"] is not None or row["tau"] == 1) for row in choices)
        yield NO_GAIN.finding(
            "ok" if is_known else "not measured",
            f"No attention temperature below 1 was shown to help ({asked})."
            if is_known
            else f"Whether an attention temperature below 1 helps is not known: {choices[0]['reason']}.",
            advice="Audit with more scored pairs or judged queries (--corpus).",
        )


def _gain(row: dict[str, Any], baselines: list[dict[str, Any]]) -> Finding:
    # Mention a baseline that gains more, beyond noise: the simpler method may do.
    more = [one for one in baselines if (one["low"] or 0) > 0 and one["difference"] > row["difference"]]
    best = max(more, key=lambda one: one["difference"], default=None)
    return GAIN.finding(
        "look",
        f"At an attention temperature of {row['tau']:g}, {_named(row)} scores {row['score_after']:.3f} instead of "
        f"{row['score_before']:.3f} ({row['difference']:+.3f}{interval(row['low'], row['high'], '+.3f')}, held out).",
        "This task gains without any training."
        + (f" {BASELINES[best['arm']]}, without a temperature, gains {best['difference']:+.3f}." if best else ""),
        f"embaudit apply-temperature CHECKPOINT --tau {row['tau']:g} --out DIR",
        *(row["difference"], row["low"], row["high"]),
        task=row["task"],
    )


def _by_part(row: dict[str, Any]) -> Finding:
    return BY_PART.finding(
        "look",
        f"With a separate temperature for each {row['part']}, {_named(row)} scores {row['score_after']:.3f}, against "
        f"{row['score_single']:.3f} with the best single temperature "
        f"({row['beyond']:+.3f}{interval(row['beyond_low'], row['beyond_high'], '+.3f')}, held out).",
        f"For this task the best temperature differs between {row['part']}s.",
        f"embaudit apply-temperature CHECKPOINT --{row['part']}-tau {row['taus']} --out DIR",
        *(row[f"beyond{end}"] for end in ("", "_low", "_high")),
        task=row["task"],
        part=row["part"],
    )


def _named(row: dict[str, Any]) -> str:
    return str(row["task"]).replace("_", " ")
