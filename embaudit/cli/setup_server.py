"""``embaudit setup-server``: prepare a Prefect server for the deployments."""

from __future__ import annotations

import click

from embaudit.server.settings import set_defaults


@click.command("setup-server")
@click.option(
    "--gpu-slots",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many measures may use GPUs at once, over all workers.",
)
def setup_server(gpu_slots: int) -> None:
    """Prepare the Prefect server at PREFECT_API_URL: work pool, GPU limit, and automatic cleanup of dead runs.

    Can be run again to update them. Then run: prefect deploy --all
    """
    set_defaults(show_logs=False)
    from embaudit_flows.server import set_up_server

    for line in set_up_server(gpu_slots):
        click.echo(line)
