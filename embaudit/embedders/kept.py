"""Keeps the vectors that an endpoint gave, so that a repeated or interrupted command asks for nothing twice.

A hosted model is paid for, and slow. Its vectors lie in ``HOME/functions``, a file of SQLite for each function, by role
and by the hash of the text: no text is written. Each request's vectors are there wholly or not at all. A hosted model
may change behind its name, so whatever asks whether it is *still* the same asks ``live``.

How long it takes until an endpoint has answered all that it is asked, from how long its answers took until now.

Some servers take as long for a request whatever is in it, others for each token: both are told from the answers.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from embaudit.embedders.endpoint.client import Endpoint
from embaudit.embedders.function import Answers, EmbeddingFunction
from embaudit.words.errors import StorageError, one_line

if TYPE_CHECKING:
    from embaudit.checkpoint import TextKind

# Texts that are handed over together where the function does not say.
TOGETHER = 32
BUSY_SECONDS = 30.0
FOLDER = "functions"
SCHEMA = """
CREATE TABLE IF NOT EXISTS vector (
    role TEXT NOT NULL, text BLOB NOT NULL, dtype TEXT NOT NULL, numbers BLOB NOT NULL, asked REAL NOT NULL,
    PRIMARY KEY (role, text)
) WITHOUT ROWID
"""


class VectorCache(EmbeddingFunction):
    """A function that is asked only for what it was not asked for before.

    Args:
        home: the folder of results.
        fresh: forget what is kept.
        told: is called after each request: what is asked for, how many texts of it are done, and of how many.
    """

    def __init__(
        self,
        function: EmbeddingFunction,
        home: Path,
        *,
        fresh: bool = False,
        told: Callable[..., None] | None = None,
    ) -> None:
        self._function, self.told = function, told
        self.knows_what(function)
        self.path = home / FOLDER / f"{hashlib.sha256(function.asked_as.encode()).hexdigest()[:16]}.sqlite"
        if fresh:
            self.path.unlink(missing_ok=True)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._open()) as kept:
                kept.execute(SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise self._broken(error) from error

    @property
    def live(self) -> EmbeddingFunction:
        return self._function

    @property
    def requests(self) -> int:  # type: ignore[override]
        return self._function.requests

    def encode(
        self, texts: Sequence[str], role: TextKind = "text", *, most: int | None = None, at_once: int = 1
    ) -> Answers:
        """The kept vectors, and those of the other texts, which are kept as they come. Failures are asked for again."""
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        rows: dict[bytes, np.ndarray] = {}
        failures: dict[int, str] = {}
        try:
            with closing(self._open()) as kept:
                rows = self._known(kept, role, keys)
                new = [place for place, key in enumerate(keys) if key not in rows]
                # Of texts that stand twice, the first; a failure is told for each of them.
                new = list({keys[place]: place for place in reversed(new)}.values())[::-1]
                together = (most or TOGETHER) * at_once
                for start in range(0, len(new), together):
                    some = new[start : start + together]
                    found = self._function.encode([texts[place] for place in some], role, most=most, at_once=at_once)
                    answered = {keys[place]: row for place, row in zip(some, found.vectors, strict=True)}
                    failed = {keys[some[place]]: why for place, why in found.failures.items()}
                    failures |= {place: failed[key] for place, key in enumerate(keys) if key in failed}
                    rows |= answered
                    good = {key: row for key, row in answered.items() if np.isfinite(row).all() and len(row)}
                    self._keep(kept, role, good)
                    if self.told is not None:
                        self.told(f"texts asked of {self.name}", min(start + together, len(new)), len(new))
        except sqlite3.Error as error:
            raise self._broken(error) from error
        widths = [len(row) for row in rows.values() if np.isfinite(row).any()]
        usual = max(set(widths), key=widths.count, default=0)
        vectors = np.full((len(texts), usual), np.nan)
        for place, key in enumerate(keys):
            if len(rows[key]) == usual:
                vectors[place] = rows[key]
            elif place not in failures:
                failures[place] = f"a vector of {len(rows[key])} numbers, where others have {usual}"
        self.dimension = self.dimension or usual or None
        return Answers(vectors, failures)

    def alike(self, role: TextKind) -> TextKind:
        return self._function.alike(role)

    def encode_base64(self, texts: Sequence[str]) -> Answers | None:
        return self._function.encode_base64(texts)

    def count_kept(self, texts: Sequence[str], role: TextKind = "text") -> int:
        """How many of these texts have a vector already."""
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        with closing(self._open()) as kept:
            return len(self._known(kept, role, keys))

    def close(self) -> None:
        self._function.close()

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=BUSY_SECONDS)

    def _known(self, kept: sqlite3.Connection, role: TextKind, keys: Sequence[bytes]) -> dict[bytes, np.ndarray]:
        found = {}
        for key in dict.fromkeys(keys):
            row = kept.execute("SELECT dtype, numbers FROM vector WHERE role = ? AND text = ?", (role, key)).fetchone()
            if row is not None:
                found[key] = np.frombuffer(row[1], dtype=row[0]).astype(np.float64)
        return found

    def _keep(self, kept: sqlite3.Connection, role: TextKind, rows: dict[bytes, np.ndarray]) -> None:
        now = time.time()
        with kept:
            kept.executemany(
                "INSERT OR REPLACE INTO vector VALUES (?, ?, ?, ?, ?)",
                [(role, key, *_written(row), now) for key, row in rows.items()],
            )

    def _broken(self, error: Exception) -> StorageError:
        return StorageError(
            f"Vectors of {self.name} cannot be kept in {self.path}: {one_line(error)}",
            kept="What was kept before is unchanged.",
            next_step="Free some space, or forget what is kept: --fresh",
        )


def _written(row: np.ndarray) -> tuple[str, bytes]:
    """As float32 if nothing is lost."""
    with np.errstate(over="ignore"):
        short = row.astype("<f4")
    return ("<f4", short.tobytes()) if (short == row).all() else ("<f8", row.astype("<f8").tobytes())


# OpenAI's own rule of thumb for English.
LETTERS_IN_A_TOKEN = 4


def cost_line(function: EmbeddingFunction, texts: Sequence[str], more: str = "", role: TextKind = "text") -> str:
    """What asking for these texts will send, in a line.

    Args:
        more: what else is sent, as the end of the sentence.
    """
    distinct = list(dict.fromkeys(texts))
    known = function.count_kept(distinct, role) if isinstance(function, VectorCache) else 0
    tokens = sum(map(len, distinct)) / LETTERS_IN_A_TOKEN
    kept = f"; {known:,} of these are kept from before" if known else ""
    return (
        f"{function.name} is asked for {len(distinct):,} texts, about {tokens:,.0f} tokens in "
        f"{-(-len(distinct) // TOGETHER):,} requests{kept}{', ' if more else ''}{more}."
    )


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
