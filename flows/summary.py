"""What people see of an audit in the Prefect UI: a Markdown summary and the small tables as artifacts."""

from __future__ import annotations

from typing import Any

from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from embaudit.gate import GateVerdict
from embaudit.measures import MEASURES
from embaudit.warehouse.stage import read_rows
from embaudit_flows.markdown import plain
from embaudit_tasks.results import Staged

# Tables small enough to be read on a page; the rest is a query away.
SHOWN_TABLES = tuple(table for measure in MEASURES.values() for table in measure.shown_tables)
WORST_TOKENS = 15


def publish_artifacts(
    audit_id: str, source: str, staged: list[Staged], verdict: GateVerdict | None = None, link: str | None = None
) -> None:
    """Keyed artifacts: the UI keeps their history over audits.

    Args:
        verdict: of the gate, where there was one.
        link: where the audit's page is, where it could be written.
    """
    create_markdown_artifact(
        key="audit-summary",
        markdown=markdown_summary(audit_id, source, staged, verdict, link),
        description=f"Audit of {plain(source)}",
    )
    if link:
        create_link_artifact(
            link=link,
            key="audit-report",
            link_text=f"Report of audit {audit_id}",
            description=f"Report of {plain(source)}",
        )
    for table in SHOWN_TABLES:
        rows = _rows(staged, table)
        if rows:
            create_table_artifact(key=table.replace("_", "-"), table=rows, description=f"{table} of audit {audit_id}")
    worst = worst_tokens(staged)
    if worst:
        create_table_artifact(
            key="sticky-tokens",
            table=worst,
            description=f"Tokens that lose most of a pair's similarity, audit {audit_id}",
        )


def worst_tokens(staged: list[Staged]) -> list[dict[str, Any]]:
    """Validated candidates by loss, with their token strings."""
    tokens = {row["token_id"]: row["token"] for row in _rows(staged, "token")}
    rows = [
        {
            "token_id": row["token_id"],
            "token": tokens[row["token_id"]],
            "loss": round(row["loss"], 3),
            "pull": round(row["pull"], 3),
            "focal_point": None if row["focal_point"] is None else round(row["focal_point"], 3),
            "severity": row["severity"],
            "verdict": f"{row['verdict']} ({row['basis']})",
        }
        for row in _rows(staged, "sticky_validation")
        if row["role"] == "candidate" and row["protocol"] == "retention"
    ]
    return sorted(rows, key=lambda row: -row["loss"])[:WORST_TOKENS]


def markdown_summary(
    audit_id: str, source: str, staged: list[Staged], verdict: GateVerdict | None = None, link: str | None = None
) -> str:
    """The audit in a page of Markdown; names and tokens come from outside and are shown as text."""
    report = f" [Report](<{link}>)." if link else ""
    lines = [f"# Audit of {plain(source)}", "", f"Audit `{audit_id}`.{report}", ""]
    if verdict is not None:
        lines += [*_gate_lines(verdict), ""]
    for row in _rows(staged, "sticky_summary"):
        threshold = "none" if row["threshold"] is None else f"{row['threshold']:.3f}"
        lines.append(
            f"- **Sticky tokens, {row['protocol']}** ({row['basis']}): {row['sticky']} beyond threshold {threshold}"
            f"{_harmless(staged, row['protocol'])}; {row['scanned']} of {row['vocabulary_size']} tokens scanned, "
            f"u = {row['u']:.4f}{_missed(row)}."
        )
    lines += [
        f"- **Reference protocol**: {row['sticky']} of {row['candidates']} candidates beyond the threshold; "
        f"{row['scanned']} tokens scored."
        for row in _rows(staged, "sticky_reference_summary")
    ]
    lines += [
        f"- **SOCM, {plain(row['corpus'])}**: {row['socm_mean']:.4f} over {row['pairs']} pairs of {row['texts']} "
        f"texts; tr Σ > 2 in {row['share_trace_above_bound']:.0%} of them."
        for row in _rows(staged, "socm_summary")
    ]
    lines += _layer_lines(staged)
    lines += [
        f"- **Lower attention temperature, {row['task']}**: {row['recommendation']}; {plain(row['reason'])}."
        for row in _rows(staged, "tempscale_choice")
        if row["bin"] == 0
    ]
    lines += _length_lines(staged)
    worst = worst_tokens(staged)
    if worst:
        columns = ("loss", "pull", "focal_point", "severity", "verdict")
        lines += ["", "| token | loss | pull | focal point | severity | verdict |", "|---|---|---|---|---|---|"]
        for row in worst:
            lines.append(" | ".join([f"| {plain(row['token'])}", *(str(row[name]) for name in columns)]) + " |")
    return "\n".join(lines)


def _gate_lines(verdict: GateVerdict) -> list[str]:
    """The verdict in a sentence, and a table of what tripped and what is only missing."""
    against = f" Against audit `{verdict.baseline_audit_id}`." if verdict.baseline_audit_id else ""
    lines = [f"**{plain(verdict.headline)}**{against}"]
    worth_a_row = [*verdict.tripped, *verdict.let_off]
    if worth_a_row:
        lines += ["", "| rule | figure | value | allowed | baseline | |", "|---|---|---|---|---|---|"]
        for finding in worth_a_row:
            cells = (finding.rule, finding.figure, finding.shown_value, finding.allowed, finding.shown_baseline)
            note = "warned" if not finding.trips else finding.reason
            lines.append("| " + " | ".join(plain(cell) for cell in (*cells, note)) + " |")
    return lines


def _layer_lines(staged: list[Staged]) -> list[str]:
    """The first and the last layer: what happens between them is in ``layer_stat``."""
    stats = _rows(staged, "layer_stat")
    lines = []
    for corpus in dict.fromkeys(row["corpus"] for row in stats):
        layers = [row for row in stats if row["corpus"] == corpus]
        kept = [row["contraction"] for row in layers if row["contraction"] is not None]
        lines.append(
            f"- **Layers, {plain(corpus)}**: within-text cosine {layers[0]['within_text_cosine']:.3f} after the first "
            f"and {layers[-1]['within_text_cosine']:.3f} after the last of {len(layers)} layers, "
            + (f"attention keeps {min(kept):.3f} to {max(kept):.3f} of the spread; " if kept else "")
            + f"{layers[0]['texts']} texts."
        )
    return lines


def _length_lines(staged: list[Staged]) -> list[str]:
    """What the curves rise by, and how much of it averaging alone would do; the bins are in ``length_bin``."""
    lines = []
    for row in _rows(staged, "length_rise"):
        if row["rise"] is None:
            continue
        share = row["share_of_truncation"]
        explains = "" if share is None else f", {share:.0%} of what truncations of the same texts rise by"
        lines.append(
            f"- **Length, {plain(row['corpus'])}, {row['condition']}**: mean cosine {row['first_cosine']:.3f} at "
            f"{row['first_length']:.0f} tokens, {row['last_cosine']:.3f} at {row['last_length']:.0f}{explains}."
        )
    return lines


def _harmless(staged: list[Staged], protocol: str) -> str:
    flagged = [
        row
        for row in _rows(staged, "sticky_validation")
        if row["protocol"] == protocol and row["verdict"] == "sticky" and row["severity"] == "negligible"
    ]
    return f" ({len(flagged)} flagged relative to their peers, but negligible)" if flagged else ""


def _missed(row: dict[str, Any]) -> str:
    if not row["pilot_shortlisted"]:
        return ""
    return f"; the search missed {row['pilot_missed']} of {row['pilot_shortlisted']} pilot tokens of the shortlist"


def _rows(staged: list[Staged], table: str) -> list[dict[str, Any]]:
    return read_rows([part.path for part in staged if part.table == table])
