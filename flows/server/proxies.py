"""Proxies from the environment: none for this machine itself, and none that cannot be used.

Prefect's client (httpx) opens a transport for every proxy that the environment names, whatever server it talks to.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

from embaudit.words.errors import UsageError
from embaudit.words.masking import without_credentials

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
