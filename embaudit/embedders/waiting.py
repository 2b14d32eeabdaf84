"""How long it takes until an endpoint has answered all that it is asked, from how long its answers took until now.

Some servers take as long for a request whatever is in it, others for each token: both are told from the answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from embaudit.embedders.endpoint.client import Endpoint
from embaudit.embedders.function import EmbeddingFunction
from embaudit.embedders.kept import VectorCache

# Of so many answers, the time of the others is told; and of characters, if it is so many times as large as its error.
FEWEST, CLEARLY = 8, 3


@dataclass
class RequestPlan:
    """What an endpoint is asked for, and how much of it is done.

    Attributes:
        requests, characters: expected, all together.
        last: when the last answer came, or it began, by the clock of ``time.monotonic``.
        done: of each answer until now, the characters that were sent for it, and the seconds since the one before: what
            is computed here meanwhile is part of these, and several requests on their way at a time share them.
    """

    requests: int
    characters: int
    last: float
    done: list[tuple[int, float]] = field(default_factory=list)

    def answered(self, characters: int) -> None:
        now = time.monotonic()
        self.done.append((characters, now - self.last))
        self.last = now

    @property
    def left(self) -> float | None:
        """Seconds; None as long as too few answers have come."""
        if len(self.done) < FEWEST:
            return None
        characters, seconds = np.array(self.done, dtype=float).T
        requests_left = max(0, self.requests - len(self.done))
        characters_left = max(0.0, self.characters - characters.sum())
        for_each, for_a_character = _line(characters, seconds)
        return requests_left * for_each + characters_left * for_a_character


def _line(characters: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """Seconds for a request and for a character, neither of them negative, that fit the answers best."""
    slope, error = 0.0, 0.0
    if characters.std():
        slope = float(np.cov(characters, seconds, bias=True)[0, 1] / characters.var())
        rest = seconds - seconds.mean() - slope * (characters - characters.mean())
        error = float(rest.std() / (characters.std() * np.sqrt(len(seconds))))
    # Texts of thousands of characters are told from some of ten: a guess would become minutes.
    if slope <= CLEARLY * error:
        # Some were on their way together, and came soon after each other.
        return float(np.median(seconds)), 0.0
    for_each = float(seconds.mean() - slope * characters.mean())
    if for_each < 0:
        return 0.0, float(seconds.sum() / characters.sum())
    return for_each, slope


@contextmanager
def told_as_one(function: EmbeddingFunction, plan: Callable[[], RequestPlan]) -> Iterator[None]:
    """While this lasts, whoever waits for an endpoint is told of one plan, not of each part of it.

    Args:
        plan: is made if somebody waits.
    """
    live = function.live
    if not (isinstance(function, VectorCache) and isinstance(live, Endpoint) and function.told is not None):
        yield
        return
    told, planned = function.told, plan()

    def answered(characters: int) -> None:
        planned.answered(characters)
        done, left = len(planned.done), planned.left
        if left is not None:
            told(f"requests to {function.name}", done, max(done, planned.requests), left)

    function.told, live.answered = None, answered
    try:
        yield
    finally:
        function.told, live.answered = told, None
