"""What a hostile pickle does: a call, made when it is read the wrong way."""

from __future__ import annotations

from typing import Any


class Calls:
    """Pickles a call, as an attacker would."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._made = function, arguments

    def __reduce__(self) -> Any:
        return self._made
