"""Reads what is small by its nature (settings, cards, passports, lists), but may be a stranger's.

Neither its size nor its nesting is trusted.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The largest that is in use is a tokenizer's vocabulary, of some 35 MB.
MOST_BYTES = 64 << 20
# Of a model card, fields come first.
CARD_BYTES = 1 << 20


def small_bytes(path: Path) -> bytes:
    """A file's content.

    Raises:
        OSError: if it cannot be read, or is larger than such a file can be.
    """
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"it has more than {MOST_BYTES >> 20} MiB, which no such file needs")
    return content


def card_text(path: Path) -> str:
    """A model card, as far as it is read.

    Raises:
        OSError: if it cannot be read.
    """
    with path.open("rb") as file:
        return file.read(CARD_BYTES).decode("utf-8", errors="replace")


def parsed(content: str | bytes, integer: Callable[[str], float] | None = None) -> Any:
    """The content of JSON.

    Args:
        integer: makes a number of an integer's digits.

    Raises:
        ValueError: if it is none, or its lists are nested too deep.
    """
    try:
        return json.loads(content, parse_int=integer)
    except RecursionError as error:
        raise TooDeep("its lists are nested too deep") from error


class TooDeep(ValueError):
    """Lists in lists, deeper than can be read."""
