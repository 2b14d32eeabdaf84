"""Prefect's settings for commands and Python calls: quiet and private.

Set before Prefect is imported; variables set by the user are left alone.

Proxies from the environment: none for this machine itself, and none that cannot be used.

Prefect's client (httpx) opens a transport for every proxy that the environment names, whatever server it talks to.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from inspect import isclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from pydantic import BaseModel

from embaudit.system.files import missing_home
from embaudit.system.settings import Settings
from embaudit.words.errors import UsageError, one_line
from embaudit.words.masking import keep_secrets_of, without_credentials

if TYPE_CHECKING:
    from prefect.settings import Settings as PrefectSettings


LOOPBACK = ("127.0.0.1", "localhost", "::1")
USED_FOR = ("http", "https", "all")
HTTP = ("http", "https")
SOCKS = ("socks5", "socks5h")


def loopback_exempt() -> dict[str, str]:
    """``NO_PROXY`` with this machine's own addresses in it, in both spellings; empty if no proxy is set."""
    proxies = getproxies_environment()
    if not any(proxies.get(name) for name in USED_FOR):
        return {}
    hosts = [host.strip() for host in proxies.get("no", "").split(",") if host.strip()]
    exempt = ",".join([*hosts, *(host for host in LOOPBACK if host not in hosts)])
    return {"NO_PROXY": exempt, "no_proxy": exempt}


def require_usable_proxies() -> None:
    """Refuse a proxy that no request can use.

    Raises:
        UsageError: naming the variable.
    """
    proxies = getproxies_environment()
    for kind in USED_FOR:
        given = proxies.get(kind)
        if not given:
            continue
        names = [name for name in os.environ if name.lower() == f"{kind}_proxy" and os.environ[name] == given]
        name, shown = names[0] if names else f"{kind}_proxy", without_credentials(given)
        # httpx takes an address without a scheme for HTTP.
        address = given if "://" in given else f"http://{given}"
        try:
            scheme, host = urlsplit(address).scheme.lower(), urlsplit(address).hostname
            _ = urlsplit(address).port
        except ValueError:
            scheme, host = "", None
        if scheme in SOCKS and find_spec("socksio") is None:
            raise UsageError(
                f"{name} names a SOCKS proxy ({shown}), which needs the package socksio.",
                next_step=f"pip install socksio, or unset {name}.",
            )
        if scheme not in (*HTTP, *SOCKS) or not host:
            raise UsageError(
                f"{name} is {shown}, which is no proxy that requests can use.",
                next_step=f"Write http://HOST:PORT, https://HOST:PORT or socks5://HOST:PORT, or unset {name}.",
            )


# What of Prefect's settings is about this process, whatever server it talks to.
OF_THE_PROCESS = {"home", "profiles_path", "logging"}


def set_defaults(*, show_logs: bool) -> dict[str, str | None]:
    """Set Prefect's settings for a terminal or notebook; returns what these variables were before.

    Raises:
        UsageError: if the environment names a proxy that cannot be used, or Prefect cannot read its settings.
    """
    require_usable_proxies()
    settings = Settings()
    defaults = {
        **missing_home(),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        # With a busy SQLite the server briefly answers 500; Prefect only retries the given status codes.
        "PREFECT_CLIENT_RETRY_EXTRA_CODES": "500",
        # A server prepared by `setup-server` declares runs dead after 90 s of silence; Prefect's default is 180.
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": "30",
        "TOKENIZERS_PARALLELISM": "true",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    if "HOME" in defaults or not os.access(Path.home(), os.W_OK):
        # In a container without a home directory, Prefect would wait two minutes for its own server and give up.
        defaults["PREFECT_HOME"] = str((settings.home / "prefect").expanduser().absolute())
    if not show_logs:
        # The console handler only: Prefect's server and UI still get every line.
        defaults["PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"] = "CRITICAL"
        # An event that did not reach the server would be printed in full; a lost server is reported separately.
        defaults["PREFECT_LOGGING_INTERNAL_LEVEL"] = "CRITICAL"
    new = {name: value for name, value in defaults.items() if name not in os.environ} | loopback_exempt()
    before = {name: os.environ.get(name) for name in new}
    os.environ.update(new)
    try:
        import prefect.context  # (reads the environment, the profile and files in the current folder)

        set_by_user = prefect.context.get_settings_context().settings
        keep_secrets_of(set_by_user.to_environment_variables(exclude_unset=True, include_secrets=True))
    except ValueError as error:
        # pydantic's, tomllib's and Prefect's own are all of this kind.
        _restore(before)
        raise UsageError(
            f"Prefect cannot read its settings: {one_line(error)}",
            next_step="Correct or unset them: PREFECT_… in the environment, the profile (prefect profile inspect), or "
            "prefect.toml, pyproject.toml and .env in this folder.",
        ) from error
    if not show_logs:
        logging.getLogger("transformers").setLevel(logging.ERROR)
    return before


@contextmanager
def server_for_call() -> Iterator[None]:
    """Start a server for this process if none is configured; it ends with the process.

    It has no UI, and it gets no heartbeats, which cost a second at the end of every sub-flow. Prefect has no
    environment variable for that, so the settings apply within the block. What the user set for a Prefect server of
    their own (credentials, certificates, headers, storage blocks, …) does not: neither side would know the other.
    """
    from prefect import settings
    from prefect.context import SettingsContext, get_settings_context

    if has_server():
        yield
        return
    from embaudit_flows.server.temporary import SECONDS_TO_START, temporary_server

    ours = {
        settings.PREFECT_API_URL: temporary_server(Settings().home).api_url,
        settings.PREFECT_API_REQUEST_TIMEOUT: SECONDS_TO_START,
        settings.PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None,
        settings.PREFECT_CLIENT_RETRY_EXTRA_CODES: "500",
        settings.PREFECT_SERVER_ANALYTICS_ENABLED: False,
    }
    plain = _without_those_of_a_server(settings.get_current_settings())
    with SettingsContext(profile=get_settings_context().profile, settings=plain), settings.temporary_settings(ours):
        yield


def has_server() -> bool:
    """Whether runs are reported to a server that is configured, where people may watch them."""
    from prefect.settings import PREFECT_API_URL

    return bool(PREFECT_API_URL.value())


@contextmanager
def defaults_for_call() -> Iterator[None]:
    """Defaults for a process with other work: its settings are restored afterwards."""
    logger = logging.getLogger("transformers")
    level = logger.level
    before = set_defaults(show_logs=False)
    try:
        from prefect import settings

        # If Prefect was imported before, it has already read its environment and set up logging.
        own = {getattr(settings, name): os.environ[name] for name in before if hasattr(settings, name)}
        with settings.temporary_settings(own):
            yield
    finally:
        logger.setLevel(level)
        _restore(before)


def _restore(before: dict[str, str | None]) -> None:
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _without_those_of_a_server(current: PrefectSettings) -> PrefectSettings:
    """These settings with Prefect's own defaults wherever they are not about this process alone.

    (``temporary_settings(restore_defaults=…)`` would merge a default that is an empty dictionary with what was set.)
    """
    kept = current.model_dump(include=OF_THE_PROCESS, exclude_unset=True)
    plain: PrefectSettings = type(current).model_validate(_defaults(type(current)) | kept)
    return plain


def _defaults(model: type[BaseModel]) -> dict[str, Any]:
    """Every default, so that no environment, profile or file is asked; without those that follow from others."""
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isclass(kind) and issubclass(kind, BaseModel):
            found[name] = _defaults(kind)
        elif not field.default_factory_takes_validated_data:
            found[name] = field.get_default(call_default_factory=True)
    return found
