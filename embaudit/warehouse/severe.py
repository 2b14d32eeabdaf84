"""Reads the severe tokens of a published audit as a list for export."""

from __future__ import annotations

from typing import Any

import duckdb

from embaudit.remedies.screening.tokens import SEVERITIES, SevereToken, Severity, TokenList
from embaudit.words.errors import UsageError


def severe_tokens(connection: duckdb.DuckDBPyConnection, audit_id: str, severity: Severity) -> TokenList:
    """The validated candidates of at least this severity, worst first; possibly empty.

    Raises:
        UsageError: if the audit does not include the sticky measure.
    """

    def rows(sql: str, **more: Any) -> list[dict[str, Any]]:
        cursor = connection.execute(sql, {"audit": audit_id, **more})
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    (facts,) = rows(
        "SELECT audit_id, audit.checkpoint_id, coalesce(audit.settings ->> '$.source', source) AS checkpoint, "
        "tokenizer_sha256, max_length, coalesce(prompt, '') AS prompt, "
        "CAST(audit.settings ->> '$.sticky.copies' AS INTEGER) AS copies "
        "FROM audit JOIN checkpoint USING (checkpoint_id) WHERE audit_id = $audit"
    )
    if not rows("SELECT 1 FROM sticky_summary WHERE audit_id = $audit LIMIT 1"):
        raise UsageError(
            f"The audit {audit_id} did not look for sticky tokens.",
            next_step=f"Run: embaudit audit {facts['checkpoint']} --measures sticky",
        )
    at_least = list(SEVERITIES[: SEVERITIES.index(severity) + 1])
    ((validated, worst),) = (
        row.values()
        for row in rows(
            "SELECT count(*) AS validated, list(token_id ORDER BY loss DESC, token_id) "
            "FILTER (list_contains($at_least, severity)) AS worst FROM sticky_token WHERE audit_id = $audit",
            at_least=at_least,
        )
    )
    known = {
        row["token_id"]: row
        for row in rows(
            "SELECT sticky_token.token_id, token.token, token.text, token.is_reachable, loss, loss_low, loss_high, "
            "severity FROM sticky_token JOIN token USING (checkpoint_id, token_id) WHERE audit_id = $audit"
        )
    }
    estimates = rows(
        "SELECT estimated, estimated_low, estimated_high FROM sticky_severity "
        "WHERE audit_id = $audit AND severity = $severity",
        severity=severity,
    )
    return TokenList(
        **facts,
        **(estimates[0] if estimates else {}),
        severity=severity,
        validated=validated,
        tokens=tuple(SevereToken(**known[token_id]) for token_id in worst or ()),
    )
