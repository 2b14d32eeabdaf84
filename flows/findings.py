"""Puts an audit's figures into words: findings made from its staged tables, checked and published with them."""

from __future__ import annotations

from functools import cache
from typing import Any

from embaudit.finding import Finding
from embaudit.intervals import Ends, holding
from embaudit.measures.findings import find_all
from embaudit.tables.findings import FindingRow
from embaudit.warehouse.stage import read_rows
from embaudit_flows.plan import AuditPlan
from embaudit_tasks.results import Staged, StagedCorpus, stage_rows


def stage_findings(
    plan: AuditPlan, ingested: dict[str, StagedCorpus], audit_id: str, staged: list[Staged]
) -> list[Staged]:
    """The table of findings; no file if there are none."""

    @cache
    def rows(table: str) -> list[dict[str, Any]]:
        # By path: the same content under two names is staged once.
        return read_rows(list(dict.fromkeys(part.path for part in staged if part.table == table)))

    settings = {name: getattr(plan.profile, name) for name in plan.measures}
    samples = [name for name, corpus in ingested.items() if corpus.source == "sample"]
    found = [
        {
            **{"measure": measure, "name": finding.name, "place": place, "level": finding.level},
            **{"sentence": finding.sentence, "meaning": finding.meaning or None, "advice": finding.advice or None},
            **dict(zip(("value", "low", "high"), (finding.value, *_ends(finding)), strict=True)),
        }
        for place, (measure, finding) in enumerate(find_all(settings, rows, samples))
    ]
    return [stage_rows(plan.staging, "audit", audit_id, FindingRow, found)] if found else []


def _ends(finding: Finding) -> Ends:
    return holding(finding.value, (finding.low, finding.high))
