"""An answer of a server, and how large and late it may be: what follows from the question, not from the server.

A stranger's server may send a vector of a hundred million numbers, a gzip bomb, a byte a minute or lists in lists
without end. Nothing of that is read to its end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from embaudit.system.small_files import parsed
from embaudit.words.errors import MAX_REASON
from embaudit.words.masking import masked

# Numbers of one vector. The largest that is served today has 12 288.
MOST_NUMBERS = 32_768
# Of one number: 17 digits, sign, point, exponent, comma and the white space of an indented list.
NUMBER_BYTES = 32
# For what stands around the vectors, and for all of an answer without any: a list of models, an error.
AROUND_BYTES = 1 << 20
LIST_BYTES = 8 << 20
# A float of more digits is infinite; Python refuses to read an integer of more than 4300.
MOST_DIGITS = 400
REDIRECTS = (301, 302, 303, 307, 308)


class Endless(Exception):
    """An answer that is larger, or takes longer, than what was asked for can need; the message says which.

    Attributes:
        is_late: whether it took too long.
        has_begun: whether some of it came.
    """

    def __init__(self, reason: str, *, is_late: bool = False, has_begun: bool = True) -> None:
        super().__init__(reason)
        self.is_late = is_late
        self.has_begun = has_begun


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        headers: with names in lower case.
        body: decoded; of an error, the beginning.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Its content; an integer that is no float is infinite, as such a decimal number is.

        Raises:
            ValueError: if it is no JSON, or its lists are nested too deep.
        """
        return parsed(self.body, _integer)

    @property
    def said(self) -> str:
        """A server's own words, in one line."""
        content: Any
        try:
            content = self.json()
        except ValueError:
            content = self.body.decode("utf-8", errors="replace")
        if isinstance(content, dict):
            content = content.get("error", content.get("message", content.get("detail", content)))
        if isinstance(content, dict):
            content = content.get("message", content)
        try:
            words = str(content)
        except RecursionError:
            words = ""
        # Masked before it is cut.
        return " ".join(masked(words).split())[:MAX_REASON] or "no reason given"

    @property
    def elsewhere(self) -> str | None:
        """Where it sends the caller, in one line; None if this is no redirect."""
        if self.status not in REDIRECTS:
            return None
        return masked(self.headers.get("location", ""))[:MAX_REASON] or "nowhere"

    @property
    def wait(self) -> float | None:
        """Seconds in Retry-After; None if it is not there, or a date."""
        try:
            return max(0.0, float(self.headers.get("retry-after", "")))
        except ValueError:
            return None


def most_bytes(texts: int) -> int:
    """Of an answer with the vectors of so many texts."""
    return AROUND_BYTES + texts * MOST_NUMBERS * NUMBER_BYTES


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= MOST_DIGITS else math.copysign(math.inf, -1 if digits[0] == "-" else 1)
