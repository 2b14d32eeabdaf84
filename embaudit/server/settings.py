"""Prefect as a command and a call from Python want it: quiet and private.

Set before Prefect is imported; whatever the user has set in the environment stays as it is.
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
    """Prefect's settings for a terminal or a notebook; returns the variables that were not set before."""
    settings = Settings()
    defaults = {
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
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
    new = [name for name in defaults if name not in os.environ]
    os.environ.update((name, defaults[name]) for name in new)
    if not show_logs:
        logging.getLogger("transformers").setLevel(logging.ERROR)
    return new


@contextmanager
def server_for_call(own: dict[Any, Any] | None = None) -> Iterator[None]:
    """Where no server is named, one is started for this process, and ends with it.

    It has no pages to point at. It gets no heartbeats: they cost a second at the end of every sub-flow, and nobody
    would miss them. Prefect has no environment variable for that, so that the settings hold for a block.

    Args:
        own: further settings of Prefect's for the block.
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
            # Its first answer takes 9 to 16 s on two cores, more on a busy machine.
            settings.PREFECT_API_REQUEST_TIMEOUT: 120,
            settings.PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
        }
        with settings.temporary_settings(without_server):
            yield


@contextmanager
def prefect_for_call() -> Iterator[None]:
    """The defaults and the server, in a process that has other work too: afterwards its settings are as they were."""
    logger = logging.getLogger("transformers")
    level = logger.level
    new = set_defaults(show_logs=False)
    try:
        from prefect import settings

        # Prefect may have been imported before, and read its environment then; how it logs is settled by that.
        own = {getattr(settings, name): os.environ[name] for name in new if hasattr(settings, name)}
        with server_for_call(own):
            yield
    finally:
        logger.setLevel(level)
        for name in new:
            os.environ.pop(name, None)
