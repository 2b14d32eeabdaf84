"""Renders a page in a terminal. Untrusted text goes through ``Text`` and ``visible``: no markup or control codes.

Renders a page in Markdown for the Prefect UI; untrusted text is escaped.

Results for other people's CI: JUnit's XML, a case a rule or golden query, and SARIF, which code hosts show.

A check as a block for a model card: the verdict in one line, which is the badge, and what to know before use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib.metadata import version
from urllib.parse import quote
from xml.etree import ElementTree

from rich import box, table
from rich.console import Console
from rich.text import Text

from embaudit.declared.chart import Chart
from embaudit.declared.document import Column, Page, Part, Section, Table, Value
from embaudit.declared.rule import Finding, Level
from embaudit.questions.check.check import CheckReport
from embaudit.questions.report import Report, WhyCaseRow
from embaudit.warehouse.gate.facts import GateVerdict
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


# SARIF's levels; what was not measured is a note that the run says nothing of it.
SARIF_LEVELS: dict[Level, str] = {"problem": "error", "look": "warning", "not measured": "note", "ok": "none"}
NOT_IN_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True)
class CheckedRule:
    """One thing that was checked: a rule of a report or policy, or a golden query.

    Attributes:
        name: of the rule, or the query.
        said: what was found.
        more: what it means, and what to do.
    """

    name: str
    level: Level
    said: str
    more: str = ""


def checked_of(report: Report) -> Iterator[CheckedRule]:
    """Of a report: its verdict, then its findings; of walked searches, each query too."""
    yield CheckedRule("verdict", report.level, report.line)
    for finding in report.by_level():
        yield CheckedRule(finding.name or "finding", finding.level, finding.sentence, _more(finding))
    for case in report.rows().get(WhyCaseRow, ()):
        level: Level = {"found": "ok", "not told": "not measured"}.get(case["lost"], "problem")  # type: ignore[assignment]
        # Found by the search, and lost by the application that has it.
        level = "problem" if case["stage"] is not None else level
        yield CheckedRule(f"{case['query']} → {case['expected']}", level, case["sentence"], case["mend"])


def checked_of_gate(verdict: GateVerdict) -> Iterator[CheckedRule]:
    """Of a policy: each rule and figure."""
    for finding in verdict.findings:
        level: Level = "problem" if finding.trips else "ok" if finding.outcome == "passed" else "not measured"
        name = ", ".join(filter(None, (finding.rule, finding.item, finding.measure)))
        allowed = f", where {finding.allowed} is allowed" if finding.allowed else ""
        said = f"{finding.outcome}: {finding.figure} is {finding.shown_value}{allowed}"
        yield CheckedRule(name, level, said, finding.reason)


def junit(name: str, subject: str, checked: Iterable[CheckedRule], seconds: float = 0.0) -> str:
    """A suite with a case each; problems fail, and what was not measured is skipped."""
    cases = list(checked)
    counts = {
        "tests": len(cases),
        "failures": sum(one.level == "problem" for one in cases),
        "skipped": sum(one.level == "not measured" for one in cases),
    }
    named = {"name": _plain(f"embaudit {name} {subject}"), "time": f"{seconds:.1f}"}
    suite = ElementTree.Element("testsuite", named | {key: str(count) for key, count in counts.items()})
    for one in cases:
        case = ElementTree.SubElement(suite, "testcase", classname=f"embaudit.{name}", name=_plain(one.name))
        if one.level == "problem":
            ElementTree.SubElement(case, "failure", message=_plain(one.said)).text = _plain(one.more)
        elif one.level == "not measured":
            ElementTree.SubElement(case, "skipped", message=_plain(one.said))
        else:
            ElementTree.SubElement(case, "system-out").text = _plain(f"{one.said} {one.more}".strip())
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def sarif(name: str, subject: str, checked: Iterable[CheckedRule]) -> str:
    """A run with a result for each problem, look, and what was not measured."""
    found = [one for one in checked if one.level != "ok"]
    rules = [{"id": rule} for rule in dict.fromkeys(_plain(one.name) for one in found)]
    results = [
        {
            "ruleId": _plain(one.name),
            "level": SARIF_LEVELS[one.level],
            "message": {"text": _plain(f"{one.said} {one.more}".strip())},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": quote(_plain(subject), safe="/:")}}}],
        }
        for one in found
    ]
    driver = {"name": f"embaudit {name}", "version": version("embaudit"), "rules": rules}
    return json.dumps(
        {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]},
        ensure_ascii=False,
        indent=1,
    )


def _more(finding: Finding) -> str:
    return " ".join(filter(None, (finding.meaning, finding.advice)))


def _plain(text: str) -> str:
    """Without characters that XML cannot hold."""
    return "".join(one for one in text if one in "\t\n\r" or (one >= " " and not NOT_IN_XML.match(one)))


BADGES = {
    "do not serve": "do not serve",
    "look first": "look first",
    "nothing found wrong": "nothing found wrong",
    "files only": "only files were looked at",
    "could not be checked": "could not be checked as a whole",
}


def card_of(report: CheckReport, on: date) -> str:
    """Markdown, in which what comes from files is text."""
    said = BADGES.get(report.verdict, report.verdict)
    lines = [f"**embaudit {version('embaudit')}: {said}** · {on.isoformat()}"]
    if report.checkpoint_id:
        lines[0] += f" · content `{report.checkpoint_id}`"
    lines += [
        f"- {finding.level}: {plain(finding.sentence)}" + (f" → {plain(finding.advice)}" if finding.advice else "")
        for finding in report.by_level()
        if finding.level in ("problem", "look")
    ]
    for one in report.figures.get("data") or ():
        score = one["score"]
        if score["value"] is None:
            continue
        ends = "" if score["low"] is None else f" \\[{score['low']:.2f}, {score['high']:.2f}\\]"
        lines.append(f"- {plain(one['metric'])} on {plain(one['name'])}: {score['value']:.2f}{ends}")
    return masked_output("\n".join(f"> {line}\n>" for line in lines).removesuffix("\n>") + "\n")
