"""Removes credentials from addresses before they are shown, logged or stored."""

from __future__ import annotations

import re

# user:password@ or token@ between the scheme and the host.
CREDENTIALS = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s?#]*@")


def without_credentials(text: str) -> str:
    """The text with every ``scheme://user:password@host`` replaced by ``scheme://host``."""
    return CREDENTIALS.sub(r"\g<scheme>", text)


def has_credentials(text: str) -> bool:
    return CREDENTIALS.search(text) is not None
