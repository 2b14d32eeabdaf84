"""The rows that were found until now, kept so that an interrupted comparison of every row goes on where it stopped."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from embaudit.stores.store import Store
from embaudit.words.errors import StorageError, one_line

# Its number from 1, its id, 1 − cosine, its text.
Row = tuple[int, str | None, float, str]
SCHEMA = """
CREATE TABLE IF NOT EXISTS found (row INTEGER PRIMARY KEY, id TEXT, apart REAL NOT NULL, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS progress (read INTEGER NOT NULL, compared INTEGER NOT NULL);
INSERT INTO progress SELECT 0, 0 WHERE NOT EXISTS (SELECT * FROM progress);
"""


class FoundRows:
    """Rows that differ, and how far the comparison came.

    Args:
        path: a file of SQLite; None to keep nothing beyond this process.

    Attributes:
        read: rows of the index that are done.
        compared: how many of them had a text and a vector.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._kept = sqlite3.connect(path or ":memory:")
            self._kept.executescript(SCHEMA)
            self.read, self.compared = self._kept.execute("SELECT read, compared FROM progress").fetchone()
        except (OSError, sqlite3.Error) as error:
            raise self._broken(error) from error

    def add(self, rows: Sequence[Row], read: int, compared: int) -> None:
        """Note that the comparison came to a row, and what it found since: both or, if it is cut off here, neither."""
        try:
            with self._kept:
                self._kept.executemany("INSERT OR REPLACE INTO found VALUES (?, ?, ?, ?)", rows)
                self._kept.execute("UPDATE progress SET read = ?, compared = ?", (read, self.compared + compared))
        except sqlite3.Error as error:
            raise self._broken(error) from error
        self.read, self.compared = read, self.compared + compared

    @property
    def count(self) -> int:
        return int(self._kept.execute("SELECT count(*) FROM found").fetchone()[0])

    def rows(self, most: int = -1) -> Iterator[Row]:
        """In the order of the index; the first ones, or all."""
        yield from self._kept.execute("SELECT * FROM found ORDER BY row LIMIT ?", (most,))

    def forget(self) -> None:
        """The comparison is done: the next one begins anew."""
        self._kept.close()
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        self._kept.close()

    def _broken(self, error: Exception) -> StorageError:
        return StorageError(
            f"Rows that were compared cannot be kept in {self._path}: {one_line(error)}",
            kept="What was kept before is unchanged.",
            next_step=f"Free some space, or delete that file to begin anew: {self._path}",
        )


def name_of_comparison(index: Store, asked_as: str, form: str) -> str:
    """A name for the rows of this index, as it is now, held against a function.

    Args:
        asked_as: everything that the function's vectors depend on.
        form: how the index stores them.
    """
    key = hashlib.sha256(repr((index.shown, sorted(index.columns.items()), index.numbers, index.rows)).encode())
    key.update(repr((asked_as, form)).encode())
    # An index that was written anew begins otherwise.
    for batch in index.batches():
        for dimension, (places, vectors) in sorted(batch.vectors.items()):
            key.update(repr((dimension, batch.rows, len(places))).encode() + vectors.tobytes())
        break
    return key.hexdigest()[:16]
