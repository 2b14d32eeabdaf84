"""Results for other people's CI: JUnit's XML, a case a rule or golden query, and SARIF, which code hosts show.

A check as a block for a model card: the verdict in one line, which is the badge, and what to know before use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from urllib.parse import quote
from xml.etree import ElementTree

from embaudit.declared.rule import Finding, Level
from embaudit.pages.text import plain
from embaudit.questions.check.check import CheckReport
from embaudit.questions.report import Report, WhyCaseRow
from embaudit.warehouse.gate.facts import GateVerdict
from embaudit.words.masking import masked_output

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
