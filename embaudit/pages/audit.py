"""Builds the page of an audit, or of a checkpoint's state, from what was read; lists the sections in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from embaudit.declared.document import Page
from embaudit.declared.rule import LEVELS
from embaudit.measures import MEASURES
from embaudit.pages import general
from embaudit.pages.shares import of_one_audit

FIRST = (general.stored_gate_section, general.regression_section, of_one_audit)
LAST = (general.published_section, general.backbone_section, general.check_section, general.settings_section)
# Lines of an audit's identity that say when and how it ran; a state has one line per audit instead.
OF_ONE_RUN = ("audit", "profile", "finished", "ran on")


def audit_page(facts: dict[str, Any], link: str = "", measures: Collection[str] | None = None) -> Page:
    """The page; for an unpublished audit, only the reason.

    Args:
        link: address of its HTML page, for other media.
        measures: those that count, and ``audit`` for what was found about the audit as a whole; None for all.
    """
    counted = [measure for measure in MEASURES.values() if measures is None or measure.name in measures]
    if measures is not None:
        facts = facts | {"findings": [row for row in facts["findings"] if row["measure"] in measures]}
    makers = (*FIRST, *(measure.parts().page.section for measure in counted), *LAST)
    sections = [make(facts) for make in makers] if facts["status"] == "published" else []
    return Page(
        title=facts["source"] or facts["checkpoint_id"],
        identity=general.identity(facts),
        findings=list(general.page_findings(facts)),
        sections=[section for section in sections if section is not None],
        link=link,
    )


def state_page(audits: Sequence[tuple[dict[str, Any], Collection[str] | None]]) -> Page:
    """The page of what a name stands for (``read_state``): one audit, or a checkpoint's newest results.

    Each section comes from the audit that has the result; where several have one, its title says which.
    """
    if len(audits) == 1:
        return audit_page(audits[0][0])
    pages = [audit_page(facts, measures=measures) for facts, measures in audits]
    repeated = Counter(section.title for page in pages for section in page.sections)
    found = [one for page in pages for one in page.findings]
    # A checkpoint has one verdict: the newest, of the audits that measured what decides it.
    verdicts = sorted((one for one in found if one.name == "verdict"), key=lambda one: one.level == "not measured")
    found = [one for one in found if one.name != "verdict" or one is verdicts[0]]
    return replace(
        pages[0],
        kind="Newest results of",
        identity=[
            *(line for line in pages[0].identity if line[0] not in OF_ONE_RUN),
            *(("audit", _summary(facts, measures or ())) for facts, measures in audits),
        ],
        findings=sorted(found, key=lambda one: LEVELS.index(one.level)),
        sections=[
            replace(section, title=f"{section.title} (audit {facts['audit_id'][:6]})")
            if repeated[section.title] > 1
            else section
            for page, (facts, _) in zip(pages, audits, strict=True)
            for section in page.sections
        ],
    )


def _summary(facts: dict[str, Any], measures: Collection[str]) -> str:
    """When and how a part of a state was measured, and what it has."""
    counted = ", ".join(name for name in MEASURES if name in measures)
    when = f"{facts['finished']:%Y-%m-%d %H:%M %Z}"
    return f"{facts['audit_id']}, {when}, {facts['profile']}, {facts['dtype']}, seed {facts['seed']}: {counted}"
