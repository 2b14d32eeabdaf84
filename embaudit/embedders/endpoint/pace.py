"""Keeps to a number of requests a minute, whichever thread sends them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

MINUTE = 60.0


class Pace:
    """Says when the next request may be sent: evenly spread, so that no window of a minute has more.

    Args:
        per_minute: None for as many as are sent.
    """

    def __init__(
        self,
        per_minute: int | None,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._apart = MINUTE / per_minute if per_minute else 0.0
        self._now, self._sleep = now, sleep
        self._next = 0.0
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Return when the caller's turn has come."""
        if not self._apart:
            return
        with self._lock:
            turn = max(self._next, self._now())
            self._next = turn + self._apart
        self._sleep(max(0.0, turn - self._now()))
