"""What the tables of tempscale show: findings, and the section of a page.

Whether a temperature helps on texts that it was not chosen on, and the score of every arm.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.chart import interval as interval_marks
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.declared.rule import MAX_FINDINGS, Finding, Rows, Rule, interval
from embaudit.measures.tempscale import TempscaleSettings
from embaudit.words.estimate import Estimate

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


FACTS = {
    "temperatures": "SELECT * FROM tempscale_choice WHERE audit_id = ? ORDER BY task, bin",
    "temperature_arms": (
        "SELECT * FROM tempscale WHERE audit_id = ? AND split = 'report' AND bin = 0 "
        "ORDER BY task, arm <> 'none', arm <> 'temperature', tau DESC, arm"
    ),
    "temperatures_by_part": "SELECT * FROM tempscale_search WHERE audit_id = ? ORDER BY task, part DESC",
}

SCORES = {
    "classification_knn": "accuracy",
    "classification_logistic": "accuracy",
    "clustering": "V-measure",
    "retrieval": "nDCG@10",
    "sts": "Spearman's ρ",
}
DIFFERENCE = Column("difference [95 %]", "+.3f", "+.3f", ends=("low", "high"))
COLUMNS = {
    **{"task": Column("task"), "length": Column("length"), "score": Column("score")},
    "recommendation": Column("answer", levels={"yes": "ok"}),
    **{"tau": Column("τ", "g"), "items": Column("items", ",")},
    **{"score_before": Column("τ = 1", ".3f"), "score_after": Column("at τ", ".3f"), "difference": DIFFERENCE},
    "reason": Column("why", is_prose=True, is_detail=True),
}
SEARCH_COLUMNS = {
    **{"task": Column("task"), "part": Column("for each")},
    **{"recommendation": Column("better", levels={"yes": "ok"}), "tau": Column("one τ", "g")},
    **{"score_before": Column("τ = 1", ".3f"), "score_single": Column("at one τ", ".3f")},
    "score_after": Column("at own τ", ".3f"),
    "difference": replace(DIFFERENCE, title="from τ = 1 [95 %]"),
    **{"beyond": Column("from one τ [95 %]", "+.3f", "+.3f"), "trials": Column("tried", ",", is_detail=True)},
    "taus": Column("τ in order", is_prose=True, is_detail=True),
}
ARMS = {"chunk_average": "averaged chunks", "whitening": "whitening", "centring": "centring"}


def section(facts: dict[str, Any]) -> Section | None:
    """None if the audit left the measure out."""
    return Section("Attention temperature", list(_parts(facts))) if facts["temperatures"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    choices = facts["temperatures"]
    overall = [row for row in choices if row["bin"] == 0]
    by_length = [row for row in choices if row["bin"]]
    reads = "as served" if choices[0]["reads"] == "limit" else "up to the end of the position table"
    yield Table.of(
        COLUMNS,
        [_choice(row) for row in (*overall, *by_length)],
        f"Does a lower attention temperature help? Documents read up to {choices[0]['max_tokens']} tokens, {reads}",
        brief=len(overall),
        more="embaudit query tempscale",
    )
    for row in overall:
        if row["recommendation"] != "yes":
            yield f"{row['task']}: {row['recommendation']}; {row['reason']}."
    for row in by_length:
        if row["recommendation"] == "yes":
            gain = Estimate(row["difference"], row["low"], row["high"])
            yield (
                f"{row['task']}, {_bin(row)} tokens: yes at τ = {row['tau']:g}, {gain:+.3f}, "
                f"{row['items']} items. With several bins, an occasional yes by chance is to be expected."
            )
    if swept := [row for row in facts["temperature_arms"] if row["difference"] is not None]:
        yield sweep_chart(swept, {row["task"]: row["tau"] for row in overall})
    yield _arms(facts["temperature_arms"])
    if searched := facts["temperatures_by_part"]:
        yield Table.of(
            SEARCH_COLUMNS,
            [{**row, "task": _task(row), "taus": row["taus"].replace(",", ", ")} for row in searched],
            "Is a separate τ per layer or head better than a single one? Searched on one half, scored on the other",
            more="embaudit query tempscale-search",
        )
    yield "By length: embaudit query tempscale   and   embaudit query tempscale-arms"


def _choice(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "task": _task(row), "length": _bin(row) if row["bin"] else "all", "score": SCORES[row["task"]]}


def _task(row: dict[str, Any]) -> str:
    return str(row["task"]).replace("_", ", ")


def _bin(row: dict[str, Any]) -> str:
    return f"{row['bin_low']} and more" if row["bin_high"] is None else f"{row['bin_low']} to {row['bin_high'] - 1}"


def _arms(rows: list[dict[str, Any]]) -> Table:
    """One row per arm, one column per task."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    cells: dict[str, dict[str, str]] = {}
    for row in rows:
        label = ARMS.get(row["arm"], "" if row["tau"] is None else f"τ = {row['tau']:g}")
        cells.setdefault(label, {})[row["task"]] = _arm(row)
    return Table(
        [Column("arm"), *(Column(task.removeprefix("classification_"), is_right=True) for task in tasks)],
        [(label, *(of_task.get(task, "") for task in tasks)) for label, of_task in cells.items()],
        "Every arm on the held-out half",
    )


def _arm(row: dict[str, Any]) -> str:
    """A score, its difference from τ = 1, and an arrow if the interval excludes 0."""
    if row["score"] is None or row["difference"] is None:
        return "" if row["score"] is None else f"{row['score']:.3f}"
    mark = ""
    if row["low"] is not None:
        mark = " ↑" if row["low"] > 0 else " ↓" if row["high"] < 0 else ""
    return f"{row['score']:.3f} ({row['difference']:+.3f}){mark}"


def sweep_chart(rows: list[dict[str, Any]], chosen: dict[str, float | None]) -> Chart:
    """A panel per task, from its arms that have a difference from τ = 1."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    panels = [_sweep(task, [row for row in rows if row["task"] == task], chosen.get(task)) for task in tasks]
    return Chart(
        "Score by temperature",
        "How much each temperature τ gains or loses compared with τ = 1, with its 95 % interval, on the held-out half; "
        "the dashed line is no change. Red: the τ chosen on the other half. An interval on one side of the line is a "
        "real difference. The table below has the other arms.",
        [panels[start : start + 2] for start in range(0, len(panels), 2)],
        {"chosen": "problem", "tried": "one"},
        more="embaudit query tempscale-arms",
    )


def _sweep(task: str, rows: list[dict[str, Any]], chosen: float | None) -> Panel:
    points = [
        Mark(
            *(row["tau"], row["difference"]),
            series="chosen" if row["tau"] == chosen else "tried",
            label=f"τ = {row['tau']:g}: {row['score']:.3f}, {row['difference']:+.3f}",
        )
        for row in rows
        if row["arm"] == "temperature"
    ]
    lines = [
        mark
        for row in rows
        if row["arm"] == "temperature"
        for mark in interval_marks(row["tau"], row["low"], row["high"], "chosen" if row["tau"] == chosen else "tried")
    ]
    taus = [row["tau"] for row in rows if row["arm"] == "temperature"]
    return Panel(
        [
            Layer("rule", [Mark(y=0)], "soft", is_dashed=True, is_data=False, size=0.6),
            Layer("rule", lines, is_data=False),
            Layer("point", points, size=1.6),
        ],
        Axis("τ", ".1f", (min(taus, default=1.0) - 0.05, max(taus, default=1.0) + 0.05)),
        Axis(f"difference in {SCORES[task]}", "+.2f"),
        task.replace("_", ", "),
        height=170,
    )
