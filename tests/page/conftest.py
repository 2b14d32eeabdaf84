"""The facts of one audit with every measure, a gate and a predecessor."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from plausible import audit_record, expectation, measure_runs, plausible_rows
from ready_warehouses import put_audit

from embaudit.pages.write import read_audit


@pytest.fixture(scope="package")
def full_facts(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    warehouse = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("facts") / "warehouse.duckdb"))
    rows = plausible_rows()
    for table in ("gate_result", "regression"):
        for row in rows[table]:
            row["audit_id"] = "a1"
    put_audit(warehouse, audit_record(), rows, measure_runs(), [expectation()])
    facts = read_audit(warehouse, "a1")
    measured = (
        *("tokens", "socm", "layers", "geometry", "length", "temperatures", "occurrences", "placement", "impact"),
        *("mitigation", "verdict", "weights", "quality", "quality_layers", "quality_readings", "quality_wordings"),
    )
    assert all(facts[name] for name in (*measured, "gate", "compared"))
    return facts
