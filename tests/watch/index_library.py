"""A store of its own that jobs write to between the nights of a watch, and the revisions they may run with."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from embaudit.questions.report import WrongRow
from embaudit.questions.vectors.question import VectorsQuestion
from embaudit.questions.vectors.report import StoredReport
from embaudit.watch.watch_list import read_watch_list

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
    accepted: datetime | None = None
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
    def question(self) -> VectorsQuestion:
        (entry,) = read_watch_list(self.list).questions
        (question,) = [one for one in entry.questions if isinstance(one, VectorsQuestion)]
        return question

    def night(self) -> Night:
        report = self.question.answer()
        assert isinstance(report, StoredReport)
        if self.accepted is not None:
            report = report.accept(self.accepted)
        report.remember()
        return Night(report)

    def accept(self, night: Night) -> None:
        """Somebody accepts what a night found."""
        assert night.report.since is not None
        self.accepted = night.report.since.now


@dataclass
class Night:
    """What a look at the library found."""

    report: StoredReport

    @property
    def verdict(self) -> str:
        return self.report.verdict

    @property
    def line(self) -> str:
        return self.report.line

    @property
    def problems(self) -> list[str]:
        """Names of what is open."""
        return [one.name for one in self.report.findings if one.level == "problem"]

    @property
    def ids(self) -> list[str]:
        """Of the rows that are known to be wrong."""
        return [row["row"] for row in self.report.rows()[WrongRow]]

    def __getitem__(self, figure: str) -> float:
        return {one.figure: one.value for one in self.report.answer_figures()}[figure]


def named(start: int, stop: int) -> list[str]:
    return [f"doc-{number}" for number in range(start, stop)]


def told(names: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(names, texts_of(names), strict=True))
