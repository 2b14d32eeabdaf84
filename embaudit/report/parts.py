"""What the HTML page is made of: sections of sentences, tables and charts. Text only: the template escapes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from markupsafe import Markup


@dataclass(frozen=True)
class Cell:
    """One cell of a table.

    Attributes:
        bar: a share from 0 to 1, drawn under the text.
        mark: ``good``, ``bad`` or ``warn``; empty for none.
    """

    text: str
    bar: float | None = None
    mark: str = ""

    @property
    def percent(self) -> str:
        return f"{100 * min(max(self.bar or 0.0, 0.0), 1.0):.0f}"


@dataclass(frozen=True)
class Table:
    """A table whose columns from ``numbers_from`` on are numbers, set to the right."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    caption: str = ""
    numbers_from: int = 1
    numbers_to: int | None = None

    @property
    def cells(self) -> list[list[Cell]]:
        return [[cell if isinstance(cell, Cell) else Cell(cell) for cell in row] for row in self.rows]

    def is_number(self, column: int) -> bool:
        last = len(self.headers) if self.numbers_to is None else self.numbers_to
        return self.numbers_from <= column < last


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it."""

    title: str
    notes: Sequence[str] = ()
    tables: Sequence[Table] = ()
    charts: Sequence[Markup] = ()
    # Long and rarely read: closed until it is opened.
    is_folded: bool = False
    after: Sequence[str] = field(default=())

    @property
    def anchor(self) -> str:
        return "-".join(word for word in self.title.lower().split() if word.isalnum())


def number(value: float | None, digits: int = 3) -> str:
    """A figure, or nothing."""
    return "" if value is None else f"{value:,.{digits}f}"


def figure(value: float | None) -> str:
    """A figure of any size, or nothing."""
    return "" if value is None else f"{value:.4g}"


def count(amount: int, what: str) -> str:
    """``1 figure``, ``2 figures``."""
    return f"{amount:,} {what}{'' if amount == 1 else 's'}"


def share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def with_interval(value: float | None, low: float | None, high: float | None) -> str:
    """A figure with its 95 % interval, where it has one."""
    if value is None:
        return ""
    return f"{value:.3f}" if low is None or high is None else f"{value:.3f} [{low:.2f}, {high:.2f}]"
