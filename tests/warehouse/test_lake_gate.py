"""A gate and an audit's page read a lake as they read a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from plausible import audit_record, expectation, measure_runs, plausible_rows, stage_all

from embaudit.pages.write import write_page
from embaudit.system.settings import Lake
from embaudit.warehouse.gate import Policy, run_gate
from embaudit.warehouse.publish import publish


@pytest.mark.slow
def test_a_gate_and_a_page_read_a_lake(lake: Lake, tmp_path: Path) -> None:
    for audit_id, checkpoint, shift, minutes in (("a1", "c0", 0.1, 0), ("a2", "c1", 0.0, 10)):
        record = audit_record(audit_id, checkpoint, minutes=minutes)
        record = replace(record, settings={**record.settings, "source": "owner/model"})
        staged = stage_all(tmp_path / audit_id, plausible_rows(checkpoint, "owner/model", shift))
        publish(lake, 5, record, measure_runs(), [expectation()], staged)
    change = {"summary": "sticky_token", "measure": "worst_loss", "max_increase": 0.05}
    verdict = run_gate(lake, "latest", Policy.model_validate({"change": [change]}))
    assert (verdict.audit_id, verdict.baseline_audit_id, verdict.outcome) == ("a2", "a1", "tripped")
    (found,) = [one for one in verdict.findings if one.measure == "worst_loss"]
    assert found.change == pytest.approx(0.1 / 0.785)
    page = write_page(lake, "latest", tmp_path / "reports").path
    assert "Gate tripped" in page.read_text()
