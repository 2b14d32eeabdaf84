"""A checkpoint against its backbone on the page: the figures that a reader asks for first; the rest is a query away."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from embaudit.address import Warehouse
from embaudit.cli.shown import as_text
from embaudit.warehouse.connect import open_reader

# The figures shown, by the summary they are of.
SHOWN = {
    "sticky_summary": ("u", "sticky"),
    "sticky_token": ("worst_loss", "strong_or_moderate"),
    "socm_summary": ("socm_mean", "d_mu_mean", "d_sigma_mean", "share_trace_above_bound"),
    "layer_stat": ("normalised_spread", "within_text_cosine"),
}


def print_backbone(warehouse: Warehouse, audit_id: str, backbone_audit_id: str) -> None:
    """Print the differences of two linked audits."""
    with open_reader(warehouse) as connection:
        both = [audit_id, backbone_audit_id]
        deltas = connection.execute(
            "SELECT backbone, summary, item, measure, backbone_value, value, delta FROM backbone_delta "
            "WHERE audit_id = ? AND backbone_audit_id = ? ORDER BY ALL",
            both,
        ).fetchall()
        changes = connection.execute(
            "SELECT corpus, change, change_low, change_high FROM backbone_socm_change "
            "WHERE audit_id = ? AND backbone_audit_id = ? ORDER BY corpus",
            both,
        ).fetchall()
        (last,) = connection.execute("SELECT max(layer) FROM layer_stat WHERE audit_id = ?", [audit_id]).fetchone() or (
            None,
        )
    console = Console(width=None if Console().is_terminal else 120)
    if not deltas:
        console.print("The two audits share no figure to compare.")
        return
    table = Table(title=f"Against its backbone {as_text(deltas[0][0])}", title_justify="left")
    for name in ("what", "figure", "backbone", "this checkpoint", "difference"):
        table.add_column(name, no_wrap=True)
    for _, summary, item, measure, before, after, delta in sorted(deltas, key=_order):
        if measure in SHOWN.get(summary, ()) and (summary != "layer_stat" or item.endswith(f"layer {last}")):
            table.add_row(item, measure, f"{before:.4g}", f"{after:.4g}", f"{delta:+.4g}")
    console.print(table)
    for corpus, change, low, high in changes:
        interval = "" if low is None else f" [{low:+.3f}, {high:+.3f}], paired over texts"
        console.print(f"Change of the average SOCM on {corpus}: {change:+.4f}{interval}.", highlight=False)
    console.print(f"{len(deltas)} figures are compared; all: embaudit query backbone", highlight=False)


def _order(row: tuple[Any, ...]) -> tuple[int, str, str]:
    return list(SHOWN).index(row[1]) if row[1] in SHOWN else len(SHOWN), row[2], row[3]
