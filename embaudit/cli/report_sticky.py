"""The sticky tokens of an audit, as the terminal shows them."""

from __future__ import annotations

import json
from typing import Any

from rich.table import Table

from embaudit.cli.shown import as_text
from embaudit.sticky.thresholds import FEWEST_FOR_THRESHOLD


def print_sticky(console: Any, facts: dict[str, Any]) -> None:
    summary = facts["sticky"][0]
    rungs = ", ".join(f"{rung['tokens']:,} × {rung['draws']}" for rung in json.loads(summary["rungs"]))
    saved = ""
    if summary["search"] == "sequential":  # null in audits from before there was a search
        saved = f" ({summary['exhaustive_encodes'] / summary['encodes']:.1f} times fewer than exhaustive)"
    console.print(
        f"Sticky tokens: {summary['scanned']:,} of {summary['vocabulary_size']:,} vocabulary entries scanned "
        f"({summary['eligible']:,} can stand in a text); tokens × draws: {rungs}; {facts['validated']} candidates and "
        f"{summary['controls']} controls on {summary['validation_pairs']} pairs; {summary['encodes']:,} encodes"
        f"{saved}. "
        f"u = {summary['u']:.4f}.",
        highlight=False,
    )
    table = Table(title=f"Tokens that leave least of a pair's similarity ({summary['basis']})", title_justify="left")
    for name in ("token", "id", "script", "loss [95 %]", "pull [95 %]", "focal point", "severity", "verdict"):
        table.add_column(name, justify="right" if name == "id" else "left", no_wrap=name != "verdict")
    for row in facts["tokens"]:
        table.add_row(
            as_text(row["token"]),
            str(row["token_id"]),
            row["script"],
            with_interval(row["loss"], row["loss_low"], row["loss_high"]),
            with_interval(row["pull"], row["pull_low"], row["pull_high"]),
            _focal(row),
            row["severity"],
            _verdict(row),
        )
    console.print(table)
    counts = {row["severity"]: row for row in facts["severities"]}
    console.print(
        "Severity of the candidates: "
        + ", ".join(
            f"{counts[name]['tokens'] if name in counts else 0} {name}"
            for name in ("strong", "moderate", "weak", "negligible")
        )
        + ".",
        highlight=False,
    )
    harmless = counts.get("negligible", {}).get("sticky", 0)
    if harmless:
        console.print(f"{harmless} flagged relative to their peers, but negligible in themselves.", highlight=False)
    for row in facts["sticky"]:
        if row["pilot_shortlisted"]:
            console.print(
                f"Missed by the search, {row['protocol']}: {row['pilot_missed']} of {row['pilot_shortlisted']} tokens "
                f"of a random pilot of {row['pilot']:,} that belong on its shortlist "
                f"({row['miss_rate']:.0%}, 95 % interval {row['miss_low']:.0%} to {row['miss_high']:.0%}).",
                highlight=False,
            )


def print_sticky_beside(console: Any, facts: dict[str, Any]) -> None:
    """Where the tokens come from, and the published code's protocol."""
    for row in facts["enrichment"]:
        console.print(
            f"Of the {row['selected']} tokens of lowest retention {row['share_selected']:.0%} are non-Latin or "
            f"symbols, of all scanned {row['share_scanned']:.1%}: {row['fold']:.1f} times as many "
            f"(p = {row['p_value']:.1g}).",
            highlight=False,
        )
    for row in facts["reference"]:
        threshold = f"no threshold (fewer than {FEWEST_FOR_THRESHOLD} candidates)"
        if row["threshold"] is not None:
            threshold = f"{row['sticky']} beyond the threshold {row['threshold']:.3f}"
        console.print(
            f"Reference protocol: {row['scanned']:,} tokens scored on {row['scoring_pairs']} pairs, "
            f"{row['candidates']} candidates on {row['validation_pairs']}: {threshold}; {row['encodes']:,} encodes. "
            "List them: embaudit query reference-tokens",
            highlight=False,
        )


def with_interval(value: float, low: float | None, high: float | None) -> str:
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} [{low:.2f}, {high:.2f}]"


def _focal(row: dict[str, Any]) -> str:
    if row["focal_point"] is None:
        return ""
    return f"{row['focal_point']:.2f}" + (" (u)" if row["sticks_to"] == "u" else "")


def _verdict(row: dict[str, Any]) -> str:
    names = [name for name in ("retention", "definition") if row[f"{name}_verdict"] == "sticky"]
    if names and row["severity"] == "negligible":
        return "flagged relative to its peers, but negligible"
    if names:
        return f"sticky ({' and '.join(names)})"
    return "no threshold" if row["retention_verdict"] == "no_threshold" else "not sticky"
