"""A store of its own that jobs write to between the nights of a watch, and the revisions they may run with."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from embaudit.watch.index_check import CheckedIndex, IndexLook
from embaudit.watch.watch_list import IndexEntry, read_watch_list

Put = Callable[[Path, int], Path]


def texts_of(names: Sequence[str]) -> list[str]:
    return [f"the {name} of the old river in winter {len(name) * 7}" for name in names]


@dataclass
class Library:
    """A store of its own, in a SQLite file, that jobs write to; and the two revisions they may run with."""

    folder: Path
    path: Path
    encode: tuple[Callable[[Sequence[str]], np.ndarray], ...]
    has_ids: bool = True
    accepted: set[tuple[str, str]] = field(default_factory=set)
    more: str = ""
    store: str = ""
    function: str = "model"

    def write(self, names: Sequence[str], revision: int = 0, vectors: np.ndarray | None = None) -> None:
        """Rows with these ids, added or overwritten."""
        rows = self.encode[revision](texts_of(names)) if vectors is None else vectors
        with closing(sqlite3.connect(self.path)) as connection, connection:
            key = "TEXT PRIMARY KEY" if self.has_ids else "TEXT"
            connection.execute(f"CREATE TABLE IF NOT EXISTS docs (id {key}, text TEXT, vector BLOB)")
            for name, text, row in zip(names, texts_of(names), rows, strict=True):
                row_id = name if self.has_ids else None
                blob = None if row is None else np.asarray(row, np.float32).tobytes()
                connection.execute("INSERT OR REPLACE INTO docs VALUES (?, ?, ?)", (row_id, text, blob))

    def remove(self, names: Sequence[str]) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.executemany("DELETE FROM docs WHERE text = ?", [(text,) for text in texts_of(names)])

    @property
    def list(self) -> Path:
        path = self.folder / "watch.toml"
        path.write_text(
            f'[settings]\ndevice = "cpu"\n[[index]]\nstore = "{self.store or self.path.name}"\n'
            f'function = "{self.function}"\n{self.more}\n'
        )
        return path

    @property
    def entry(self) -> IndexEntry:
        (entry,) = read_watch_list(self.list).index
        return entry

    def look(self) -> IndexLook:
        return IndexLook(self.entry, self.folder / "home", self.folder / "home" / "reports", self.accepted)

    def night(self) -> CheckedIndex:
        look = self.look()
        found = look.check()
        look.keep()
        return found


def named(start: int, stop: int) -> list[str]:
    return [f"doc-{number}" for number in range(start, stop)]


def ids(found: CheckedIndex) -> list[str]:
    return [row["id"] for row in found.open_rows]


def accept_all(library: Library, found: CheckedIndex, names: Collection[str] = ()) -> None:
    library.accepted |= {
        (problem["key"], problem["name"]) for problem in found.problems if not names or problem["name"] in names
    }


def told(names: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(names, texts_of(names), strict=True))
