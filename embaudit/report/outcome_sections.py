"""How the audit stands on the HTML page: the gate, what got worse, the checks, and what it was run with."""

from __future__ import annotations

import json
from typing import Any

from embaudit.gate import Finding
from embaudit.report.parts import Cell, Section, Table, count, figure

FINDINGS_SHOWN = 200
MARKS = {"passed": "good", "tripped": "bad", "missing": "warn"}


def gate_section(facts: dict[str, Any]) -> Section | None:
    """The last gate, what trips it first; None where there was none."""
    if not facts["gate"]:
        return None
    (gate,) = facts["gate"]
    against = f", against audit {gate['baseline_audit_id']}" if gate["baseline_audit_id"] else ""
    notes = [
        f"{gate['tripped']} of {gate['findings']} findings of the policy {gate['policy']} ({gate['policy_hash']}) trip "
        f"it{against}; evaluated {gate['evaluated']:%Y-%m-%d %H:%M %Z}."
    ]
    if gate["warned"]:
        notes.append(f"{count(gate['warned'], 'figure')} missing, which the policy only warns of.")
    found = [Finding.model_validate(row) for row in facts["gate_findings"]]
    more = len(found) - FINDINGS_SHOWN
    table = Table(
        ("rule", "figure", "value", "allowed", "baseline", "outcome", "reason"),
        [
            (
                finding.rule,
                finding.figure,
                finding.shown_value,
                finding.allowed,
                finding.shown_baseline,
                Cell(finding.outcome, mark="bad" if finding.trips else MARKS[finding.outcome]),
                finding.reason,
            )
            for finding in found[:FINDINGS_SHOWN]
        ],
        numbers_from=3,
        numbers_to=5,
    )
    after = [f"{more} more: embaudit query gate-findings"] if more > 0 else []
    return Section(f"Gate {gate['outcome']}", notes, [table], after=after)


def regression_section(facts: dict[str, Any]) -> Section | None:
    """What got worse against the audit before; None where no watch has compared them."""
    if not facts["compared"]:
        return None
    notes = [
        f"{row['worse']} of {row['figures']} figures are worse than in audit {row['predecessor_audit_id']}."
        for row in facts["compared"]
    ]
    tables = []
    if facts["regressions"]:
        tables.append(
            Table(
                ("figure", "item", "before", "now", "change", "noise", "worse when"),
                [
                    (
                        f"{row['summary']}.{row['measure']}",
                        row["item"],
                        figure(row["predecessor_value"]),
                        Cell(figure(row["value"]), mark="bad"),
                        f"{row['delta']:+.4g}",
                        figure(row["tolerance"]),
                        row["worse_when"] or "",
                    )
                    for row in facts["regressions"]
                ],
                numbers_from=2,
                numbers_to=6,
            )
        )
    if facts["sticky_changes"]:
        tables.append(
            Table(
                ("token", "change", "loss before", "loss now", "severity"),
                [
                    (
                        row["token"],
                        Cell(row["change"], mark="bad" if row["change"] == "newly sticky" else "good"),
                        figure(row["predecessor_loss"]),
                        figure(row["loss"]),
                        row["severity"] or "",
                    )
                    for row in facts["sticky_changes"]
                ],
                numbers_from=2,
                numbers_to=4,
            )
        )
    return Section("Against the audit before", notes, tables)


def check_section(facts: dict[str, Any]) -> Section:
    """What was checked before publishing, and which warnings failed."""
    (counts,) = facts["checks"]
    notes = [f"{counts['run']:,} checks ran on the tables before they were published; {counts['failed']} failed."]
    tables = []
    if facts["failed_checks"]:
        tables.append(
            Table(
                ("table", "column", "check", "severity", "rows", "observed"),
                [
                    (
                        row["table_name"],
                        row["column_name"],
                        row["expectation"].removeprefix("expect_").replace("_", " "),
                        Cell(row["severity"], mark="warn"),
                        "" if row["unexpected_count"] is None else str(row["unexpected_count"]),
                        row["observed"] or "",
                    )
                    for row in facts["failed_checks"]
                ],
                numbers_from=4,
                numbers_to=5,
            )
        )
    return Section("Checks", notes, tables)


def settings_section(facts: dict[str, Any]) -> Section:
    """What the audit was run with: measures, corpora, settings, versions."""
    runs = Table(
        ("measure", "version", "seconds", "encodes"),
        [
            (
                row["measure"],
                str(row["version"]),
                "" if row["seconds"] is None else f"{row['seconds']:,.0f}",
                "" if row["encodes"] is None else f"{row['encodes']:,}",
            )
            for row in facts["runs"]
        ],
    )
    corpora = Table(
        ("corpus", "source", "rows"),
        [(row["name"], row["source"], f"{row['kept']:,}") for row in facts["corpora"]],
        numbers_from=2,
    )
    versions = {"embaudit": facts["embaudit_version"], **json.loads(facts["libraries"])}
    libraries = Table(("library", "version"), list(versions.items()), numbers_from=2)
    settings = Table(
        ("setting", "value"),
        [(name, value) for name, value in _flat(json.loads(facts["settings"])) if value != ""],
        numbers_from=2,
    )
    return Section("Settings", (), [runs, corpora, settings, libraries], is_folded=True)


def _flat(value: Any, name: str = "") -> list[tuple[str, str]]:
    """Nested settings as dotted names."""
    if isinstance(value, dict) and value:
        return [found for key, item in value.items() for found in _flat(item, f"{name}.{key}" if name else str(key))]
    text = "" if value in (None, {}, []) else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return [(name, text)]
