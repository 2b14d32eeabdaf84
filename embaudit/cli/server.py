"""``embaudit setup-server``: prepare a Prefect server for the deployments.

``embaudit worker``: start Prefect's process worker with absolute paths for its results.

Prefect for a command that runs flows; the settings apply until click leaves the command.
"""

from __future__ import annotations

import os
import signal
import sys
from datetime import timedelta

import click

from embaudit.system.settings import Settings
from embaudit.words.masking import without_credentials
from embaudit_flows.server.settings import server_for_call, set_defaults


@click.command("setup-server")
@click.option(
    "--gpu-slots",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many measures may use GPUs at once, over all workers.",
)
@click.option(
    "--notify",
    metavar="BLOCK",
    help="Prefect notification block that is called whenever something is wrong, such as slack-webhook/ops.",
)
@click.option(
    "--night-hours",
    type=click.FloatRange(min=0.003),
    default=25.0,
    show_default=True,
    help="Hours without a run of watch/nightly after which it is called.",
)
def setup_server(gpu_slots: int, notify: str | None, night_hours: float) -> None:
    """Prepare the Prefect server at PREFECT_API_URL: work pool, GPU limit, cleanup of dead runs, and whom to call.

    Can be run again to update them. Then run: prefect deploy --all
    """
    set_defaults(show_logs=False)
    from embaudit_flows.server.set_up import set_up_server

    for line in set_up_server(gpu_slots, notify, timedelta(hours=night_hours)):
        click.echo(line)


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[PREFECT-OPTIONS]...")
def worker(options: tuple[str, ...]) -> None:
    """Run audits scheduled by a Prefect server: `prefect worker start --pool embaudit` with absolute paths.

    A worker's runs start in temporary folders. EMBAUDIT_HOME and the records of finished tasks are therefore made
    absolute, so that audits from a terminal and from workers on this machine share their results. PREFECT-OPTIONS are
    passed on: --limit 1, --name gpu-3.
    """
    set_defaults(show_logs=True)
    os.environ["EMBAUDIT_HOME"] = str(Settings().home.expanduser().absolute())
    from embaudit_flows.server.set_up import WORK_POOL, require_server

    url = require_server()
    click.echo(f"Working for {without_credentials(url)}; results go to {os.environ['EMBAUDIT_HOME']}.")
    sys.stdout.flush()
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", WORK_POOL, *options]
    # `embaudit worker &` in a script ignores SIGINT, which Prefect's worker (3.8.8) sends itself on SIGTERM: it would
    # keep running until a second SIGTERM, to which Prefect responds with SIGKILL.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(sys.executable, command)


def prepare_prefect(*, show_logs: bool) -> None:
    """Run flows on the server at ``PREFECT_API_URL``, or on a temporary one."""
    set_defaults(show_logs=show_logs)
    click.get_current_context().with_resource(server_for_call())
