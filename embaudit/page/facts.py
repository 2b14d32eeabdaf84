"""Everything an audit's page shows, read from the warehouse in one go; what each page makes of it is its own affair."""

from __future__ import annotations

from typing import Any

from embaudit.address import Warehouse, warehouse_at
from embaudit.errors import UsageError, WarehouseError
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.migrate import upgrade_step

TOKENS_SHOWN = 15


def read_audit(warehouse: Warehouse | str, audit_id: str | None, wait_seconds: float = 5.0) -> dict[str, Any]:
    """Everything a page shows, as plain values.

    Args:
        audit_id: or its first digits; None for the newest.

    Raises:
        UsageError: if there is no such audit.
        WarehouseError: if the warehouse is not there, is locked, or is of an older embaudit.
    """
    warehouse = warehouse_at(warehouse)
    with open_reader(warehouse, wait_seconds) as connection:
        if step := upgrade_step(connection, warehouse):
            raise WarehouseError(f"The warehouse {warehouse} was written by an older embaudit.", next_step=step)

        def rows(sql: str, *parameters: Any) -> list[dict[str, Any]]:
            cursor = connection.execute(sql, list(parameters))
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

        found = rows(
            "SELECT audit.*, "
            "coalesce(checkpoint.source, audit.settings ->> '$.source') AS source, "
            "checkpoint.layers AS layer_count, checkpoint.* EXCLUDE (checkpoint_id, source, layers) "
            "FROM audit LEFT JOIN checkpoint USING (checkpoint_id) "
            "WHERE starts_with(audit_id, ?) ORDER BY finished DESC, audit_id LIMIT 1",
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
                "SELECT * FROM sticky_token WHERE audit_id = ? ORDER BY loss DESC, token_id LIMIT ?", one, TOKENS_SHOWN
            ),
            "severities": rows(
                "SELECT severity, count(*) AS tokens, "
                "count(*) FILTER (retention_verdict = 'sticky' OR definition_verdict = 'sticky') AS sticky "
                "FROM sticky_token WHERE audit_id = ? GROUP BY ALL ORDER BY severity",
                one,
            ),
            "validated": rows("SELECT count(*) AS n FROM sticky_token WHERE audit_id = ?", one)[0]["n"],
            "reference": rows("SELECT * FROM sticky_reference_summary WHERE audit_id = ?", one),
            "enrichment": rows(
                "SELECT * FROM sticky_enrichment WHERE audit_id = ? AND selection = 'lowest_100' "
                "AND attribute = 'non_latin_or_symbol' ORDER BY value",
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
            "length_bins": rows("SELECT * FROM length_bin WHERE audit_id = ? ORDER BY low, corpus, condition", one),
            "length_rises": rows("SELECT * FROM length_rise WHERE audit_id = ? ORDER BY corpus, condition", one),
            "length_sigma": rows(
                "SELECT corpus, tokens, max(texts) AS texts, bool_or(is_causal) AS is_causal, "
                "avg(COLUMNS(['sigma_a', 'frobenius', 'sigma_s', 'sigma_s_centred', 'bound', 'bound_centred', 'holds', "
                "'holds_centred', 'sigma_a_value_norm', 'hc_energy'])) "
                "FROM length_sigma WHERE audit_id = ? GROUP BY corpus, tokens ORDER BY tokens, corpus",
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
            # Where the backbone's audit is in another warehouse there is nothing to compare.
            "backbones": rows(
                "SELECT link.backbone_audit_id, coalesce(checkpoint.source, audit.settings ->> '$.source') AS backbone "
                "FROM audit_backbone AS link JOIN audit ON audit.audit_id = link.backbone_audit_id "
                "LEFT JOIN checkpoint USING (checkpoint_id) WHERE link.audit_id = ? ORDER BY ALL",
                one,
            ),
            "backbone_deltas": rows(
                "SELECT backbone_audit_id, summary, item, measure, backbone_value, value, delta FROM backbone_delta "
                "WHERE audit_id = ? ORDER BY ALL",
                one,
            ),
            "backbone_changes": rows(
                "SELECT backbone_audit_id, corpus, change, change_low, change_high FROM backbone_socm_change "
                "WHERE audit_id = ? ORDER BY ALL",
                one,
            ),
            "gate": rows("SELECT * FROM gate_outcome WHERE audit_id = ?", one),
            "gate_findings": rows(
                "SELECT * EXCLUDE (audit_id) FROM gate_finding WHERE audit_id = ? "
                "ORDER BY trips DESC, outcome = 'passed', rule, item, measure, summary",
                one,
            ),
            "regressions": rows(
                "SELECT * EXCLUDE (audit_id) FROM regression WHERE audit_id = ? AND is_worse "
                "ORDER BY abs(relative_change) DESC NULLS FIRST, summary, item, measure, predecessor_audit_id",
                one,
            ),
            "compared": rows(
                "SELECT predecessor_audit_id, count(*) AS figures, count(*) FILTER (is_worse) AS worse "
                "FROM regression WHERE audit_id = ? GROUP BY ALL ORDER BY predecessor_audit_id",
                one,
            ),
            "sticky_changes": rows(
                "SELECT * EXCLUDE (audit_id) FROM sticky_change WHERE audit_id = ? ORDER BY ALL", one
            ),
            "runs": rows("SELECT * EXCLUDE (audit_id) FROM measure_run WHERE audit_id = ? ORDER BY measure", one),
            "checks": rows(
                "SELECT count(*) AS run, count(*) FILTER (NOT success) AS failed FROM expectation_result "
                "WHERE audit_id = ?",
                one,
            ),
            "failed_checks": rows(
                "SELECT table_name, column_name, expectation, severity, unexpected_count, observed "
                "FROM expectation_result WHERE audit_id = ? AND NOT success ORDER BY ALL",
                one,
            ),
            "corpora": rows(
                "SELECT audit_corpus.name, corpus.source, corpus.kept FROM audit_corpus JOIN corpus USING (corpus_id) "
                "WHERE audit_id = ? ORDER BY audit_corpus.name",
                one,
            ),
        }
