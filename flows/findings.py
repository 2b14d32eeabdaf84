"""Puts an audit's figures into words: findings and verdict from its staged tables, checked and published with them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from embaudit.declared.rule import Finding
from embaudit.measures.findings import find_all
from embaudit.questions.check.verdict import verdict_of_audit
from embaudit.steps.results import Staged, StagedCorpus, stage_rows
from embaudit.steps.staging.stage import read_rows
from embaudit.warehouse.tables.findings import FindingRow, VerdictRow
from embaudit.words.estimate import Estimate
from embaudit_flows.plan import AuditPlan


def stage_findings(
    plan: AuditPlan, ingested: dict[str, StagedCorpus], audit_id: str, staged: list[Staged]
) -> list[Staged]:
    """The table of findings, if there are any, and the verdict that follows from them."""
    found = findings_of(plan, ingested, staged, plan.measures)
    verdict = verdict_of_audit(found)
    said = {
        "kind": verdict.kind,
        "line": verdict.line,
        "cause": verdict.cause and verdict.cause.name,
        "looks": verdict.looks,
        "unmeasured": len(verdict.unmeasured),
    }
    tables = [(FindingRow, [_row(place, *one) for place, one in enumerate(found)]), (VerdictRow, [said])]
    return [stage_rows(plan.staging, "audit", audit_id, table, of_table) for table, of_table in tables if of_table]


def findings_of(
    plan: AuditPlan, ingested: dict[str, StagedCorpus], staged: list[Staged], measures: Iterable[str]
) -> list[tuple[str, Finding]]:
    """What some of the measures found, and what is found about the audit as a whole, each with its measure.

    Args:
        staged: at least what these measures staged, and the tables that belong to no measure.
    """

    @cache
    def rows(table: str) -> list[dict[str, Any]]:
        # By path: the same content under two names is staged once.
        return read_rows(list(dict.fromkeys(part.path for part in staged if part.table == table)))

    settings = {name: getattr(plan.profile, name) for name in measures}
    samples = [name for name, corpus in ingested.items() if corpus.source == "sample"]
    return list(find_all(settings, rows, samples))


def _row(place: int, measure: str, finding: Finding) -> dict[str, Any]:
    return {
        **{"measure": measure, "name": finding.name, "place": place, "level": finding.level},
        **{"sentence": finding.sentence, "meaning": finding.meaning or None, "advice": finding.advice or None},
        **Estimate.holding(finding.value, (finding.low, finding.high)).as_json(),
    }
