"""What names on a watch list stand for: files beside it; and addresses that texts may be sent to."""

from __future__ import annotations

from pathlib import Path

from embaudit.embedders.endpoint.client import KEY_VARIABLE
from embaudit.embedders.endpoint.recognise import is_address, is_loopback
from embaudit.words.masking import has_credentials


def require_consent(address: str, send_texts: bool) -> None:
    """Raises:
    ValueError: if texts would be sent to another machine and nobody said so, or an address holds a password."""
    if not is_address(address):
        return
    if has_credentials(address):
        raise ValueError(f"the address has a password: a key is read from {KEY_VARIABLE}")
    if not is_loopback(address) and not send_texts:
        raise ValueError("it is another machine, and texts would be sent there: if that is meant, send_texts = true")


def beside(name: str, folder: Path) -> str:
    """A file or folder beside the list, if there is one; else what the name stands for."""
    if is_address(name):
        return name
    place = folder / Path(name).expanduser()
    return str(place) if place.exists() else name
