"""A check as a block for a model card: the verdict in one line, which is the badge, and what to know before use."""

from __future__ import annotations

from datetime import date
from importlib.metadata import version

from embaudit.pages.markdown import plain
from embaudit.questions.check.check import CheckReport
from embaudit.words.masking import masked_output

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
