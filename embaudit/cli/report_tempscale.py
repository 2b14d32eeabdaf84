"""The answer about temperatures on the page: one line a task, one for each length that says otherwise, every arm."""

from __future__ import annotations

from typing import Any

from rich.table import Table

SCORES = {
    "classification_knn": "accuracy, nearest neighbours",
    "classification_logistic": "accuracy, logistic regression",
    "retrieval": "nDCG@10",
    "sts": "Spearman's ρ",
}
ARMS = {"chunk_average": "pieces averaged", "whitening": "whitening", "centring": "centring"}


def print_tempscale(console: Any, choices: list[dict[str, Any]], arms: list[dict[str, Any]]) -> None:
    """Print ``tempscale_choice`` rows, and the ``tempscale`` rows of all lengths on the report half."""
    first = choices[0]
    reads = "as served" if first["reads"] == "limit" else "up to the position table"
    table = Table(
        title=f"Does a lower attention temperature help? Documents read to {first['max_tokens']} tokens, {reads}",
        title_justify="left",
    )
    for name in ("task", "score", "answer", "τ", "items", "τ = 1", "at τ", "difference [95 %]"):
        table.add_column(name, no_wrap=True)
    overall = [row for row in choices if row["bin"] == 0]
    for row in overall:
        table.add_row(
            row["task"].replace("_", ", "),
            SCORES[row["task"]].split(",")[0],
            f"[bold]{row['recommendation']}[/bold]",
            _tau(row["tau"]),
            str(row["items"]),
            _three(row["score_before"]),
            _three(row["score_after"]),
            _difference(row),
        )
    console.print(table)
    for row in overall:
        if row["recommendation"] != "yes":
            console.print(f"{row['task']}: {row['recommendation']}; {row['reason']}.", highlight=False)
    for row in choices:
        if row["bin"] and row["recommendation"] == "yes":
            console.print(
                f"{row['task']}, {_bin(row)} tokens: yes at τ = {_tau(row['tau'])}, {_difference(row)}, "
                f"{row['items']} items. One bin of several: expect a chance yes now and then.",
                highlight=False,
            )
    _print_arms(console, arms)


def _print_arms(console: Any, arms: list[dict[str, Any]]) -> None:
    labels = list(dict.fromkeys(_label(row) for row in arms))
    table = Table(title="Every arm on the half that nothing was chosen on", title_justify="left")
    table.add_column("arm", no_wrap=True)
    tasks = list(dict.fromkeys(row["task"] for row in arms))
    for task in tasks:
        table.add_column(task.replace("classification_", ""), no_wrap=True)
    cells = {(_label(row), row["task"]): _cell(row) for row in arms}
    for label in labels:
        table.add_row(label, *(cells.get((label, task), "") for task in tasks))
    console.print(table)
    console.print("By length: embaudit query tempscale   and   embaudit query tempscale-arms", highlight=False)


def _label(row: dict[str, Any]) -> str:
    return ARMS.get(row["arm"], f"τ = {_tau(row['tau'])}")


def _cell(row: dict[str, Any]) -> str:
    if row["score"] is None or row["difference"] is None:
        return _three(row["score"])
    mark = ""
    if row["low"] is not None:
        mark = " ↑" if row["low"] > 0 else " ↓" if row["high"] < 0 else ""
    return f"{row['score']:.3f} ({row['difference']:+.3f}){mark}"


def _difference(row: dict[str, Any]) -> str:
    if row["difference"] is None:
        return ""
    if row["low"] is None:
        return f"{row['difference']:+.3f}"
    return f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"


def _bin(row: dict[str, Any]) -> str:
    return f"{row['bin_low']} and more" if row["bin_high"] is None else f"{row['bin_low']} to {row['bin_high'] - 1}"


def _tau(tau: float | None) -> str:
    return "" if tau is None else f"{tau:g}"


def _three(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"
