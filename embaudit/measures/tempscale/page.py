"""Temperatures on a page: an answer for each task, those lengths that say otherwise, and every arm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from embaudit.page.model import Column, Estimate, Part, Section, Table

# What the section is made of: rows by name, of one audit.
FACTS = {
    "temperatures": "SELECT * FROM tempscale_choice WHERE audit_id = ? ORDER BY task, bin",
    "temperature_arms": (
        "SELECT * FROM tempscale WHERE audit_id = ? AND split = 'report' AND bin = 0 "
        "ORDER BY task, arm <> 'none', arm <> 'temperature', tau DESC, arm"
    ),
}

COLUMNS = (
    *(Column("task"), Column("length"), Column("score"), Column("answer", levels={"yes": "ok"})),
    *(Column("τ", "g"), Column("items", ","), Column("τ = 1", ".3f"), Column("at τ", ".3f")),
    Column("difference [95 %]", "+.3f", "+.3f"),
    Column("why", is_prose=True, is_detail=True),
)
SCORES = {
    "classification_knn": "accuracy",
    "classification_logistic": "accuracy",
    "retrieval": "nDCG@10",
    "sts": "Spearman's ρ",
}
ARMS = {"chunk_average": "pieces averaged", "whitening": "whitening", "centring": "centring"}


def section(facts: dict[str, Any]) -> Section | None:
    """None without the measure."""
    return Section("Attention temperature", list(_parts(facts))) if facts["temperatures"] else None


def _parts(facts: dict[str, Any]) -> Iterator[Part]:
    choices = facts["temperatures"]
    overall = [row for row in choices if row["bin"] == 0]
    by_length = [row for row in choices if row["bin"]]
    reads = "as served" if choices[0]["reads"] == "limit" else "up to the position table"
    yield Table(
        COLUMNS,
        [_choice(row) for row in (*overall, *by_length)],
        f"Does a lower attention temperature help? Documents read to {choices[0]['max_tokens']} tokens, {reads}",
        brief=len(overall),
        more="embaudit query tempscale",
    )
    for row in overall:
        if row["recommendation"] != "yes":
            yield f"{row['task']}: {row['recommendation']}; {row['reason']}."
    for row in by_length:
        if row["recommendation"] == "yes":
            yield (
                f"{row['task']}, {_bin(row)} tokens: yes at τ = {row['tau']:g}, {COLUMNS[-2].text(_difference(row))}, "
                f"{row['items']} items. One bin of several: expect a chance yes now and then."
            )
    yield _arms(facts["temperature_arms"])
    yield "By length: embaudit query tempscale   and   embaudit query tempscale-arms"


def _choice(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        *(row["task"].replace("_", ", "), _bin(row) if row["bin"] else "all", SCORES[row["task"]]),
        *(row["recommendation"], row["tau"], row["items"], row["score_before"], row["score_after"]),
        *(_difference(row), row["reason"]),
    )


def _difference(row: dict[str, Any]) -> Estimate:
    return Estimate(row["difference"], row["low"], row["high"])


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
        "Every arm on the half that nothing was chosen on",
    )


def _arm(row: dict[str, Any]) -> str:
    """A score, what it differs by from τ = 1, and the direction where the interval leaves out 0."""
    if row["score"] is None or row["difference"] is None:
        return "" if row["score"] is None else f"{row['score']:.3f}"
    mark = ""
    if row["low"] is not None:
        mark = " ↑" if row["low"] > 0 else " ↓" if row["high"] < 0 else ""
    return f"{row['score']:.3f} ({row['difference']:+.3f}){mark}"
