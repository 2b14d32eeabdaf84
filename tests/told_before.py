"""What reports say, in the words of ``tests/told.txt``: those that somebody read and found right.

A sentence, heading or column that is not there fails the test that told it, so that a change of words is reviewed where
it can be read. Numbers, quotations and places are left out: they differ between states and machines. The file is
written anew, in one process, by
``pytest --tell-anew tests/*/test_*_told.py tests/why/test_application.py tests/page/test_findings.py``.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from embaudit.declared.document import Page, Section, Table
from embaudit.declared.rule import Finding

FILE = Path(__file__).with_name("told.txt")
QUOTED = re.compile(r"“[^”]*”|‘[^’]*’|(?<!\w)'(?:[^'\\]|\\.)*'(?!\w)|\"[^\"]*\"")
PLACE = re.compile(r"(?:\w+:/)?(?<![\w.)])/[\w./\[\]~-]+")
NUMBER = re.compile(r"[−+-]?(?:\d[\d,.]*\d|\d|\.\d+)(?:e[−+-]?\d+)?(?:st|nd|rd|th)?\b")
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
    for what, instead in ((QUOTED, "“…”"), (PLACE, "“…”"), (NUMBER, "#"), (SEVERAL, "#"), (SEVERAL, "#")):
        text = what.sub(instead, text)
    return " ".join(text.split())


def _lines(told: Page | Iterable[Finding | str]) -> Iterator[str]:
    for finding in told.findings if isinstance(told, Page) else told:
        yield from [finding] if isinstance(finding, str) else _of_finding(finding)
    for section in told.sections if isinstance(told, Page) else ():
        yield from _of_section(section)


def _of_finding(finding: Finding) -> Iterator[str]:
    for what, text in (("", finding.sentence), ("means: ", finding.meaning), ("do: ", finding.advice)):
        if text:
            yield f"{what}{text}"


def _of_section(section: Section) -> Iterator[str]:
    yield f"section: {section.title}"
    for part in section.parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Finding):
            yield from _of_finding(part)
        elif isinstance(part, Table):
            columns = " | ".join(column.title for column in part.filled.columns)
            yield f"table: {part.title}: {columns}" if part.title else f"table: {columns}"
        else:
            yield f"chart: {part.title}: {part.caption}"
            yield from (f"panel: {panel.x.title} | {panel.y.title}" for panel in part.panels)


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
