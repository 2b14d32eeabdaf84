"""A night that nobody starts: from the lock, a schedule becomes runs, a worker takes one, and people are called.

Runs that somebody starts by hand work while a server's scheduler dies every minute, so nothing here is started by hand
but what is killed.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ports import free_port
from site_of_ones_own import Site, commands_under, kill_all, new_site, wait_until
from webhook import Listener

pytestmark = pytest.mark.slow

BLOCK = (
    "python -c 'from prefect.blocks.notifications import CustomWebhookNotificationBlock as Block; "
    'Block(name="ops", url="{url}", method="POST", json_data={{"title": "{{{{subject}}}}", "text": "{{{{body}}}}"}})'
    '.save("ops")\''
)


@pytest.fixture
def hook() -> Iterator[Listener]:
    server = Listener(200)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def nights(site: Site, **chosen: Any) -> list[dict[str, Any]]:
    """The runs of the watch, the newest first."""
    found: list[dict[str, Any]] = site.ask(
        "flow_runs/filter", {"flows": {"name": {"any_": ["watch"]}}, "sort": "START_TIME_DESC", "flow_runs": chosen}
    )
    return found


def calls(hook: Listener, beginning: str) -> list[dict[str, str]]:
    return [post for _, post in hook.posts if post["title"].startswith(beginning)]


def test_a_stranger_s_first_night(tmp_path: Path, hook: Listener, tiny_checkpoint: Path) -> None:
    home = tmp_path / ".embaudit"
    home.mkdir()
    missing = tmp_path / "index.parquet"
    # Nobody has trained the checkpoint.
    listed = f'[settings]\nmeasures = ["integrity"]\ndevice = "cpu"\n[[folder]]\npath = "{tiny_checkpoint}"\n'
    (home / "watch.toml").write_text(f'{listed}[[index]]\nstore = "{missing}"\nfunction = "{tiny_checkpoint}"\n')
    with new_site(tmp_path, free_port()) as site:
        server, configure, *_ = commands_under("One machine: five commands")
        site.start(server, "server.log")
        wait_until(lambda: site.ask("health"), 240)
        site.shell(configure)
        # The page's two commands, with a webhook on this machine.
        _, notify = commands_under("Who is called")
        site.shell(BLOCK.format(url=hook.url))
        said = site.shell(notify.replace("slack-webhook", "custom-webhook"))
        assert "a first message was sent" in said
        assert [post["title"] for _, post in hook.posts] == ["embaudit: set up"]
        site.shell("prefect --no-prompt deploy --all")
        assert wait_until(lambda: site.ask("flow_runs/count", {}), 120) > 0, "a schedule becomes runs"
        # No worker polls yet, and doctor says so.
        assert "none polls the pool embaudit" in site.shell("embaudit doctor")
        site.shell("prefect deployment schedule create watch/nightly --cron '* * * * *'")
        worker = site.start("embaudit worker", "worker.log")

        run = wait_until(
            lambda: [one for one in nights(site) if one["auto_scheduled"] and one["state_type"] == "FAILED"], 240
        )[0]
        assert run["state_name"] == "Do not serve"
        assert f"There is no file or folder {missing}" in run["state"]["message"]
        warnings = {"logs": {"flow_run_id": {"any_": [run["id"]]}, "level": {"ge_": 30, "le_": 30}}}
        # The run sends its log in batches.
        wait_until(
            lambda: [line for line in site.ask("logs/filter", warnings) if line["message"].startswith("Index gone: ")],
            60,
        )
        called = wait_until(lambda: calls(hook, "Watch of "), 60)[0]
        assert "do not serve" in called["title"]
        assert "Index gone" in called["text"]
        assert calls(hook, "Audit of ") == [], "nobody is called twice"
        healthy = site.shell("embaudit doctor")
        for said in ("runs are scheduled; the next is nightly", "1 polls the pool", "custom-webhook/ops is called"):
            assert said in healthy, healthy
        query = f"embaudit query --warehouse {home}/warehouse.duckdb"
        assert "Index gone" in site.shell(f"{query} nights")
        site.shell(f"embaudit accept {tiny_checkpoint} --reason random --by me --warehouse {home}/warehouse.duckdb")
        # Nobody but the first schedule goes on.
        site.shell("prefect --no-prompt deployment schedule clear watch/nightly -y")
        (home / "watch.toml").write_text(listed)
        site.shell("prefect deployment run watch/nightly --watch")

        # Killed in the middle; a second night waits for its place, and is late, since no worker is left.
        hook.posts.clear()
        site.shell("prefect deployment run watch/nightly")
        wait_until(lambda: nights(site, state={"name": {"any_": ["Running"]}}), 120)
        kill_all(worker)
        site.shell("prefect deployment run watch/nightly")
        assert (
            "is Crashed"
            in wait_until(lambda: [one for one in calls(hook, "embaudit: ") if "Crashed" in one["title"]], 240)[0][
                "title"
            ]
        )
        late = wait_until(lambda: [one for one in calls(hook, "embaudit: ") if "late" in one["title"]], 120)[0]
        assert "embaudit worker" in late["text"]
        site.start("embaudit worker", "second-worker.log")
        # The one that was accepted, and the one that waited: its worker's place is free again.
        wait_until(lambda: len(nights(site, state={"name": {"any_": ["Completed"]}})) == 2, 300)

        # A night that does not happen.
        site.shell(f"{notify.replace('slack-webhook', 'custom-webhook')} --night-hours 0.004")
        assert wait_until(lambda: calls(hook, "embaudit: no night ran"), 120)
        log = (tmp_path / "server.log").read_text()
        assert "InvalidRequestError" not in log
        assert "Run is already in terminal state" not in log, "who ends under a name of its own is not dead"
