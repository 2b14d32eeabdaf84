"""Prefect's settings for commands and Python calls: quiet and private.

Set before Prefect is imported; variables set by the user are left alone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from embaudit.settings import Settings


def set_defaults(*, show_logs: bool) -> list[str]:
    """Set Prefect's settings for a terminal or notebook; returns the variables that were not set before."""
    settings = Settings()
    defaults = {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        # With a busy SQLite the server briefly answers 500; Prefect only retries the given status codes.
        "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500",
        # A server prepared by `setup-server` declares runs dead after 90 s of silence; Prefect's default is 180.
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        # The temporary server writes task runs once a second instead of one by one: with SQLite, concurrent writers
        # were rejected and only retried two seconds later.
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
        "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
        "TOKENIZERS_PARALLELISM": "true",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    if not os.access(Path.home(), os.W_OK):
        # In a container without a home directory, Prefect would wait two minutes for its own server and give up.
        defaults["PREFECT_HOME"] = str((settings.home / "prefect").expanduser().absolute())
    if not show_logs:
        # The console handler only: Prefect's server and UI still get every line.
        defaults["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
        defaults["PREFECT_SERVER_LOGGING_LEVEL"] = "CRITICAL"
        # An event that did not reach the server would be printed in full; a lost server is reported separately.
        defaults["PREFECT_LOGGING_INTERNAL_LEVEL"] = "CRITICAL"
    new = [name for name in defaults if name not in os.environ]
    os.environ.update((name, defaults[name]) for name in new)
    if not show_logs:
        logging.getLogger("transformers").setLevel(logging.ERROR)
    return new


@contextmanager
def server_for_call(own: dict[Any, Any] | None = None) -> Iterator[None]:
    """Start a server for this process if none is configured; it ends with the process.

    It has no UI, and it gets no heartbeats, which cost a second at the end of every sub-flow. Prefect has no
    environment variable for that, so the settings apply within the block.

    Args:
        own: further Prefect settings for the block.
    """
    from prefect import settings

    with settings.temporary_settings(own or {}):
        if settings.PREFECT_API_URL.value():
            yield
            return
        from embaudit.server.temporary import temporary_server

        without_server = {
            settings.PREFECT_API_URL: temporary_server().api_url,
            settings.PREFECT_UI_URL: "",
            # The server takes 9 to 16 s to answer on two cores, more on a busy machine.
            settings.PREFECT_API_REQUEST_TIMEOUT: 120,
            settings.PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
        }
        with settings.temporary_settings(without_server):
            yield


@contextmanager
def prefect_for_call() -> Iterator[None]:
    """Defaults and server for a process with other work: its settings are restored afterwards."""
    logger = logging.getLogger("transformers")
    level = logger.level
    new = set_defaults(show_logs=False)
    try:
        from prefect import settings

        # If Prefect was imported before, it has already read its environment and set up logging.
        own = {getattr(settings, name): os.environ[name] for name in new if hasattr(settings, name)}
        with server_for_call(own):
            yield
    finally:
        logger.setLevel(level)
        for name in new:
            os.environ.pop(name, None)
