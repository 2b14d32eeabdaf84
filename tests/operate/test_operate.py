"""docs/operate.md, command by command: a real server, its deployments, a worker, an audit, and the pages of the UI."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from postgres_server import USER, Postgres, free_port
from site_of_ones_own import Site, commands_under, kill_all, new_site, toml_under, wait_until

pytestmark = pytest.mark.slow


def set_up(site: Site, heading: str) -> None:
    """Type the five commands; the last one stays."""
    *commands, worker = commands_under(heading)[:5]
    for command in commands:
        if command.endswith("&"):
            site.start(command, "server.log")
            wait_until(lambda: site.ask("health"), 120)
        else:
            site.shell(command)
    assert worker == "embaudit worker"
    site.start(worker, "worker.log")
    wait_until(lambda: site.ask("work_pools/embaudit/workers/filter", {}), 120)


def run_audit(site: Site, checkpoint: Path, profile: Path, *measures: str) -> dict[str, Any]:
    """Run the on-demand deployment as the page says, on a small checkpoint; returns the flow run."""
    (command,) = [line for line in commands_under("One machine: five commands") if "deployment run" in line]
    command = command.replace("packaged:all-MiniLM-L6-v2", str(checkpoint))
    site.shell(f"{command} --param profile={profile} --param 'measures={json.dumps(measures)}'")
    (run,) = runs_called(site, "audit ")
    return run


def runs_called(site: Site, beginning: str) -> list[dict[str, Any]]:
    """The flow runs whose names begin so, the newest first."""
    runs = site.ask("flow_runs/filter", {"sort": "START_TIME_DESC"})
    return [run for run in runs if run["name"].startswith(beginning)]


def test_one_machine(tmp_path: Path, tiny_checkpoint: Path, tiny_profile: Path) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("needs chromium (apt-get install chromium), which is not here")
    with new_site(tmp_path, free_port()) as site:
        set_up(site, "One machine: five commands")
        run = run_audit(site, tiny_checkpoint, tiny_profile, "sticky", "socm")
        assert run["state_name"] == "Completed"
        of_run = {"flow_runs": {"id": {"any_": [run["id"]]}}}
        tasks = {task["name"].rsplit("-", 1)[0] for task in site.ask("task_runs/filter", of_run)}
        assert {"check tables", "publish"} <= tasks
        artifacts = site.ask("artifacts/latest/filter", {})
        assert {"audit-summary", "socm-summary", "sticky-summary"} <= {one["key"] for one in artifacts}
        assert [one for one in site.ask("artifacts/filter", {}) if one["type"] == "progress" and one["data"] == 100.0]
        # The worker's results lie where it was started, and a terminal there finds them.
        assert (tmp_path / ".embaudit" / "warehouse.duckdb").is_file()
        assert "SOCM" in site.shell(f"embaudit show --warehouse {tmp_path}/.embaudit/warehouse.duckdb")

        picture = Path(os.environ.get("EMBAUDIT_DOCS_PICTURE", tmp_path / "run.png"))
        page = site.page(f"runs/flow-run/{run['id']}", "Completed", picture)
        assert "Completed" in page
        assert "Task runs" in page
        assert picture.stat().st_size > 20_000
        assert "audit-summary" in site.page("artifacts", "audit-summary")
        deployments = site.page("deployments", "nightly")
        for name in ("on-demand", "nightly", "weekly", "maintenance"):
            assert name in deployments, deployments
        assert "without a heartbeat" in site.page("automations", "without a heartbeat")


def test_the_nightly_watch_and_a_worker_that_dies(tmp_path: Path, tiny_checkpoint: Path, tiny_profile: Path) -> None:
    (tmp_path / ".embaudit").mkdir()
    (written,) = toml_under("What is deployed")
    for shown, real in {
        '"quick"': f'"{tiny_profile}"\nmeasures = ["socm"]',
        "/models/candidates": tiny_checkpoint.parent,
    }.items():
        assert shown in written
        written = written.replace(shown, str(real))
    (tmp_path / ".embaudit" / "watch.toml").write_text(written)
    with new_site(tmp_path, free_port()) as site:
        set_up(site, "One machine: five commands")
        (nightly,) = commands_under("What is deployed")
        site.shell(nightly)
        (watched,) = runs_called(site, "watch ")
        assert watched["state_name"] == "Completed"
        (audited,) = runs_called(site, "audit ")
        assert audited["state_name"] == "Completed"
        # Again, the next night: seen, and not audited.
        site.shell(nightly)
        assert len(runs_called(site, "watch ")) == 2
        assert len(runs_called(site, "audit ")) == 1

        # The machine dies while it audits something: nobody but the automation can say so.
        site.shell(f"prefect deployment run audit/on-demand --param checkpoint={tiny_checkpoint}")
        running = wait_until(
            lambda: [run for run in runs_called(site, "audit ") if run["state_name"] == "Running"], 120
        )
        kill_all(site.started[-1])
        name = running[0]["name"]
        crashed = wait_until(lambda: [run for run in runs_called(site, name) if run["state_name"] == "Crashed"], 240)
        assert "heartbeat" in site.ask(f"flow_runs/{crashed[0]['id']}")["state"]["message"]


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
