"""Second-order collapse on the page: a table by corpus, what was left out, and how far to trust the Gaussian view."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from embaudit.cli.report_sticky import with_interval

# The text counts that are worth a line, and what they count.
LEFT_OUT = {
    "undefined": "whose tokens average to nothing (left out)",
    "one_token": "of one token (no spread)",
    "truncated": "cut to the checkpoint's limit",
}


def print_socm(console: Any, facts: dict[str, Any]) -> None:
    """Print ``socm_summary`` and ``socm_tightness`` of an audit."""
    table = Table(title="Second-order collapse: what mean pooling throws away", title_justify="left")
    for name in ("corpus", "texts", "pairs", "SOCM [95 %]", "5–95 %", "d_mu", "d_sigma", "tr Σ", "tr Σ > 2"):
        table.add_column(name, no_wrap=True)
    for row in facts["socm"]:
        table.add_row(
            row["corpus"],
            f"{row['texts']:,}",
            f"{row['pairs']:,}",
            with_interval(row["socm_mean"], row["socm_low"], row["socm_high"]),
            f"{row['socm_q05']:.2f}–{row['socm_q95']:.2f}",
            f"{row['d_mu_mean']:.3f}",
            f"{row['d_sigma_mean']:.3f}",
            f"{row['trace_mean']:.2f}",
            f"{row['share_trace_above_bound']:.0%}",
        )
    console.print(table)
    for row in facts["socm"]:
        counted = [f"{row[name]:,} {what}" for name, what in LEFT_OUT.items() if row[name]]
        if counted:
            console.print(f"{row['corpus']}: of its texts {'; '.join(counted)}.", highlight=False)
    for row in facts["tightness"]:
        sif = "" if row["sif"] is None else f"; SIF weights make SOCM {row['sif']:.3f} of {row['plain']:.3f}"
        console.print(
            f"{row['corpus']}, {row['pairs']} sampled pairs: the Gaussian view is {row['share']:.0%} of the exact "
            f"transport distance{sif}.",
            highlight=False,
        )
    if not all(row["pooling_is_mean"] for row in facts["socm"]):
        console.print(f"This checkpoint pools by {facts['pooling']}: SOCM describes a pooling that is not deployed.")
