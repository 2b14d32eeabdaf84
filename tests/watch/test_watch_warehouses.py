"""What a watch reads and writes, in a DuckDB file and in a DuckLake: rows come back, audits are compared."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from plausible import audit_record, measure_runs, plausible_rows, stage_all
from postgres_server import USER

from embaudit.system.settings import Lake
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.publish import publish
from embaudit.warehouse.regression import find_predecessor
from embaudit.watch.history import WatchedRevision, read_watched
from embaudit.words.errors import CheckFailed
from embaudit_tasks.watch import compare_with_predecessor, record_watched

SEEN = WatchedRevision(
    source='/models/it\'s [odd] "one"; DROP TABLE audit; --',
    revision="c1",
    parameters_key="k",
    parameters={"profile": "quick", "corpora": {"sts": "ä'b"}, "measures": None},
    checkpoint_id="c1",
    status="audited",
    reason=None,
    audit_id="a1",
    first_seen=datetime(2026, 11, 21, 12, tzinfo=UTC),
    last_seen=datetime(2026, 11, 21, 13, tzinfo=UTC),
)


@pytest.fixture(params=["file", pytest.param("lake", marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return str(request.getfixturevalue("empty_warehouse"))
    postgres = request.getfixturevalue("postgres")
    database = f"dbname={postgres.create('watched')} host={postgres.host} port={postgres.port} user={USER}"
    return str(Lake(database, tmp_path / "lake"))


def put_audit(place: str, staging: Path, audit_id: str, checkpoint: str, minutes: int, shift: float) -> None:
    rows = {
        name: part
        for name, part in plausible_rows(checkpoint, "owner/name", shift).items()
        if name in ("checkpoint", "token", "corpus", "audit_corpus", "socm_summary") or name.startswith("sticky_")
    }
    mean = rows["socm_summary"][0]["socm_mean"] - (0.2 if audit_id == "a1" else 0.0)
    interval = {"socm_mean": mean, "socm_low": mean - 0.05, "socm_high": mean + 0.05}
    rows["socm_summary"] = [{**row, **interval} for row in rows["socm_summary"]]
    if audit_id == "a1":
        rows["sticky_validation"] = [{**row, "severity": "weak"} for row in rows["sticky_validation"]]
    settings = {"source": f"owner/name@{checkpoint}", "measures": ["sticky", "socm"], "pooling": None}
    record = replace(audit_record(audit_id, checkpoint, minutes=minutes), settings=settings)
    publish(place, 60, record, measure_runs(), [], stage_all(staging / audit_id, rows))


def test_rows_and_comparisons(place: str, tmp_path: Path) -> None:
    staging = str(tmp_path / "staging")
    put_audit(place, tmp_path, "a1", "c1", 0, 0.0)
    put_audit(place, tmp_path, "a2", "c2", 10, 0.1)
    assert read_watched(place) == []

    later = SEEN.model_copy(update={"last_seen": SEEN.last_seen + timedelta(hours=1), "status": "known"})
    lost = SEEN.model_copy(
        update={"revision": "", "status": "failed", "audit_id": None, "checkpoint_id": None, "reason": "half"}
    )
    for rows in ([SEEN, lost], [later]):
        record_watched.fn(rows, place, 60.0, staging)
    found = read_watched(place)
    assert sorted(found, key=lambda row: row.revision) == [lost, later]
    with pytest.raises(CheckFailed, match="done_rows_have_audit"):
        record_watched.fn([SEEN.model_copy(update={"audit_id": None})], place, 60.0, staging)
    assert sorted(read_watched(place), key=lambda row: row.revision) == [lost, later]

    assert find_predecessor(place, "a2", None) == "a1"
    assert find_predecessor(place, "a2", "a1") == "a1"
    assert find_predecessor(place, "a2", "a2") == "a1", "the same content is no predecessor"
    assert find_predecessor(place, "a1", None) is None
    for _ in range(2):
        compared = compare_with_predecessor.fn("a2", "a1", place, 60.0, staging)
    assert compared is not None
    assert {row["measure"] for row in compared["worse"]} == {"socm_mean"}
    with open_reader(place, 60) as connection:
        assert connection.execute("SELECT count(*) FROM regression").fetchall() == [(compared["figures"],)]
        changes = connection.execute("SELECT change, token, predecessor_loss < 1 FROM sticky_change").fetchall()
        worse = connection.execute("SELECT source, figures_worse, revisions FROM watched_source").fetchall()
    assert sorted(changes) == [("newly sticky", "ন", True), ("newly sticky", "龸", True)]
    assert worse == [(SEEN.source, 0, 1)]
    assert compare_with_predecessor.fn("a1", None, place, 60.0, staging) is None


def test_no_warehouse_has_no_history(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "none.duckdb")
    assert read_watched(nowhere) == []
    assert not Path(nowhere).exists()
