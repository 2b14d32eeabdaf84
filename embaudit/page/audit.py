"""Builds an audit's page from what ``read_audit`` returns; the sections are listed here in order."""

from __future__ import annotations

from typing import Any

from embaudit.measures import MEASURES
from embaudit.page import general
from embaudit.page.model import Page

SECTIONS = (
    *(general.stored_gate_section, general.regression_section),
    *(measure.page.section for measure in MEASURES.values()),
    *(general.published_section, general.backbone_section, general.check_section, general.settings_section),
)


def audit_page(facts: dict[str, Any], link: str = "") -> Page:
    """The page; for an unpublished audit, only the reason.

    Args:
        link: address of its HTML page, for other media.
    """
    sections = [make(facts) for make in SECTIONS] if facts["status"] == "published" else []
    return Page(
        title=facts["source"] or facts["checkpoint_id"],
        identity=general.identity(facts),
        findings=list(general.page_findings(facts)),
        sections=[section for section in sections if section is not None],
        link=link,
    )
