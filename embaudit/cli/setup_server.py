"""``embaudit setup-server``: prepare a Prefect server for the deployments."""

from __future__ import annotations

from datetime import timedelta

import click

from embaudit_flows.server.settings import set_defaults


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
