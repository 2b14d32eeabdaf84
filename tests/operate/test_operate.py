"""docs/operate.md, command by command: a real server, its deployments, a worker, an audit, and the pages of the UI."""

from __future__ import annotations

import json
import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from ports import free_port
from postgres_server import USER, Postgres
from site_of_ones_own import Site, commands_under, kill_all, new_site, toml_under, wait_until

from embaudit_flows.ending import key_of_source

pytestmark = pytest.mark.slow


def set_up(site: Site, heading: str) -> None:
    """Type the five commands; the last one stays."""
    *commands, worker = commands_under(heading)[:5]
    for command in commands:
        if command.endswith("&"):
            site.start(command, "server.log")
            wait_until(lambda: site.ask("health"), 240)
        else:
            site.shell(command)
    assert worker == "embaudit worker"
    site.start(worker, "worker.log")
    wait_until(lambda: site.ask("work_pools/embaudit/workers/filter", {}), 240)


def run_audit(site: Site, checkpoint: Path, profile: Path, *measures: str) -> dict[str, Any]:
    """Run the on-demand deployment as the page says, on a small checkpoint; returns the flow run."""
    (command,) = [line for line in commands_under("One machine: five commands") if "deployment run" in line]
    asked = {"checkpoint": str(checkpoint), "profile": str(profile), "measures": measures}
    typed = '{"checkpoint": "packaged:all-MiniLM-L6-v2"}'
    assert typed in command
    site.shell(command.replace(typed, json.dumps(asked)))
    (run,) = runs_called(site, "audit ")
    return run


def runs_called(site: Site, beginning: str, state: str = "") -> list[dict[str, Any]]:
    """The flow runs whose names begin so, the newest first; those in one state."""
    runs = site.ask("flow_runs/filter", {"sort": "START_TIME_DESC"})
    return [run for run in runs if run["name"].startswith(beginning) and state in ("", run["state_name"])]


def write_watch_list(home: Path, checkpoints: Path, profile: Path) -> None:
    """The page's, for a small profile and the folder of small checkpoints."""
    home.mkdir()
    (written,) = toml_under("What is deployed")
    for shown, real in {
        '"quick"': f'"{profile}"\nmeasures = ["socm"]',
        "/models/candidates": checkpoints,
    }.items():
        assert shown in written
        written = written.replace(shown, str(real))
    (home / "watch.toml").write_text(written)


def kill_the_machine_of_a_running_audit(site: Site, checkpoint: Path) -> str:
    """kill -9 to the worker and all it has started, once the run has sent a heartbeat; returns the run's id."""
    (worker,) = [process for process in site.started if "worker" in str(process.args)]
    before = {run["id"] for run in runs_called(site, "audit ")}
    site.shell(f'prefect deployment run audit/on-demand --param \'request={{"checkpoint": "{checkpoint}"}}\'')

    def new_run() -> str | None:
        return next((run["id"] for run in runs_called(site, "audit ", "Running") if run["id"] not in before), None)

    run_id = str(wait_until(new_run, 180))
    resource = {"id": [f"prefect.flow-run.{run_id}"]}
    heartbeats = {"filter": {"event": {"name": ["prefect.flow-run.heartbeat"]}, "resource": resource}}
    wait_until(lambda: site.ask("events/filter", heartbeats)["events"], 180)
    kill_all(worker)
    assert site.ask(f"flow_runs/{run_id}")["state"]["name"] == "Running"
    return run_id


def test_one_machine(tmp_path: Path, tiny_checkpoint: Path, tiny_profile: Path) -> None:
    """An audit, a machine that dies under another one, nights of the watch, and what the pages show of all that."""
    if shutil.which("chromium") is None:
        pytest.skip("needs chromium (apt-get install chromium), which is not here")
    write_watch_list(tmp_path / ".embaudit", tiny_checkpoint.parent, tiny_profile)
    with new_site(tmp_path, free_port()) as site:
        set_up(site, "One machine: five commands")
        run = run_audit(site, tiny_checkpoint, tiny_profile, "sticky", "socm")
        assert run["state_name"] == "Completed"
        of_run = {"flow_runs": {"id": {"any_": [run["id"]]}}}
        tasks = {task["name"] for task in site.ask("task_runs/filter", of_run)}
        assert {"check tables", "publish"} <= tasks
        artifacts = site.ask("artifacts/latest/filter", {})
        name = key_of_source(str(tiny_checkpoint))
        wanted = {f"{table}-{name}" for table in ("audit-summary", "socm-summary", "sticky-summary")}
        assert wanted <= {one["key"] for one in artifacts}
        assert [one for one in site.ask("artifacts/filter", {}) if one["type"] == "progress" and one["data"] == 100.0]
        # The worker's results lie where it was started, and a terminal there finds them.
        assert (tmp_path / ".embaudit" / "warehouse.duckdb").is_file()
        assert "SOCM" in site.shell(f"embaudit show --warehouse {tmp_path}/.embaudit/warehouse.duckdb")

        # Nobody but the automation can say that this one is dead; it takes its time, while another worker works.
        dead = kill_the_machine_of_a_running_audit(site, tiny_checkpoint)
        site.start("embaudit worker", "second-worker.log")
        require_nights(site)

        picture = Path(os.environ.get("EMBAUDIT_DOCS_PICTURE", tmp_path / "run.png"))
        page = site.page(f"runs/flow-run/{run['id']}", "Completed", picture)
        assert "Completed" in page
        assert "Task runs" in page
        assert picture.stat().st_size > 20_000
        assert f"audit-summary-{name}" in site.page("artifacts", "audit-summary")
        deployments = site.page("deployments", "nightly")
        for name in ("on-demand", "nightly", "weekly", "maintenance"):
            assert name in deployments, deployments
        assert "without a heartbeat" in site.page("automations", "without a heartbeat")

        wait_until(lambda: site.ask(f"flow_runs/{dead}")["state"]["name"] == "Crashed", 300)
        assert "heartbeat" in site.ask(f"flow_runs/{dead}")["state"]["message"]


def test_a_run_that_died_before_it_said_a_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before its first heartbeat, or before its code began; who runs in a terminal need not send any."""
    from prefect.client.orchestration import get_client
    from prefect.settings import PREFECT_API_URL, temporary_settings
    from prefect.states import Pending, Running

    from embaudit_flows.server import set_up as server_set_up

    monkeypatch.setattr(server_set_up, "SILENCE", timedelta(seconds=10))
    monkeypatch.setattr(server_set_up, "BEGINNING", timedelta(seconds=10))
    with new_site(tmp_path, free_port()) as site:
        server, *_ = commands_under("One machine: five commands")
        site.start(server, "server.log")
        wait_until(lambda: site.ask("health"), 240)
        url = {PREFECT_API_URL: f"{site.url}/api"}
        with temporary_settings(url), get_client(sync_client=True) as client:
            server_set_up.put_automations(client, None, timedelta(hours=25))
            flow = client.create_flow_from_name("ask")
            deployment = client.create_deployment(flow, "on-demand", tags=["embaudit"])
            dead = [client.create_flow_run_from_deployment(deployment, state=state) for state in (Running(), Pending())]
            in_a_terminal = client._client.post(
                "/flow_runs/", json={"flow_id": str(flow), "tags": ["embaudit"], "state": {"type": "RUNNING"}}
            ).json()

            def ended() -> list[str]:
                found = [site.ask(f"flow_runs/{run.id}")["state"] for run in dead]
                return [one["message"] for one in found if one["name"] == "Crashed"]

            began, taken = wait_until(lambda: ended() if len(ended()) == 2 else None, 180)
            assert "no heartbeat" in began
            assert "never began" in taken
            assert site.ask(f"flow_runs/{in_a_terminal['id']}")["state"]["name"] == "Running"


def require_nights(site: Site) -> None:
    """The first night audits what is on the list; the next one has seen it, and does not."""
    (nightly,) = commands_under("What is deployed")
    before = {run["id"] for run in runs_called(site, "audit ")}
    for _ in range(2):
        site.shell(nightly)
        (audited,) = [run for run in runs_called(site, "audit ") if run["id"] not in before]
        assert audited["state_name"] == "Completed"
    assert [run["state_name"] for run in runs_called(site, "watch ")] == ["Completed", "Completed"]


def test_several_machines_on_postgresql(
    tmp_path: Path, postgres: Postgres, tiny_checkpoint: Path, tiny_profile: Path
) -> None:
    database = postgres.create("prefect_server")
    written = "postgresql+asyncpg://prefect@localhost/prefect"
    assert written in "".join(commands_under("Several machines: PostgreSQL"))
    real = f"postgresql+asyncpg://{USER}@{postgres.host}:{postgres.port}/{database}"
    with new_site(tmp_path, free_port(), {written: real, "SERVER:": "127.0.0.1:"}) as site:
        set_up(site, "Several machines: PostgreSQL")
        assert run_audit(site, tiny_checkpoint, tiny_profile, "socm")["state_name"] == "Completed"
        assert int(postgres.ask(database, "SELECT count(*) FROM flow_run WHERE state_type = 'COMPLETED'")) >= 1
