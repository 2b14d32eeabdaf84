"""Which audit a run on a worker made: the one that the run names, however alike others are."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from uuid import uuid4

import pytest
from click.testing import CliRunner
from commands import Embaudit
from plausible import audit_record, measure_runs, plausible_rows
from prefect.client.schemas.objects import FlowRun, State
from prefect.states import Completed, Crashed, Failed, Running
from ready_warehouses import put_audit
from test_watch_flow import SETTINGS, Put, Watcher, watcher  # noqa: F401  (a fixture)

from embaudit.cli.main import cli
from embaudit.words.errors import UsageError
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


# ---- ``embaudit watch`` as a person types it ----


def invoke(*arguments: str) -> str:
    done = CliRunner().invoke(cli, ["watch", *arguments], catch_exceptions=False, standalone_mode=False)
    return done.output


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without a warehouse; a dry run needs no server."""
    monkeypatch.setenv("EMBAUDIT_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "profile.toml").write_text('name = "watched"\nversion = 1\ndescription = ""\n')
    return tmp_path


def test_a_dry_run_says_what_is_new_and_writes_nothing(alone: Path, put: Put) -> None:
    put(alone / "runs" / "one", 0)
    put(alone / "runs" / "half", 1)
    (alone / "runs" / "half" / "model.safetensors").unlink()
    (alone / "home" / "watch.toml").write_text(
        f'{SETTINGS.replace("profile.toml", "../profile.toml")}[[folder]]\npath = "../runs"\neach = true\n'
    )
    found = {Path(row["source"]).name: row for row in json.loads(invoke("--dry-run", "--json"))}
    assert (found["one"]["would"], found["one"]["is_new"]) == ("audit it", True)
    assert found["half"]["would"] == "record it and try again next time"
    assert "has no weights" in found["half"]["reason"]
    table = invoke(str(alone / "home" / "watch.toml"), "--dry-run", "--once")
    assert "audit it" in table
    assert "has no weights" in table
    assert [path.name for path in (alone / "home").iterdir()] == ["watch.toml"]


def test_a_list_that_does_not_fit_is_said_before_a_server_starts(alone: Path) -> None:
    (alone / "watch.toml").write_text('[[hub]]\nname = "owner/name"\nrevison = "dev"')
    with pytest.raises(UsageError, match="did you mean revision"):
        invoke(str(alone / "watch.toml"))
    with pytest.raises(UsageError, match="There is no watch list"):
        invoke()


@pytest.mark.slow
def test_a_watch_prints_what_became_of_every_source(watcher: Watcher, put: Put, embaudit_here: Embaudit) -> None:  # noqa: F811
    put(watcher.folder / "model", 0)
    put(watcher.folder / "refused", 1)
    watcher.write('[[folder]]\npath = "model"\n[[folder]]\npath = "refused"\nsettings = { pooling = "nonsense" }')
    done = embaudit_here("watch", str(watcher.list))
    assert done.returncode == 2, done.stderr
    assert "; 1 audited, 1 failed." in done.stdout
    assert "Checkpoint not read: " in done.stderr
    assert "nonsense" in done.stdout
    put(watcher.folder / "model", 1)
    watcher.write(
        '[[folder]]\npath = "model"\n[[folder]]\npath = "refused"\nsettings = { corpora = { wikipedia = "x.txt" } }'
    )
    failed = embaudit_here("watch", str(watcher.list), "--json")
    assert failed.returncode == 2
    assert "Audit failed: " in failed.stderr
    assert "Traceback" not in failed.stderr
    outcome = json.loads(failed.stdout)
    assert [row["outcome"] for row in outcome["rows"]] == ["audited", "failed"]
    assert outcome["rows"][0]["predecessor_audit_id"]
    shown = embaudit_here("query", "regressions", "--format", "json")
    worse = [f"{row['measure']} of {row['item']}" for row in json.loads(shown.stdout)]
    assert worse == [text.rsplit(" ", 1)[0] for text in outcome["rows"][0]["worse"]]
    assert "Everything else is done" in failed.stderr
