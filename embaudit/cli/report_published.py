"""Figures that papers published, beside an audit's own."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from embaudit.cli.report_sticky import with_interval
from embaudit.cli.shown import as_text

NAMES = {
    "socm_mean": "SOCM",
    "u": "u",
    "reference_scanned": "reference: scanned",
    "reference_candidates": "reference: candidates",
    "reference_cutoff": "reference: cutoff",
    "reference_sticky": "reference: sticky",
}
COUNTS = ("reference_scanned", "reference_candidates", "reference_sticky")


def print_published(console: Any, rows: list[dict[str, Any]]) -> None:
    """Print ``published_beside_audit`` rows of one audit; nothing where nobody published anything."""
    if not rows:
        return
    name, matched_by = rows[0]["published_checkpoint"], rows[0]["matched_by"]
    matched = "" if matched_by == "id" else ", matched by name alone"
    table = Table(title=as_text(f"Published beside ours ({name}{matched})"), title_justify="left")
    for column in ("figure", "ours [95 %]", "ours on", "published", "difference", "in"):
        table.add_column(as_text(column), no_wrap=True)
    for row in sorted(rows, key=lambda row: [*NAMES].index(row["measure"])):
        corpus = f", {row['corpus']}" if row["corpus"] else ""
        is_count = row["measure"] in COUNTS
        table.add_row(
            NAMES[row["measure"]] + corpus,
            f"{row['own']:,.0f}" if is_count else with_interval(row["own"], row["own_low"], row["own_high"]),
            f"{row['own_texts']:,} texts" if row["own_texts"] else "",
            f"{row['published']:,.0f}" if is_count else f"{row['published']:.3f}",
            f"{row['difference']:+,.0f}" if is_count else f"{row['difference']:+.3f}",
            row["published_in"],
        )
    console.print(table)
