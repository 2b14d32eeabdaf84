"""The command line from end to end on a DuckLake, snapshots after publishing, and maintenance as a flow."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from commands import Embaudit
from plausible import audit_record, expectation, measure_runs, plausible_rows, stage_all
from postgres_server import USER, Postgres

from embaudit.system.settings import Lake
from embaudit.warehouse.connect import open_reader
from embaudit.warehouse.prune import DETAIL_TABLES
from embaudit.warehouse.publish import publish

pytestmark = pytest.mark.slow


@pytest.fixture
def address(postgres: Postgres, tmp_path: Path) -> str:
    database = postgres.create(f"flows_{tmp_path.name[-20:]}".replace("-", "_"))
    words = f"dbname={database} host={postgres.host} port={postgres.port} user={USER}"
    return str(Lake(words, tmp_path / "lake", "audits"))


def test_a_lake_from_the_command_line(
    embaudit: Embaudit, embaudit_here: Embaudit, address: str, tiny_checkpoint: Path, tiny_profile: Path, tmp_path: Path
) -> None:
    snapshot, taken = tmp_path / "snapshot.duckdb", tmp_path / "mine.duckdb"
    places = {"EMBAUDIT_WAREHOUSE": address, "EMBAUDIT_SNAPSHOT": str(snapshot), "PGPASSWORD": "hunter2"}
    audit = ("audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", "socm")
    done = embaudit(*audit, "--logs", timeout=580, **places)
    assert done.returncode == 0, done.stderr[-3000:]
    assert f"Results: {address}" in done.stdout
    said = done.stdout + done.stderr
    assert "hunter2" not in said
    for command, expected in (
        (("show",), "Second-order collapse"),
        (("list", "audits"), "published"),
        (("query", "worst-tokens"), "retention_outlier"),
        (("query", "SELECT count(*) AS audits FROM audit", "--format", "csv"), "audits\n1\n"),
        (("upgrade",), "has schema"),
        (("doctor",), "audits published: 1"),
        (("prune", "--keep-audits", "0", "--dry-run"), "would be deleted"),
        (("export", str(tmp_path / "parquet")), "rows of"),
    ):
        answer = embaudit_here(*command, **places)
        assert answer.returncode == 0, (command, answer.stderr)
        assert expected in answer.stdout, command
        assert "hunter2" not in answer.stdout + answer.stderr
    # The snapshot of the publication is a warehouse of its own.
    shown = embaudit_here("list", "audits", "--warehouse", str(snapshot), "--format", "json")
    assert [row["status"] for row in json.loads(shown.stdout)] == ["published"]
    # The same question again: nothing is computed, nothing doubled. A snapshot that cannot be written is a warning.
    taken.write_text("mine")
    again = embaudit_here(*audit, **{**places, "EMBAUDIT_SNAPSHOT": str(taken)})
    assert again.returncode == 0, again.stderr[-3000:]
    assert "Warning: The snapshot was not refreshed." in again.stdout
    assert taken.read_text() == "mine"
    sql = (
        "SELECT (SELECT count(*) FROM audit) AS a, (SELECT count(*) FROM checkpoint) AS c, "
        "(SELECT count(*) = count(DISTINCT (corpus_id, position)) FROM text) AS t"
    )
    counted = embaudit_here("query", sql, "--format", "csv", **places)
    assert counted.stdout == "a,c,t\n1,1,True\n"
    assert "published" in embaudit_here("list", "audits", **places).stdout
    refused = embaudit_here(
        "query", "SELECT * FROM postgres_scan('dbname=postgres', 'pg_catalog', 'pg_user')", **places
    )
    assert refused.returncode == 2
    assert "must not call it" in refused.stderr
    secret = embaudit_here(
        "list", "audits", "--warehouse", "ducklake:postgres:dbname=x password=hunter2?data_path=/srv"
    )
    assert secret.returncode == 2
    assert "hunter2" not in secret.stdout + secret.stderr
    assert "PGPASSFILE" in secret.stderr


def test_maintenance_is_a_flow_that_says_what_it_freed(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

    from embaudit_flows.maintain import ARTIFACT, maintain

    warehouse = home / "warehouse.duckdb"
    for audit_id, minutes in (("old", 0), ("new", 10)):
        staged = stage_all(home / "staging" / "socm" / audit_id, plausible_rows())
        publish(warehouse, 5, audit_record(audit_id, minutes=minutes), measure_runs(), [expectation()], staged)
    monkeypatch.setenv("EMBAUDIT_SNAPSHOT", str(tmp_path / "snapshot.duckdb"))
    outcome = maintain(keep_days=None, keep_audits=1, staged_days=30)
    assert outcome.audits == 1
    assert outcome.rows == sum(len(rows) for name, rows in plausible_rows().items() if name in DETAIL_TABLES)
    assert outcome.staged_files == 0
    assert outcome.warnings == []
    with open_reader(warehouse) as connection:
        assert connection.execute("SELECT DISTINCT audit_id FROM socm_pair").fetchall() == [("new",)]
    with duckdb.connect(str(tmp_path / "snapshot.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT DISTINCT audit_id FROM pruning").fetchall() == [("old",)]
    with get_client(sync_client=True) as client:
        (artifact, *_) = client.read_artifacts(
            artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=[ARTIFACT])), sort="CREATED_DESC"
        )
    assert f"{outcome.rows:,} rows of 1 audits deleted" in str(artifact.data)


def test_prune_from_the_command_line(embaudit_here: Embaudit, home: Path) -> None:
    warehouse = home / "warehouse.duckdb"
    for audit_id, minutes in (("old", 0), ("new", 10)):
        staged = stage_all(home / "staging" / "socm" / audit_id, plausible_rows())
        publish(warehouse, 5, audit_record(audit_id, minutes=minutes), measure_runs(), [expectation()], staged)
    nothing = embaudit_here("prune")
    assert nothing.returncode == 2
    assert "--keep-days 90" in nothing.stderr
    dry = embaudit_here("prune", "--keep-audits", "1", "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "rows of 1 audits would be deleted" in dry.stdout
    done = embaudit_here("prune", "--keep-audits", "1", "--staged-days", "30")
    assert done.returncode == 0, done.stderr
    assert "rows of 1 audits deleted" in done.stdout
    assert "MiB after" in done.stdout
    with open_reader(warehouse) as connection:
        assert connection.execute("SELECT DISTINCT audit_id FROM socm_pair").fetchall() == [("new",)]
