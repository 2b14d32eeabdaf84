"""The page of an audit with every measure says what somebody read."""

from __future__ import annotations

from typing import Any

import pytest
from told_before import unread

from embaudit.pages.write import audit_page


@pytest.mark.parametrize(
    "changed", [{}, {"status": "failed", "reason": "a check failed."}], ids=["published", "failed"]
)
def test_the_page_of_an_audit_is_told(full_facts: dict[str, Any], changed: dict[str, str]) -> None:
    assert not unread("Audit", audit_page({**full_facts, **changed}))
