"""An audit on a page of terminal: what ``audit`` prints at its end and ``show`` prints any time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embaudit.cli.report_sticky import print_sticky, print_sticky_beside, with_interval
from embaudit.errors import UsageError, WarehouseError
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import upgrade_step

TOKENS_SHOWN = 12


def print_audit(warehouse: Path, audit_id: str | None) -> None:
    """Print an audit's summary.

    Args:
        audit_id: or its first digits; None for the newest.

    Raises:
        UsageError: if there is no such audit.
    """
    from rich.console import Console

    facts = read_audit(warehouse, audit_id)
    console = Console(width=None if Console().is_terminal else 120)
    console.print()
    console.rule(f"[bold]{facts['source']}[/bold]  audit {facts['audit_id']}, profile {facts['profile']}")
    if facts["status"] != "published":
        console.print(f"This audit is [bold]{facts['status']}[/bold], nothing of it is published: {facts['reason']}")
        return
    if facts["sticky"]:
        print_sticky(console, facts)
        print_sticky_beside(console, facts)
    if facts["socm"]:
        _print_socm(console, facts)
    samples = [corpus["name"] for corpus in facts["corpora"] if corpus["source"] == "sample"]
    if samples:
        console.print(
            f"[dim]On the embedded sample ({', '.join(samples)}): enough to see that it works; for conclusions give "
            "real corpora, e.g. --corpus sts=FILE.[/dim]"
        )


def read_audit(warehouse: Path, audit_id: str | None) -> dict[str, Any]:
    """Everything the page shows, as plain values."""
    with open_reader(warehouse) as connection:
        if step := upgrade_step(connection, warehouse):
            raise WarehouseError(f"The warehouse {warehouse} was written by an older embaudit.", next_step=step)

        def rows(sql: str, *parameters: Any) -> list[dict[str, Any]]:
            cursor = connection.execute(sql, list(parameters))
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

        found = rows(
            "SELECT audit.*, "
            "coalesce(checkpoint.source, audit.settings ->> '$.source') AS source, checkpoint.pooling "
            "FROM audit LEFT JOIN checkpoint USING (checkpoint_id) "
            "WHERE starts_with(audit_id, ?) ORDER BY finished DESC LIMIT 1",
            audit_id or "",
        )
        if not found:
            raise UsageError(
                f"The warehouse {warehouse} has no audit {audit_id}."
                if audit_id
                else f"The warehouse {warehouse} has no audit.",
                next_step="List them: embaudit list audits",
            )
        one = found[0]["audit_id"]
        return {
            **found[0],
            "sticky": rows("SELECT * FROM sticky_summary WHERE audit_id = ? ORDER BY protocol", one),
            "tokens": rows(
                "SELECT * FROM sticky_token WHERE audit_id = ? ORDER BY loss DESC LIMIT ?", one, TOKENS_SHOWN
            ),
            "severities": rows(
                "SELECT severity, count(*) AS tokens, "
                "count(*) FILTER (retention_verdict = 'sticky' OR definition_verdict = 'sticky') AS sticky "
                "FROM sticky_token WHERE audit_id = ? GROUP BY ALL",
                one,
            ),
            "validated": rows("SELECT count(*) AS n FROM sticky_token WHERE audit_id = ?", one)[0]["n"],
            "reference": rows("SELECT * FROM sticky_reference_summary WHERE audit_id = ?", one),
            "enrichment": rows(
                "SELECT * FROM sticky_enrichment WHERE audit_id = ? AND selection = 'lowest_100' "
                "AND attribute = 'non_latin_or_symbol'",
                one,
            ),
            "socm": rows("SELECT * FROM socm_summary WHERE audit_id = ? ORDER BY corpus", one),
            "corpora": rows(
                "SELECT audit_corpus.name, corpus.source FROM audit_corpus JOIN corpus USING (corpus_id) "
                "WHERE audit_id = ?",
                one,
            ),
        }


def _print_socm(console: Any, facts: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(title="Second-order collapse: what mean pooling throws away", title_justify="left")
    for name in ("corpus", "texts", "pairs", "SOCM [95 %]", "d_mu", "d_sigma", "tr Σ", "tr Σ > 2"):
        table.add_column(name, no_wrap=True)
    for row in facts["socm"]:
        table.add_row(
            row["corpus"],
            f"{row['texts']:,}",
            f"{row['pairs']:,}",
            with_interval(row["socm_mean"], row["socm_low"], row["socm_high"]),
            f"{row['d_mu_mean']:.3f}",
            f"{row['d_sigma_mean']:.3f}",
            f"{row['trace_mean']:.2f}",
            f"{row['share_trace_above_bound']:.0%}",
        )
    console.print(table)
    if not all(row["pooling_is_mean"] for row in facts["socm"]):
        console.print(f"This checkpoint pools by {facts['pooling']}: SOCM describes a pooling that is not deployed.")
