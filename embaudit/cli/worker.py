"""``embaudit worker``: start Prefect's process worker with absolute paths for its results."""

from __future__ import annotations

import os
import signal
import sys

import click

from embaudit.system.settings import Settings
from embaudit.words.masking import without_credentials
from embaudit_flows.server.settings import set_defaults


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
