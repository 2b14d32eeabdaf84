"""Addresses without the credentials in them: what is shown, logged or stored must not open a door."""

from __future__ import annotations

import re

# user:password@ or token@ between the scheme and the host.
CREDENTIALS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s?#]*@")


def without_credentials(text: str) -> str:
    """The text with ``scheme://user:password@host`` as ``scheme://host``, wherever it stands in it."""
    return CREDENTIALS.sub(r"\g<scheme>", text)


def has_credentials(text: str) -> bool:
    return CREDENTIALS.search(text) is not None
