"""Whether a report is told in every form, and what is said holds together: what must be true in any state.

The rules know no report: an empty section or table, a column that no row fills, a place that two sections share, a
number that is none, a plural after a 1.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import date
from typing import Any

from report_form import is_told
from told_before import QUOTED, unread

from embaudit.declared.document import Column, Page, Section, Table, figures
from embaudit.declared.rule import LEVELS, Finding, as_rows
from embaudit.pages.ci import card_of
from embaudit.pages.html import render as as_html
from embaudit.pages.text import print_page
from embaudit.pages.text import render as as_markdown
from embaudit.questions.check.check import CheckReport
from embaudit.questions.report import AnswerFigureRow, AnswerFindingRow, Report, WhyCaseRow

# What no text of ours says, and what is meant.
WRONG = {
    "a number that is none": re.compile(r"(?<![\w'“])[-+−]?(?:nan|inf)(?:%|\b)(?!['”])"),
    "a value that is none": re.compile(r"(?<!')\bNone\b(?! (?:of|gains|is|was|are|has|alone)\b)(?!')"),
    "none of none": re.compile(r"(?<![\d,.])0 of 0\b"),
    "a plural after a 1": re.compile(
        r"(?<![\w.,:/=−-])(?<!\d of )1 "
        r"(?!(?:is|was|has|does|as|less|across|this|its|plus|minus|times|finds|gives|class)\b)[a-z]{2,}s\b"
    ),
    "two ends": re.compile(r"(?<!\.)\.\.(?![./])|[.!?]\s*[;,](?:\s|$)|[:,;]\s*[.;,](?:\s|$)|[:;,→]\s*$"),
    "nothing in brackets": re.compile(r"\(\s*\)|\[\s*\]|\(\s*[,;]"),
    "an object as Python shows it": re.compile(r"<[\w.]+ object at|array\(|np\.float|dict_|namespace\("),
    "a name with its first letter lowered": re.compile(r"(?<![\w'/:-])(?!nDCG)[a-z][A-Z]{2,}"),
    "a gap": re.compile(r"(?<=\w)  +(?=\w)|\s+[.,;](?:\s|$)"),
}
# What a sentence ends with.
ENDS = tuple(".!?…")


def faults_of(report: Report) -> list[str]:
    """What is wrong with what is told of a report, in any form; an exception is raised as it is."""
    page = report.page()
    found = list(faults_of_page(page))
    said = json.loads(json.dumps(report.as_json(), ensure_ascii=False, allow_nan=False))
    found += faults_of_rows(report, said)
    found += untold_figures(page, said["figures"])
    assert report.exit_code in range(256)
    texts = {"line": report.line}
    for place, one in enumerate(report.findings):
        texts |= {f"finding {one.name or place}": f"{one.sentence} | {one.meaning} | {one.advice}"}
        found += [f"finding {one.name or place}: no sentence"] if not one.sentence else []
        found += [f"finding {one.name or place}: no end: {one.sentence}"] if one.sentence[-1:] not in ENDS else []
    texts = {where: text.replace(" |  | ", "").removesuffix(" | ") for where, text in texts.items()}
    found += [f"{where}: {wrong}" for where, text in texts.items() for wrong in wrong_in(text)]
    sentences = [one.sentence for one in page.findings]
    found += [f"said twice: {one}" for one in {one for one in sentences if sentences.count(one) > 1}]
    json.dumps(as_rows(report.findings), allow_nan=False)
    if isinstance(report, CheckReport):
        card = card_of(report, date(2026, 11, 1))
        found += [f"card: {wrong}" for line in card.splitlines() for wrong in wrong_in(re.sub(r"\\(.)", r"\1", line))]
    return found


def faults_of_rows(report: Report, said: dict[str, Any]) -> Iterator[str]:
    """Where JSON and the tables have other words for the same, or other numbers."""
    rows = report.rows()
    for table, of_table in {AnswerFindingRow: said["findings"], AnswerFigureRow: said["figures"], **rows}.items():
        columns = set(table.table.columns) - {"answer_id", "place"}
        for names in {frozenset(row) for row in of_table} - {frozenset(columns)}:
            yield f"a row of {table.table.name} has other columns: {sorted(names ^ columns)}"
    for row, case in zip(rows.get(WhyCaseRow, ()), said.get("cases", ()), strict=True):
        yield from (f"{name} of a case is {case[name]!r}" for name, value in row.items() if case[name] != value)


def untold_figures(page: Page, figures: list[dict[str, Any]]) -> Iterator[str]:
    """Figures that are kept and stand nowhere on the page."""
    shown = as_markdown(page)
    for one in figures:
        for name in ("value", "low", "high"):
            if one[name] is not None and not is_told(one[name], shown):
                yield f"{name} of {one['figure']} ({one['item']}) is not on the page: {one[name]}"


def faults_of_page(page: Page) -> Iterator[str]:
    """What is wrong with a page; an exception of a renderer is raised as it is."""
    html, text = as_html(page), as_markdown(page)
    assert html.endswith("</html>")
    for is_full in (True, False) if "audit" in dict(page.identity) else (True,):
        with redirect_stdout(io.StringIO()) as out:
            print_page(page, is_full=is_full)
        assert out.getvalue().strip()
    assert text.strip()
    for name, value in page.identity:
        yield from [] if name and str(value).strip() else [f"identity: {name or value!r} is empty"]
        yield from (f"identity {name}: {wrong}" for wrong in wrong_in(str(value)))
    yield from [] if page.title.strip() else ["no title"]
    yield from _faults_of_places(html)
    for section in page.sections:
        yield from _faults_of_section(section)


def _faults_of_places(html: str) -> Iterator[str]:
    places = re.findall(r'<section id="([^"]*)"', html)
    for place in {one for one in places if places.count(one) > 1 or not one}:
        yield f"{places.count(place)} sections at #{place}"


def _faults_of_section(section: Section) -> Iterator[str]:
    title = section.title
    yield from [] if title.strip() else ["a section without a title"]
    if not section.parts:
        yield f"{title}: nothing in it"
    for part in section.parts:
        if isinstance(part, str):
            yield from [] if part.strip() else [f"{title}: an empty paragraph"]
            yield from (f"{title}: {wrong}" for wrong in wrong_in(part))
        elif isinstance(part, Table):
            yield from (f"{title}: {fault}" for fault in faults_of_table(part))
        elif isinstance(part, Finding):
            assert part.level in LEVELS
            yield from (f"{title}: {wrong}" for wrong in wrong_in(part.sentence))
        elif not part.is_empty:
            yield from (f"{title}, {part.title}: {fault}" for fault in faults_of_table(figures(part)))


def faults_of_table(table: Table) -> Iterator[str]:
    """What is wrong with a table, as it is shown."""
    table = table.filled
    name = table.title or ", ".join(column.title for column in table.columns)
    if not table.rows:
        yield f"the table {name} has no rows"
    titles = [column.title for column in table.columns]
    for title in {one for one in titles if titles.count(one) > 1}:
        yield f"two columns of {name} are called {title}"
    table.records()
    if titles[:2] == ["of", "value"]:
        yield from (f"{row[0]} has no value in {name}" for row in table.rows if not table.columns[1].text(row[1]))
    for place, column in enumerate(table.columns):
        cells = [column.text(row[place]) for row in table.rows]
        if cells and not any(cell.strip() for cell in cells):
            yield f"the column {column.title or place} of {name} is empty in all rows"
        for cell in dict.fromkeys(cells):
            yield from (f"{name}, {column.title}: {wrong}" for wrong in wrong_in(cell, column))


def wrong_in(text: str, column: Column | None = None) -> list[str]:
    """What is wrong with a text; what is quoted in it is not ours."""
    ours = QUOTED.sub("‹›", text) if column is None or not column.is_prose else ""
    number = text if column is not None and column.is_number else ours
    return [f"{what}: {text!r}" for what, sign in WRONG.items() if sign.search(ours) or sign.search(number)]


def assert_told(report: Report) -> None:
    """It is told in every form, and nothing in it is wrong in any state."""
    faults = faults_of(report)
    name = type(report).__name__
    faults += [f"not in tests/told.txt: {line}" for line in unread(name, report.page())]
    faults += [f"not in tests/told.txt: {line}" for line in unread(f"{name} as JSON", held_by(report))]
    assert not faults, "\n".join(faults)


def held_by(report: Report) -> Iterator[str]:
    """What its JSON has, by name and kind of value, and its figures; findings have all the same names."""
    said = json.loads(json.dumps(report.as_json()))
    yield from sorted({*_kinds({name: one for name, one in said.items() if name not in ("findings", "figures")}, "")})
    for figure in said["figures"]:
        of, ends = (
            " of so many" if figure["of"] is not None else "",
            " with ends" if figure["low"] is not None else "",
        )
        yield f"figure {figure['figure']}{of}{ends}"


def _kinds(value: object, place: str) -> Iterator[str]:
    """Each place of a value, with what stands there; of a list, those of all that is in it."""
    if isinstance(value, dict) and value.keys() == {"value", "low", "high"}:
        # Whether a sample supports an interval may depend on a processor's last bits.
        yield f"{place}: {'none' if value['value'] is None else 'an estimate'}"
    elif isinstance(value, dict) and value:
        for name, inner in value.items():
            # Some are by what was given: a data set, a kind of text.
            own = name if re.fullmatch(r"[a-z][a-z0-9_]*", name) else "…"
            yield from _kinds(inner, f"{place}.{own}" if place else own)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from _kinds(inner, f"{place}[]")
    else:
        kind = "a number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
        yield f"{place}: {kind}"
