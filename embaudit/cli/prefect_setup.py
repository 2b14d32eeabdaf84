"""Prefect for a command that runs flows; the settings apply until click leaves the command."""

from __future__ import annotations

import click

from embaudit_flows.server.settings import server_for_call, set_defaults


def prepare_prefect(*, show_logs: bool) -> None:
    """Run flows on the server at ``PREFECT_API_URL``, or on a temporary one."""
    set_defaults(show_logs=show_logs)
    click.get_current_context().with_resource(server_for_call())
