"""Which audit a run on a worker made: the one that the run names, however alike others are."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import uuid4

import pytest
from plausible import audit_record, measure_runs, plausible_rows
from prefect.client.schemas.objects import FlowRun, State
from prefect.states import Completed, Crashed, Failed, Running
from ready_warehouses import put_audit

from embaudit_tasks.steps import AUDIT_LABEL, GATE_LABEL
from embaudit_tasks.watch import end_of


@pytest.fixture(scope="module")
def warehouse(empty_once: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two audits of one checkpoint that differ in their corpora only, and one that failed."""
    place = Path(shutil.copy(empty_once, tmp_path_factory.mktemp("runs") / "warehouse.duckdb"))
    rows = {**plausible_rows(), "watched_revision": [], "regression": [], "gate_result": []}
    others = [{**row, "corpus_id": f"{row['corpus_id']} other"} for row in rows["audit_corpus"]]
    put_audit(place, audit_record("a1"), rows, measure_runs())
    put_audit(place, audit_record("a2", minutes=1), {**rows, "audit_corpus": others}, measure_runs())
    put_audit(place, audit_record("a3", status="failed", reason="a check", minutes=2), {})
    return str(place)


@pytest.mark.parametrize(
    ("state", "labels", "audit_id", "said"),
    [
        (Completed(), {AUDIT_LABEL: "a1"}, "a1", None),
        (Completed(), {AUDIT_LABEL: "a2"}, "a2", None),
        (Completed(), {AUDIT_LABEL: "a2", GATE_LABEL: "passed"}, "a2", None),
        # What failed is tried again, whatever an earlier run published.
        (Failed(message="disk full"), {AUDIT_LABEL: "a1"}, None, "ended as Failed: disk full"),
        (Failed(message="disk full"), {AUDIT_LABEL: "a1", GATE_LABEL: "passed"}, None, "ended as Failed: disk full"),
        (Crashed(), {}, None, "ended as Crashed: it says nothing"),
        # A tripped gate is no failure.
        (Failed(message="it trips"), {AUDIT_LABEL: "a1", GATE_LABEL: "tripped"}, "a1", None),
        (Completed(name="Gate tripped"), {AUDIT_LABEL: "a1", GATE_LABEL: "tripped"}, "a1", None),
        (Completed(), {}, None, "does not say which audit"),
        (Completed(), {AUDIT_LABEL: "a9"}, None, "does not have it"),
        (Completed(), {AUDIT_LABEL: "a3"}, None, "does not have it"),
    ],
)
def test_a_run_names_its_audit(
    warehouse: str, state: State, labels: dict[str, str], audit_id: str | None, said: str | None
) -> None:
    end = end_of(FlowRun(flow_id=uuid4(), name="eager-fox", state=state, labels=labels), warehouse)
    assert end is not None
    assert end.audit_id == audit_id
    assert end.has_failed == (said is not None)
    assert said is None or said in str(end.reason)


def test_a_run_that_goes_on_has_no_end(warehouse: str) -> None:
    assert end_of(FlowRun(flow_id=uuid4(), state=Running(), labels={AUDIT_LABEL: "a1"}), warehouse) is None
