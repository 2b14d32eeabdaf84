"""What reports say, in the words of ``tests/told.txt``: those that somebody read and found right.

A sentence, heading or column that is not there fails the test that told it, so that a change of words is reviewed where
it can be read. Numbers, quotations and places are left out: they differ between states and machines. The file is
written anew, in one process, by
``pytest --tell-anew tests/*/test_*_told.py tests/page tests/why/test_application.py``.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from embaudit.declared.chart import Axis, Chart, Layer, Panel
from embaudit.declared.document import Column, Page, Section, Table
from embaudit.declared.rule import Finding

FILE = Path(__file__).with_name("told.txt")
QUOTED = re.compile(r"“[^”]*”|‘[^’]*’|(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|\"[^\"]*\"")
PLACE = re.compile(r"(?:\w+:/)?(?<![\w.)])/[\w./\[\]~-]+")
HASH = re.compile(r"(?<![\w.])(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{12,}\b")
NUMBER = re.compile(r"[−+-]?(?:\d[\d,.]*\d|\d|\.\d+)(?:e[−+-]?\d+)?(?:st|nd|rd|th)?\b")
# How near two vectors are that one function made: processors differ in the last bits.
NEAR = re.compile(r" to the last bit| \(# − cosine #\)")
SEVERAL = re.compile(r"#(?:,? (?:and |to )?#)+|# \[#\]|about(?= the time)|# times(?= the time)")

# By report, what was told in this process; and whether it is to be written.
_told: dict[str, set[str]] = {}
_is_anew = False


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tell-anew", action="store_true", help="write tests/told.txt instead of holding to it")


def pytest_configure(config: pytest.Config) -> None:
    global _is_anew
    _is_anew = config.getoption("--tell-anew")


def pytest_sessionfinish() -> None:
    if _is_anew and _told:
        # What was not told this time stays.
        found = {**_read(), **_told}
        parts = (f"[{one}]\n" + "".join(f"{line}\n" for line in sorted(found[one])) for one in sorted(found))
        FILE.write_text("\n".join(parts), encoding="utf-8")


def unread(report: str, told: Page | Iterable[Finding | str]) -> list[str]:
    """What a page, findings or other texts say and ``told.txt`` does not."""
    lines = {form for line in _lines(told) if (form := form_of(line))}
    if lines:
        _told.setdefault(report, set()).update(lines)
    return [] if _is_anew else sorted(lines - _read().get(report, set()))


def form_of(text: str) -> str:
    """A text without what differs between states: numbers, what is quoted, places."""
    text = text.replace(tempfile.gettempdir(), "/tmp")
    for what, instead in (
        (QUOTED, "“…”"),
        (PLACE, "“…”"),
        (HASH, "#"),
        (NUMBER, "#"),
        (NEAR, ""),
        (SEVERAL, "#"),
        (SEVERAL, "#"),
    ):
        text = what.sub(instead, text)
    return " ".join(text.split())


def _lines(told: Page | Iterable[Finding | str]) -> Iterator[str]:
    if isinstance(told, Page):
        yield f"page: {told.kind}"
        yield from (f"identity: {name}: {value}" for name, value in told.identity)
    for finding in told.findings if isinstance(told, Page) else told:
        yield from [finding] if isinstance(finding, str) else _of_finding(finding)
    for section in told.sections if isinstance(told, Page) else ():
        yield from _of_section(section)


def _of_finding(finding: Finding) -> Iterator[str]:
    for what, text in (("", finding.sentence), ("means: ", finding.meaning), ("do: ", finding.advice)):
        if text:
            yield f"{what}{text}"


def _of_section(section: Section) -> Iterator[str]:
    yield f"section: {section.title}{_options(section)}"
    for part in section.parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Finding):
            yield from _of_finding(part)
        elif isinstance(part, Table):
            yield from _of_table(part)
        else:
            yield from _of_chart(part)


def _of_table(table: Table) -> Iterator[str]:
    shown = table.filled
    columns = " | ".join(f"{column.title}{_options(column)}" for column in shown.columns)
    yield f"table: {table.title}{_options(table)}: {columns}" if table.title else f"table{_options(table)}: {columns}"
    for row in shown.rows:
        cells = [column.text(value) for column, value in zip(shown.columns, row, strict=True)]
        # Without those that are a number.
        words = [cell for cell in cells if re.search("[^\\W\\d_]{2}", form_of(cell))]
        yield f"row: {' | '.join(words)}" if words else ""


def _of_chart(chart: Chart) -> Iterator[str]:
    yield f"chart: {chart.title}{_options(chart)}: {chart.caption}"
    for panel in chart.panels:
        axes = " | ".join(f"{axis.title}{_options(axis)}" for axis in (panel.x, panel.y))
        yield f"panel: {panel.title}{_options(panel)}: {axes}"
        for layer in panel.layers:
            yield f"layer: {layer.kind}{_options(layer)}"
            yield from (f"mark: {mark.series} | {mark.label}" for mark in layer.marks if mark.series or mark.label)


def _options(part: Axis | Chart | Column | Layer | Panel | Section | Table) -> str:
    """What is declared of a part beside its words and figures, where it is not the default."""
    given = {field.name: getattr(part, field.name) for field in fields(part) if not _is_default(field, part)}
    said = [name if value is True else f"{name} {_plain(value)}" for name, value in given.items()]
    return f" ({'; '.join(said)})" if said else ""


def _plain(value: Any) -> str:
    """Without Python's quotation marks, which would hide the words."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {of_key}" for key, of_key in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _is_default(field: Field[Any], part: Any) -> bool:
    """Whether a field says nothing: it must always be given (words, figures), or is the default."""
    if field.name == "title" or (field.default is MISSING and field.default_factory is MISSING):
        return True
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return bool(getattr(part, field.name) == default)


@cache
def _read() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    report = ""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            report = line[1:-1]
        elif line:
            found.setdefault(report, set()).add(line)
    return found
