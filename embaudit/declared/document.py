"""Pages as data.

All text is plain and untrusted: it may contain token strings, names and reasons from a checkpoint, and each renderer
escapes what its medium would interpret.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from embaudit.declared.chart import Chart
from embaudit.declared.rule import Finding, Level
from embaudit.words.estimate import Estimate

MAX_ROWS = 200
# Cells that hold nothing.
EMPTY = ("", "–")


@dataclass(frozen=True)
class Link:
    """A link to another page in the same folder; media without links show only the text.

    Attributes:
        place: name of the file.
    """

    text: str
    place: str


Value = str | int | float | Estimate | Link | None


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes:
        title: its header.
        format: number format for ``format()`` (``,``, ``.3f``, ``.0%``); empty for a text column.
        bounds: format of an interval's ends; empty to leave it out.
        is_right: text that is right-aligned like numbers.
        is_prose: text that may wrap; other cells stay on one line.
        is_detail: left out in a terminal.
        is_bar: the figures are shares from 0 to 1, which can be drawn as bars.
        levels: the level of cells with these texts.
        words: what stands for values of a row.
        ends: a row's columns with the ends of the interval, if they are not named after the figure.
    """

    title: str
    format: str = ""
    bounds: str = ".2f"
    is_right: bool = False
    is_prose: bool = False
    is_detail: bool = False
    is_bar: bool = False
    levels: Mapping[str, Level] = field(default_factory=dict)
    words: Mapping[Any, str] = field(default_factory=dict)
    ends: tuple[str, str] | None = None

    def of(self, row: Mapping[str, Any], name: str) -> Value:
        """A row's value of that name, with its interval if the row has one."""
        low, high = self.ends or (f"{name}_low", f"{name}_high")
        if self.bounds and low in row:
            return Estimate(row[name], row[low], row[high])
        value: Value = self.words.get(row[name], row[name]) if self.words else row[name]
        return value

    @property
    def is_number(self) -> bool:
        return self.is_right or bool(self.format)

    def text(self, value: Value) -> str:
        """A cell's text; empty for None. Text in a number column is left as it is."""
        if isinstance(value, Estimate):
            return "" if value.value is None else self.text(value.value) + value.interval(self.bounds)
        if isinstance(value, Link):
            return value.text
        return "" if value is None else value if isinstance(value, str) else format(value, self.format)

    def level(self, value: Value) -> Level | None:
        return self.levels.get(value) if isinstance(value, str) else None

    def percent(self, value: Value) -> float:
        """The length of a cell's bar, 0 to 100."""
        number = value.value if isinstance(value, Estimate) else value
        return 100 * min(max(number, 0.0), 1.0) if isinstance(number, int | float) else 0.0


@dataclass(frozen=True)
class Table:
    """A table of plain values, most important row first.

    Attributes:
        key: a stable name, if the table is also stored separately (as a Prefect artifact).
        brief: number of rows to show if space is limited; None for all.
        headline: number of rows on the short terminal page; tables without it are not shown there.
        is_even: whether a shortened table takes evenly spaced rows instead of the first.
        more: the command that lists all rows.
    """

    kind: ClassVar[str] = "table"
    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    title: str = ""
    key: str = ""
    brief: int | None = None
    headline: int = 0
    is_even: bool = False
    more: str = ""

    @classmethod
    def of(
        cls, columns: Mapping[str, Column], rows: Iterable[Mapping[str, Any]], title: str = "", **options: Any
    ) -> Table:
        """Rows of the warehouse, with a column for each name."""
        cells = [[column.of(row, name) for name, column in columns.items()] for row in rows]
        return cls(list(columns.values()), cells, title, **options)

    @property
    def filled(self) -> Table:
        """Without the columns that hold nothing in any row: what was not measured, or where there is none."""
        kept = [
            place
            for place, column in enumerate(self.columns)
            if any(column.text(row[place]) not in EMPTY for row in self.rows)
        ]
        if len(kept) in (0, len(self.columns)):
            return self
        columns = [self.columns[place] for place in kept]
        return replace(self, columns=columns, rows=[[row[place] for place in kept] for row in self.rows])

    def cut(self, is_brief: bool) -> tuple[Sequence[Sequence[Value]], str]:
        """The rows to show, and a sentence about the others."""
        most = self.brief if is_brief and self.brief is not None else MAX_ROWS
        if len(self.rows) <= most:
            return self.rows, ""
        rows = self.rows[:most]
        if self.is_even and most > 1:
            rows = [self.rows[round(place * (len(self.rows) - 1) / (most - 1))] for place in range(most)]
        return rows, f"{most:,} of {len(self.rows):,} rows" + (f"; all: {self.more}" if self.more else ".")

    def records(self) -> list[dict[str, Any]]:
        """Its rows as mappings from column title to number or text."""
        return [
            {
                column.title: column.text(value) if isinstance(value, Estimate | Link) else value
                for column, value in zip(self.columns, row, strict=True)
            }
            for row in self.rows
        ]


Part = str | Table | Chart | Finding


@dataclass(frozen=True)
class Section:
    """A heading and the parts below it, in order; a string is a paragraph.

    Attributes:
        is_folded: reference material, initially collapsed; left out in media that cannot collapse it.
    """

    title: str
    parts: Sequence[Part]
    is_folded: bool = False

    @property
    def anchor(self) -> str:
        return "-".join(re.findall(r"\w+", self.title.lower())) or "section"

    @property
    def is_empty(self) -> bool:
        """Whether nothing would stand below its title."""
        return all(_is_empty(part) for part in self.parts)


def _is_empty(part: Part) -> bool:
    if isinstance(part, Table):
        # What rows are about, and nothing about it.
        return not part.rows or (len(part.columns) > 1 and len(part.filled.columns) == 1)
    if isinstance(part, Chart):
        return part.is_empty
    return part == ""


@dataclass(frozen=True)
class Page:
    """A page about one audit, or a comparison of several.

    Attributes:
        kind: text before the title.
        title: what was audited.
        identity: names and values that describe what was audited, when, and how; one without a value is left out.
        findings: shown before everything else.
        sections: one in which nothing stands is left out.
        link: address of its HTML page, for other media.
    """

    title: str
    identity: Sequence[tuple[str, str]]
    findings: Sequence[Finding]
    sections: Sequence[Section]
    link: str = ""
    kind: str = "Audit of"

    def __post_init__(self) -> None:
        known = [(name, value) for name, value in self.identity if value]
        object.__setattr__(self, "identity", known)
        object.__setattr__(self, "sections", [section for section in self.sections if not section.is_empty])

    @property
    def anchored(self) -> list[tuple[str, Section]]:
        """Each section with the place that a link leads to, of which there is one, whatever their titles are."""
        found: dict[str, Section] = {}
        for section in self.sections:
            anchor, more = section.anchor, 1
            while anchor in found:
                anchor, more = f"{section.anchor}-{more + 1}", more + 1
            found[anchor] = section
        return list(found.items())


def count(amount: int, what: str) -> str:
    """``1 figure``, ``2 figures``."""
    return f"{amount:,} {what}{'' if amount == 1 else 's'}"


def figures(chart: Chart) -> Table:
    """A chart as a table: its marks' positions in the units of the axes, and their labels."""
    x, y = chart.panels[0].x.title or "x", chart.panels[0].y.title or "y"
    if len({panel.y.title for panel in chart.panels}) > 1:
        y = "y"
    names = {"panel": "panel", "series": "series", "label": "is", "x": x, "x2": f"{x}, to", "y": y, "y2": f"{y}, to"}
    records = chart.records()
    used = [name for name in names if any(record[name] not in (None, "") for record in records)]
    return Table(
        [Column(names[name], ",.5g" if name in ("x", "x2", "y", "y2") else "") for name in used],
        [[record[name] for name in used] for record in records],
        more=chart.more,
    )
