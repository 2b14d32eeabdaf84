"""``embaudit worker``: Prefect's own process worker, started where its results will last."""

from __future__ import annotations

import os
import signal
import sys

import click

from embaudit.masking import without_credentials
from embaudit.server.settings import set_defaults
from embaudit.settings import Settings


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def worker(options: tuple[str, ...]) -> None:
    """Run audits that a Prefect server hands out: `prefect worker start --pool embaudit`, with lasting places.

    A worker's runs begin in temporary folders. So EMBAUDIT_HOME and the records of finished tasks become absolute
    paths here, and an audit from a terminal and one from a worker on this machine share everything that is done.
    OPTIONS go to Prefect as they are: --limit 1, --name gpu-3.
    """
    set_defaults(show_logs=True)
    os.environ["EMBAUDIT_HOME"] = str(Settings().home.expanduser().absolute())
    from embaudit_flows.server import WORK_POOL, require_server

    url = require_server()
    click.echo(f"Working for {without_credentials(url)}; results go to {os.environ['EMBAUDIT_HOME']}.")
    sys.stdout.flush()
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", WORK_POOL, *options]
    # A script's `embaudit worker &` ignores SIGINT, which is what Prefect's worker sends itself on SIGTERM (3.8.8): it
    # would stay until a second one, which Prefect answers with SIGKILL.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(sys.executable, command)
