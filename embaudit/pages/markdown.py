"""Renders a page in Markdown for the Prefect UI; untrusted text is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable

from embaudit.declared.chart import Chart
from embaudit.declared.document import Page, Part, Table
from embaudit.declared.rule import Finding
from embaudit.words.masking import MASK, masked_output
from embaudit.words.sentences import visible

# Every character with a meaning in Markdown or HTML, to be escaped with a backslash. The at sign, colon and dot are
# included because addresses are linked automatically.
SIGNS = re.compile(r"([\\`*_{}\[\]()#+\-!|~>$^=:.@/])")
ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}


def plain(text: object) -> str:
    """The text as inline Markdown that shows it literally, in a paragraph or table cell."""
    escaped = "".join(ENTITIES.get(character, character) for character in visible(text))
    # Semicolons and ampersands of the entities must not be escaped.
    return SIGNS.sub(r"\\\1", escaped)


def render(page: Page) -> str:
    """The page, without folded sections, which are for HTML only."""
    link = f" [Report](<{page.link}>)" if page.link else ""
    blocks = [f"# {page.kind} {plain(page.title)}"]
    blocks += [" · ".join(plain(f"{name} {value}") for name, value in page.identity).strip() + link]
    blocks += [_part(finding) for finding in page.findings]
    for section in page.sections:
        if not section.is_folded:
            blocks += [f"## {plain(section.title)}", *(_part(part) for part in section.parts)]
    # Three stars would be emphasis, or a line.
    return masked_output("\n\n".join(block for block in blocks if block) + "\n").replace(MASK, r"\*\*\*")


def _part(part: Part) -> str:
    """A block, stripped: leading spaces would turn a paragraph into code."""
    if isinstance(part, Table):
        return _table(part)
    if isinstance(part, Finding):
        meaning, advice = (
            f"{sign}{plain(text)}" if text else "" for sign, text in ((" ", part.meaning), (" → ", part.advice))
        )
        return f"**{part.level}** {plain(part.sentence)}{meaning}{advice}"
    return "" if isinstance(part, Chart) else plain(part).strip()


def _table(whole: Table) -> str:
    table = whole.filled
    rows, note = table.cut(is_brief=True)
    if not rows:
        return ""
    lines = [
        _row(plain(column.title) for column in table.columns),
        _row("---:" if column.is_number else "---" for column in table.columns),
    ]
    for row in rows:
        cells = zip(table.columns, row, strict=True)
        lines.append(_row(plain(column.text(value)) for column, value in cells))
    title = [f"### {plain(table.title)}"] if table.title else []
    return "\n\n".join((*title, "\n".join(lines), *([plain(note)] if note else ())))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
