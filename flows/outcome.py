"""The outcome of a finished audit: the result of its flow, and what ``embaudit audit --json`` prints."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, PrivateAttr

from embaudit.declared.document import Page
from embaudit.pages.audit import audit_page
from embaudit.pages.facts import read_audit
from embaudit.warehouse.gate import GateVerdict


class AuditOutcome(BaseModel):
    """The result of an audit flow; its figures are in the tables."""

    audit_id: str
    checkpoint_id: str
    source: str
    warehouse: str
    max_length: int
    # Prompts of texts, queries and documents; empty: none.
    prompts: dict[str, str] = {}
    rows: dict[str, int]
    corpora: dict[str, str]
    warnings: list[str]
    seconds: float
    # Whether the checkpoint may be served: the row of the table verdict.
    verdict: dict[str, Any] = {}
    # Rows of the table finding: the figures in words.
    findings: list[dict[str, Any]] = []
    # The verdict, if there is a policy; the paths of the page and the passport, if they could be written.
    gate: GateVerdict | None = None
    report: str | None = None
    passport: str | None = None
    # As the flow built it; other media show the same.
    _page: Page | None = PrivateAttr(default=None)

    def page(self, wait_seconds: float = 5.0) -> Page:
        """The audit's page: as the flow built it, or from the warehouse if it could not write it.

        Raises:
            UsageError, WarehouseError: as ``read_audit``.
        """
        return self._page or audit_page(read_audit(self.warehouse, self.audit_id, wait_seconds))
