"""Temperatures on a page: an answer for each task and length bin, and the score of every arm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel, interval
from embaudit.declared.document import Column, Part, Section, Table
from embaudit.words.estimate import Estimate

# Queries for the section's data, by name, for one audit.
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
        for mark in interval(row["tau"], row["low"], row["high"], "chosen" if row["tau"] == chosen else "tried")
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
