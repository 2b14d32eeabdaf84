"""Renders a page in a terminal. Untrusted text goes through ``Text`` and ``visible``: no markup or control codes.

Renders a page in Markdown for the Prefect UI; untrusted text is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich import box, table
from rich.console import Console
from rich.text import Text

from embaudit.declared.chart import Chart
from embaudit.declared.document import Column, Page, Part, Section, Table, Value
from embaudit.declared.rule import Finding
from embaudit.words.masking import MASK, masked_output
from embaudit.words.sentences import visible

# Used if the output is not a terminal and has no width.
WIDTH = 140
STYLES = {"ok": "green", "look": "yellow", "problem": "bold red", "not measured": "dim"}


def console() -> Console:
    """A console for standard output, as wide as the terminal."""
    return Console(width=None if Console().is_terminal else WIDTH)


def print_page(page: Page, *, is_full: bool = True) -> None:
    """Print an audit's page, without folded sections, which are for HTML only.

    Args:
        is_full: print all sections, or only what fits on a screen.
    """
    out = console()
    out.print()
    out.rule(Text.assemble(f"{page.kind} ", (visible(page.title), "bold")))
    out.print(Text(" · ".join(visible(f"{name} {value}") for name, value in page.identity), "dim"))
    print_findings(page.findings, out)
    if is_full:
        for section in (section for section in page.sections if not section.is_folded):
            print_section(section, out)
        return
    for part in (part for section in page.sections for part in section.parts):
        if isinstance(part, Table) and part.headline:
            out.print()
            print_table(replace(part, brief=part.headline), out)
    if page.sections:
        out.print(Text(visible(f"Every figure: embaudit show {dict(page.identity)['audit']} --full"), "dim"))


def print_findings(findings: Sequence[Finding], out: Console) -> None:
    """Print findings as paragraphs that start with the level."""
    laid = table.Table.grid(padding=(0, 2, 0, 0))
    laid.add_column(no_wrap=True)
    laid.add_column()
    for found in findings:
        words = [(visible(found.sentence), ""), (visible(f" {found.meaning}") if found.meaning else "", "dim")]
        if found.advice:
            words.append((f" → {visible(found.advice)}", "cyan"))
        laid.add_row(Text(found.level, STYLES[found.level]), Text.assemble(*words))
    out.print(laid)


def print_section(section: Section, out: Console) -> None:
    out.print()
    out.print(Text(visible(section.title), "bold underline"))
    for part in section.parts:
        print_part(part, out)


def print_part(part: Part, out: Console) -> None:
    """Print a paragraph, a table or a finding."""
    if isinstance(part, Table):
        print_table(part, out)
    elif isinstance(part, Finding):
        print_findings([part], out)
    elif not isinstance(part, Chart):
        out.print(Text(visible(part)))


def print_table(whole: Table, out: Console) -> None:
    """Print a table with its title; numbers are never truncated, text may be."""
    found = whole.filled
    places = [place for place, column in enumerate(found.columns) if not column.is_detail]
    rows, note = found.cut(is_brief=True)
    if not rows:
        return
    if found.title:
        out.print(Text(visible(found.title), "italic"))
    laid = table.Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for place in places:
        column = found.columns[place]
        # Columns that do not wrap keep their width as long as others can shrink.
        laid.add_column(
            Text(visible(column.title)), justify="right" if column.is_number else "left", no_wrap=column.is_number
        )
    for row in rows:
        laid.add_row(*(_cell(found.columns[place], row[place]) for place in places))
    out.print(laid)
    if note:
        out.print(Text(visible(note), "dim"))


def _cell(column: Column, value: Value) -> Text:
    level = column.level(value)
    return Text(
        visible(column.text(value)),
        STYLES[level] if level else "",
        no_wrap=not column.is_prose,
        overflow="fold" if column.is_prose else "ellipsis",
    )


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
