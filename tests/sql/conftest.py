"""The warehouse that the tests of views and named queries read: small, with numbers worked out by hand."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from plausible import audit_record, expectation, measure_runs, plausible_rows
from ready_warehouses import put_audit

from embaudit.warehouse.connect import open_writer


@pytest.fixture(scope="session")
def filled(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two checkpoints: c1 audited twice (the newer one counts) with a third run failed, c2 once, under c1's name."""
    warehouse = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("queries")))
    before, now, others = (
        plausible_rows(checkpoint, source, shift)
        for checkpoint, source, shift in (
            ("c1", "packaged:tiny", -0.2),
            ("c1", "packaged:tiny", 0.0),
            ("c2", "owner/other", 0.1),
        )
    )
    # The rows of a1: no token was sticky then.
    before["sticky_validation"] = [{**row, "outlier": row["outlier"] and "no"} for row in before["sticky_validation"]]
    put_audit(warehouse, audit_record("a1", minutes=0), before, measure_runs(), [expectation()])
    put_audit(warehouse, audit_record("a2", minutes=10), now, measure_runs(), [expectation()])
    between = audit_record("a3", "c2", minutes=5)
    between = replace(between, settings={**between.settings, "source": "packaged:tiny"})
    put_audit(warehouse, between, others, measure_runs(), [expectation()])
    failed = [expectation("socm_pair", 2, success=False), expectation("token")]
    put_audit(warehouse, audit_record("a4", "c1", "failed", "1 of 2 checks", minutes=20), {}, [], failed)
    with open_writer(warehouse, 0) as connection:
        connection.execute("INSERT INTO published_figure VALUES ('owner/other', 'u', '', 0.25, 'a paper')")
        connection.execute(
            "INSERT INTO downstream_score SELECT "
            "unnest(['tiny', 'owner/other']), '', 'Task', 'test', 'default', unnest([0.5, 0.6]), NULL, 'file', now()"
        )
    return warehouse
