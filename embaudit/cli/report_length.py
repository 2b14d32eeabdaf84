"""Length on the page: similarity by bin and condition, what the controls explain, and what it does to neighbours."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from embaudit.report.length_lines import CONDITIONS, lines

BINS_SHOWN = 12


def print_length(console: Any, facts: dict[str, Any]) -> None:
    """Print ``length_bin``, ``length_rise``, ``length_summary`` and ``sigma_by_length`` rows, corpus by corpus."""
    for summary in facts["length"]:
        corpus = summary["corpus"]
        bins = [row for row in facts["length_bins"] if row["corpus"] == corpus]
        _print_bins(console, summary, bins)
        for line in lines(summary, facts["length_rises"]):
            console.print(line, highlight=False)
        _print_sigma(console, [row for row in facts["length_sigma"] if row["corpus"] == corpus])


def _print_bins(console: Any, summary: dict[str, Any], bins: list[dict[str, Any]]) -> None:
    table = Table(
        title=f"Mean cosine by length, {summary['corpus']}: {summary['texts']:,} texts, controls on "
        f"{summary['control_texts']:,} of them; windows of {summary['window']}",
        title_justify="left",
    )
    table.add_column("tokens", no_wrap=True)
    for name in CONDITIONS.values():
        table.add_column(name, no_wrap=True, justify="right")
    by_bin: dict[int, dict[str, dict[str, Any]]] = {}
    for row in bins:
        by_bin.setdefault(row["low"], {})[row["condition"]] = row
    lows = sorted(by_bin)
    step = max(1, -(-len(lows) // BINS_SHOWN))
    for low in lows[::step]:
        rows = by_bin[low]
        one = rows["natural"]
        mark = " *" if any(row["beyond_limit"] for row in rows.values()) else ""
        table.add_row(f"{low}-{one['high']}{mark}", *(_cell(rows.get(name)) for name in CONDITIONS))
    console.print(table)
    if any(row["beyond_limit"] for row in bins):
        console.print(
            f"* beyond the {summary['configured_limit']} tokens that this checkpoint is configured to read.",
            highlight=False,
        )


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    if row["cosine_mean"] is None:
        return "1 text" if row["texts"] == 1 else "no text"
    if row["cosine_low"] is None:
        return f"{row['cosine_mean']:.2f}"
    half = (row["cosine_high"] - row["cosine_low"]) / 2
    return f"{row['cosine_mean']:.2f} ± {half:.2f}" + (f" ({row['texts']})" if row["condition"] == "natural" else "")


def _print_sigma(console: Any, rows: list[dict[str, Any]]) -> None:
    """Means over layers and heads by length."""
    if not rows:
        return
    table = Table(title=f"σ_a by length, {rows[0]['texts']:,} texts cut to each length", title_justify="left")
    for name in ("tokens", "σ_a", "‖PA‖_F", "σ_s", "σ_s centred", "claimed bound", "holds", "σ_a‖W_V‖₂", "HC energy"):
        table.add_column(name, no_wrap=True, justify="right")
    columns = (
        "sigma_a",
        "frobenius",
        "sigma_s",
        "sigma_s_centred",
        "bound",
        "holds",
        "sigma_a_value_norm",
        "hc_energy",
    )
    for row in rows:
        values = {**row, "bound": _first(row["bound"], row["bound_centred"])}
        values["holds"] = _first(row["holds"], row["holds_centred"])
        cells = (
            "" if values[name] is None else f"{values[name]:.0%}" if name == "holds" else f"{values[name]:.3f}"
            for name in columns
        )
        table.add_row(str(row["tokens"]), *cells)
    console.print(table)
    if rows[0]["is_causal"]:
        console.print("Causal attention: rows of A are over prefixes, which the theory of σ_a does not cover.")


def _first(value: float | None, otherwise: float | None) -> float | None:
    return otherwise if value is None else value
