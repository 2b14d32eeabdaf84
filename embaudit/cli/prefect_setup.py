"""Prefect as the command line wants it: quiet and private.

Set before Prefect is imported; whatever the user has set in the environment stays as it is.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import click

from embaudit.settings import Settings


def prepare_prefect(*, show_logs: bool) -> None:
    """Set defaults for a run from a terminal. With ``PREFECT_API_URL`` set, runs go to that server."""
    settings = Settings()
    defaults = {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        # The temporary server takes 9 to 16 s on two cores, more on a busy machine.
        "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",
        # A busy SQLite makes the server answer 500 for a moment; Prefect tries again only what it is told to.
        "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500",
        # A server that was set up for embaudit takes 90 s of silence for a dead run; Prefect's default is 180.
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        # The temporary server writes tasks down once a second, and not one by one: its SQLite refused whoever wrote
        # meanwhile, who tried again two seconds later.
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        "TOKENIZERS_PARALLELISM": "true",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    if not os.access(Path.home(), os.W_OK):
        # A container without a home: Prefect would give up waiting for its own server, after two minutes.
        defaults["PREFECT_HOME"] = str((settings.home / "prefect").expanduser().absolute())
    if not show_logs:
        # The console handler only: Prefect's server and UI still get every line.
        defaults["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
        defaults["PREFECT_SERVER_LOGGING_LEVEL"] = "CRITICAL"
        # An event that did not reach the server would be printed whole; that the server is gone is said in a paragraph.
        defaults["PREFECT_LOGGING_INTERNAL_LEVEL"] = "CRITICAL"
    for name, value in defaults.items():
        os.environ.setdefault(name, value)
    if not show_logs:
        logging.getLogger("transformers").setLevel(logging.ERROR)
    _without_heartbeats_to_nobody()


def _without_heartbeats_to_nobody() -> None:
    """Send none to the temporary server that ends with this command: they cost a second at the end of every sub-flow.

    Prefect has no environment variable for that, so that the setting holds until click leaves the command.
    """
    from prefect.settings import PREFECT_API_URL, PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    if not PREFECT_API_URL.value():
        click.get_current_context().with_resource(temporary_settings({PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}))
