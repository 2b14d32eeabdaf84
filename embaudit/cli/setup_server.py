"""``embaudit setup-server``: what a Prefect server needs before the deployments."""

from __future__ import annotations

import click

from embaudit.server.settings import set_defaults


@click.command("setup-server")
@click.option(
    "--gpu-slots",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Measures that may use GPUs at the same time, over all workers.",
)
def setup_server(gpu_slots: int) -> None:
    """Prepare the Prefect server that PREFECT_API_URL names: work pool, GPU limit, an end for dead runs.

    May be run again: what is there is brought to what is asked for. Then: prefect deploy --all
    """
    set_defaults(show_logs=False)
    from embaudit_flows.server import set_up_server

    for line in set_up_server(gpu_slots):
        click.echo(line)
