"""The gate at the end of a flow: how the run ends, what is stored and shown, and who is told."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from commands import Embaudit
from warehouse_rows import rows
from webhook import SECRET

from embaudit.questions.audit import AuditRequest
from embaudit.warehouse.gate import GateTripped
from embaudit.words.errors import EmbauditError, UsageError
from embaudit_flows.audit import AuditOutcome, audit
from embaudit_flows.ending import key_of_source
from embaudit_flows.notify import Notifier, notify_on_failure

POLICY = """
[require]
measures = ["socm"]
[[limit]]
name = "little is thrown away"
summary = "socm_summary"
measure = "socm_mean"
max = {max}
reason = "because"
"""


@pytest.fixture
def policies(tmp_path: Path) -> dict[str, str]:
    """One that every audit keeps to, and one that none does."""
    found = {}
    for name, largest in (("easy", 1000), ("strict", -1)):
        path = tmp_path / f"{name}.toml"
        path.write_text(POLICY.format(max=largest))
        found[name] = str(path)
    return found


def run(checkpoint: Path, profile: Path, **options: Any) -> AuditOutcome:
    asked = {"profile": str(profile), "measures": ["socm"], "device": "cpu", **options}
    return audit(AuditRequest(checkpoint=str(checkpoint), **asked))


def last_run() -> Any:
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName
    from prefect.client.schemas.sorting import FlowRunSort

    with get_client(sync_client=True) as client:
        (newest,) = client.read_flow_runs(
            flow_filter=FlowFilter(name=FlowFilterName(any_=["audit"])), sort=FlowRunSort.START_TIME_DESC, limit=1
        )
    return newest


def artifact(key: str) -> str:
    from prefect.artifacts import Artifact

    found = Artifact.get(key)
    assert found is not None
    return str(found.data)


@pytest.mark.slow
def test_a_gate_stores_what_it_found_and_ends_the_run_as_asked(
    computed_home: Path,
    tiny_checkpoint: Path,
    tiny_profile: Path,
    policies: dict[str, str],
    webhook: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, block = webhook("ops")
    summary, report = (f"{name}-{key_of_source(str(tiny_checkpoint))}" for name in ("audit-summary", "audit-report"))
    passed = run(tiny_checkpoint, tiny_profile, policy=policies["easy"], notify=block)
    assert passed.gate is not None
    assert passed.gate.outcome == "passed"
    assert last_run().state.name == "Completed"
    assert not server.posts, "nobody is told of what is as it should be"
    assert "Gate passed" in artifact(summary)
    page = computed_home / f"reports/{passed.audit_id}.html"
    assert passed.report == str(page)
    assert "Gate passed" in page.read_text()
    assert "file://" not in artifact(summary)
    monkeypatch.setenv("EMBAUDIT_REPORT_URL", "https://reports.example/")

    marked = run(tiny_checkpoint, tiny_profile, policy=policies["strict"], gate="mark", notify=block)
    assert marked.gate is not None
    assert (marked.audit_id, marked.gate.outcome) == (passed.audit_id, "tripped")
    state = last_run().state
    assert (state.type.value, state.name) == ("COMPLETED", "Gate tripped")
    assert "little is thrown away" in state.message
    assert "Gate tripped" in artifact(summary)
    assert "because" in artifact(summary)
    for one in (summary, report):
        assert f"https://reports.example/{passed.audit_id}.html" in artifact(one)
    assert "Gate tripped" in page.read_text()
    (path, told) = server.posts[-1]
    assert SECRET in path
    assert "gate tripped" in told["title"]
    assert "little is thrown away" in told["text"]

    with pytest.raises(GateTripped) as caught:
        run(tiny_checkpoint, tiny_profile, policy=policies["strict"], notify=block)
    assert caught.value.audit.audit_id == passed.audit_id
    assert "tables stay" in caught.value.kept
    assert (last_run().state.type.value, last_run().state.name) == ("FAILED", "Gate tripped")
    assert len(server.posts) == 2

    audits = rows(marked.warehouse, "SELECT audit_id, status, reason FROM audit")
    assert audits == [(passed.audit_id, "published", None)], "a gate takes nothing back"
    stored = rows(
        marked.warehouse,
        "SELECT policy, rule, item, outcome, trips, value FROM gate_result ORDER BY policy, rule, item",
    )
    means = rows(marked.warehouse, "SELECT corpus, socm_mean FROM socm_summary ORDER BY corpus")
    assert [row for row in stored if row[1] == "little is thrown away"] == [
        (policy, "little is thrown away", corpus, outcome, outcome == "tripped", mean)
        for policy, outcome in (("easy", "passed"), ("strict", "tripped"))
        for corpus, mean in means
    ]
    # The same policy again replaces what it found; the view shows the last gate alone.
    assert len(stored) == 2 * (len(means) + 1)
    assert rows(marked.warehouse, "SELECT DISTINCT policy FROM gate_finding") == [("strict",)]
    assert rows(marked.warehouse, "SELECT outcome, tripped, tripped_rules FROM gate_outcome") == [
        ("tripped", 2, ["little is thrown away"])
    ]


@pytest.mark.usefixtures("new_home")
def test_a_failed_audit_is_told_and_a_wrong_policy_costs_no_audit(
    home: Path, tiny_checkpoint: Path, tiny_profile: Path, webhook: Any, tmp_path: Path
) -> None:
    server, block = webhook("ops")
    (tmp_path / "wrong.toml").write_text("[[limit]]\nmax = 1\n")
    with pytest.raises(UsageError, match="is invalid"):
        run(tiny_checkpoint, tiny_profile, policy=str(tmp_path / "wrong.toml"), notify=block)
    assert not (home / "warehouse.duckdb").exists()
    with pytest.raises(EmbauditError, match="no/such"):
        run(Path("/no/such"), tiny_profile, notify=block)
    assert [told["title"] for _, told in server.posts] == [
        f"Audit of {tiny_checkpoint}: failed",
        "Audit of /no/such: failed",
    ]
    assert "is invalid" in server.posts[0][1]["text"]


@pytest.mark.usefixtures("prefect_api")
def test_a_notification_that_fails_hides_nothing_and_tells_no_secret(
    webhook: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    server, block = webhook("refuses", 500)
    closed, gone = webhook("gone")
    closed.shutdown()
    closed.server_close()
    for name, kind in ((block, "HTTPStatusError"), (gone, "ConnectError")):
        notifier = Notifier(name)
        error = UsageError("The cause.", kept="All is kept.")
        with pytest.raises(UsageError) as caught, notify_on_failure(notifier, "Audit of x"):
            raise error
        assert caught.value is error
        assert notifier.warnings == [f"The notification to {name} could not be sent ({kind})."]
        assert error.kept == f"All is kept. {notifier.warnings[0]}"
    assert len(server.posts) == 1
    output = capfd.readouterr()
    said = caplog.text + output.out + output.err
    assert "could not be sent" in said
    assert SECRET not in said
    assert logging.getLogger("httpx").level < logging.CRITICAL, "other requests are logged as before"


@pytest.mark.usefixtures("prefect_api")
@pytest.mark.parametrize("name", ["ops", "custom-webhook/nobody", "no-such-kind/ops", "secret/one", "a/b/c"])
def test_a_block_that_is_not_there_is_a_warning(name: str) -> None:
    if name == "secret/one":
        from prefect.blocks.system import Secret

        Secret(value="x").save("one", overwrite=True)
    notifier = Notifier(name)
    assert len(notifier.warnings) == 1
    assert name in notifier.warnings[0]
    notifier.send("subject", "body")
    assert len(notifier.warnings) == 1


@pytest.mark.usefixtures("prefect_api")
def test_what_is_no_expected_failure_is_told_by_its_kind_alone(webhook: Any) -> None:
    server, block = webhook("ops")
    with pytest.raises(RuntimeError), notify_on_failure(Notifier(block), "Audit of x"):
        raise RuntimeError(f"password {SECRET}")
    ((_, told),) = server.posts
    assert told["title"] == "Audit of x: failed"
    assert "RuntimeError" in told["text"]
    assert SECRET not in told["text"]


@pytest.mark.usefixtures("prefect_api")
def test_an_interrupt_notifies_nobody(webhook: Any) -> None:
    server, block = webhook("ops")
    with pytest.raises(KeyboardInterrupt), notify_on_failure(Notifier(block), "Audit of x"):
        raise KeyboardInterrupt
    assert not server.posts


@pytest.mark.slow
def test_the_command_shows_the_audit_and_ends_as_the_gate_says(
    embaudit_here: Embaudit, tiny_checkpoint: Path, tiny_profile: Path, policies: dict[str, str], computed_home: Path
) -> None:
    arguments = ("audit", str(tiny_checkpoint), "--profile", str(tiny_profile), "--measures", "socm")
    failed = embaudit_here(*arguments, "--policy", policies["strict"])
    assert failed.returncode == 1, failed.stderr
    assert "Second-order collapse" in failed.stdout, "the audit is shown all the same"
    assert "little is thrown away" in failed.stdout
    assert "Traceback" not in failed.stderr
    paragraph = failed.stderr.strip().split("\n")[-1]
    assert paragraph.startswith("Error: The audit ")
    assert "fails the policy strict" in paragraph
    assert "embaudit report" in paragraph

    marked = embaudit_here(*arguments, "--policy", policies["strict"], "--gate", "mark")
    assert marked.returncode == 0, marked.stderr
    assert "Gate tripped" in marked.stdout
    (page,) = (computed_home / "reports").glob("*.html")
    assert str(page) in marked.stdout

    as_json = embaudit_here(*arguments, "--policy", policies["strict"], "--json")
    assert as_json.returncode == 1
    assert json.loads(as_json.stdout)["gate"]["policy"] == "strict"
    passed = embaudit_here("gate", page.stem[:6], "--policy", policies["easy"])
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert embaudit_here("gate", "latest", "--policy", policies["strict"]).returncode == 1
    assert embaudit_here(*arguments, "--policy", "none.toml").returncode == 2
    queried = embaudit_here("query", "gate", "--format", "json")
    assert [row["outcome"] for row in json.loads(queried.stdout)] == ["tripped"]


@pytest.mark.slow
def test_a_policy_is_about_the_checkpoint_and_not_its_backbone(
    computed_home: Path, tiny_checkpoint: Path, tiny_profile: Path, policies: dict[str, str], tmp_path: Path
) -> None:
    from tiny import tiny_bert

    from embaudit_flows.backbone import audit_with_backbone

    backbone = tiny_bert(tmp_path / "backbone", seed=1)
    asked = {"profile": str(tiny_profile), "measures": ["socm"], "policy": policies["strict"]}
    with pytest.raises(GateTripped) as caught:
        audit_with_backbone(AuditRequest(checkpoint=str(tiny_checkpoint), **asked), str(backbone))
    own = caught.value.audit.audit_id
    warehouse = computed_home / "warehouse.duckdb"
    assert rows(warehouse, "SELECT DISTINCT audit_id FROM gate_result") == [(own,)]
    assert rows(warehouse, "SELECT audit_id FROM audit_backbone") == [(own,)], "compared all the same"
    assert rows(warehouse, "SELECT count(*) FROM audit WHERE status = 'published'") == [(2,)]
