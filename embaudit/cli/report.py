"""An audit on a page of terminal: what ``audit`` prints at its end and ``show`` prints any time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from embaudit.cli.report_layers import print_layers
from embaudit.cli.report_length import print_length
from embaudit.cli.report_published import print_published
from embaudit.cli.report_socm import print_socm
from embaudit.cli.report_sticky import print_sticky, print_sticky_beside
from embaudit.cli.report_tempscale import print_tempscale
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
        print_socm(console, facts)
    if facts["layers"]:
        print_layers(console, facts["layers"])
    if facts["length"]:
        print_length(console, facts)
    if facts["temperatures"]:
        print_tempscale(console, facts["temperatures"], facts["temperature_arms"])
    print_published(console, facts["published"])
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
            "tightness": rows(
                "SELECT corpus, count(*) AS pairs, avg(gaussian_w2_squared / nullif(w2_squared, 0)) AS share, "
                "avg(socm) FILTER (socm_sif IS NOT NULL) AS plain, avg(socm_sif) AS sif "
                "FROM socm_tightness WHERE audit_id = ? GROUP BY corpus HAVING share IS NOT NULL ORDER BY corpus",
                one,
            ),
            "layers": rows("SELECT * FROM layer_stat WHERE audit_id = ? ORDER BY corpus DESC, layer", one),
            "length": rows("SELECT * FROM length_summary WHERE audit_id = ? ORDER BY corpus", one),
            "length_bins": rows("SELECT * FROM length_bin WHERE audit_id = ? ORDER BY low", one),
            "length_rises": rows("SELECT * FROM length_rise WHERE audit_id = ?", one),
            "length_sigma": rows(
                "SELECT corpus, tokens, max(texts) AS texts, bool_or(is_causal) AS is_causal, "
                "avg(COLUMNS(['sigma_a', 'frobenius', 'sigma_s', 'sigma_s_centred', 'bound', 'bound_centred', 'holds', "
                "'holds_centred', 'sigma_a_value_norm', 'hc_energy'])) "
                "FROM length_sigma WHERE audit_id = ? GROUP BY corpus, tokens ORDER BY tokens",
                one,
            ),
            "temperatures": rows("SELECT * FROM tempscale_choice WHERE audit_id = ? ORDER BY task, bin", one),
            "temperature_arms": rows(
                "SELECT * FROM tempscale WHERE audit_id = ? AND split = 'report' AND bin = 0 "
                "ORDER BY task, arm <> 'none', arm <> 'temperature', tau DESC, arm",
                one,
            ),
            "published": rows(
                "SELECT * FROM published_beside_audit WHERE audit_id = ? ORDER BY measure DESC, corpus DESC", one
            ),
            "corpora": rows(
                "SELECT audit_corpus.name, corpus.source FROM audit_corpus JOIN corpus USING (corpus_id) "
                "WHERE audit_id = ?",
                one,
            ),
        }
