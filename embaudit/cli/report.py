"""An audit on a page of terminal: what ``audit`` prints at its end and ``show`` prints any time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from embaudit.errors import UsageError
from embaudit.warehouse.connect import open_reader

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
        _print_sticky(console, facts)
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
            "socm": rows("SELECT * FROM socm_summary WHERE audit_id = ? ORDER BY corpus", one),
            "corpora": rows(
                "SELECT audit_corpus.name, corpus.source FROM audit_corpus JOIN corpus USING (corpus_id) "
                "WHERE audit_id = ?",
                one,
            ),
        }


def _print_sticky(console: Any, facts: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    summary = facts["sticky"][0]
    rungs = ", ".join(f"{rung['tokens']:,} × {rung['draws']}" for rung in json.loads(summary["rungs"]))
    console.print(
        f"Sticky tokens: {summary['scanned']:,} of {summary['vocabulary_size']:,} vocabulary entries scanned "
        f"({summary['eligible']:,} can stand in a text); tokens × draws: {rungs}; {facts['validated']} candidates and "
        f"{summary['controls']} controls on {summary['validation_pairs']} pairs; {summary['encodes']:,} encodes. "
        f"u = {summary['u']:.4f}.",
        highlight=False,
    )
    table = Table(title=f"Tokens that leave least of a pair's similarity ({summary['basis']})", title_justify="left")
    for name in ("token", "id", "script", "loss [95 %]", "pull [95 %]", "focal point", "severity", "verdict"):
        table.add_column(name, justify="right" if name == "id" else "left", no_wrap=name != "verdict")
    for row in facts["tokens"]:
        table.add_row(
            escape(row["token"]),
            str(row["token_id"]),
            row["script"],
            _with_interval(row["loss"], row["loss_low"], row["loss_high"]),
            _with_interval(row["pull"], row["pull_low"], row["pull_high"]),
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
            _with_interval(row["socm_mean"], row["socm_low"], row["socm_high"]),
            f"{row['d_mu_mean']:.3f}",
            f"{row['d_sigma_mean']:.3f}",
            f"{row['trace_mean']:.2f}",
            f"{row['share_trace_above_bound']:.0%}",
        )
    console.print(table)
    if not all(row["pooling_is_mean"] for row in facts["socm"]):
        console.print(f"This checkpoint pools by {facts['pooling']}: SOCM describes a pooling that is not deployed.")


def _with_interval(value: float, low: float | None, high: float | None) -> str:
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} [{low:.2f}, {high:.2f}]"


def _focal(row: dict[str, Any]) -> str:
    if row["focal_point"] is None:
        return ""
    return f"{row['focal_point']:.2f}" + (" (u)" if row["sticks_to"] == "u" else "")


def _verdict(row: dict[str, Any]) -> str:
    names = [name for name in ("retention", "definition") if row[f"{name}_verdict"] == "sticky"]
    if names:
        return f"sticky ({' and '.join(names)})"
    return "no threshold" if row["retention_verdict"] == "no_threshold" else "not sticky"
