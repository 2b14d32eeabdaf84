"""What holds nothing is shown in no medium: a column, a section, a line of identity; every section has its place."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout

import pytest

from embaudit.declared.document import Column, Page, Section, Table
from embaudit.pages.html import render as as_html
from embaudit.pages.text import print_page
from embaudit.pages.text import render as as_markdown
from embaudit.words.estimate import Estimate

COLUMNS = (Column("first"), Column("hollow", ".2f"), Column("dashed"), Column("last", ","))
ROWS = [("a", None, "–", 1), ("b", Estimate(None), "", None)]
PAGE = Page(
    "title",
    [("known", "yes"), ("unknown", "")],
    [],
    [
        Section("Filled", [Table(COLUMNS, ROWS)]),
        Section("Barren", [Table(COLUMNS, []), ""]),
        Section("Filled", ["A paragraph."]),
        Section("?!", ["One of signs."]),
        Section("…", ["Another of signs."]),
    ],
)


def in_terminal(page: Page) -> str:
    with redirect_stdout(io.StringIO()) as out:
        print_page(page)
    return out.getvalue()


@pytest.mark.parametrize("medium", [as_html, as_markdown, in_terminal], ids=["html", "markdown", "terminal"])
def test_what_holds_nothing_is_left_out(medium) -> None:  # type: ignore[no-untyped-def]
    shown = medium(PAGE)
    assert all(word in shown for word in ("first", "last", "known", "Filled", "A paragraph"))
    assert not any(word in shown for word in ("hollow", "dashed", "unknown", "Barren"))


def test_every_link_leads_to_a_section_of_its_own() -> None:
    html = as_html(PAGE)
    places = re.findall(r'<section id="([^"]*)"', html)
    assert places == re.findall(r'<a href="#([^"]*)"', html)
    assert len(set(places)) == 4
    assert all(places)


def test_programs_get_every_column() -> None:
    table = Table(COLUMNS, ROWS)
    assert list(table.records()[0]) == ["first", "hollow", "dashed", "last"]
    assert [column.title for column in table.filled.columns] == ["first", "last"]


def test_a_table_in_which_nothing_is_known_keeps_its_columns() -> None:
    table = Table(COLUMNS[:2], [("", None)])
    assert table.filled is table
