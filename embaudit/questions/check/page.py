"""The page of a check: its verdict, then the findings, worst first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from embaudit.declared.document import Column, Page, Section, Table, Value
from embaudit.measures.quality.scores import FOUND
from embaudit.questions.change.page import against_base
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import cut

if TYPE_CHECKING:
    from embaudit.questions.check.check import CheckReport

LONGEST = 90


def check_page(report: CheckReport) -> Page:
    """The verdict is the first finding and takes the place of its cause."""
    identity = [("checkpoint", report.checkpoint_id or "cannot be loaded"), ("took", f"{report.seconds:.0f} s")]
    if report.interface:
        identity[0] = (report.kind, report.interface)
    if report.base is not None:
        identity.insert(1, ("against", report.base))
    return Page(report.checkpoint, identity, report.told(), list(_sections(report)), kind="Check of")


def _sections(report: CheckReport) -> Iterator[Section]:
    """What changed against a base, if there is one, and the scores beside what needs no network."""
    if "change" in report.figures:
        yield from against_base(report.base or "the base", report.figures["change"])
    data = report.figures.get("data") or ()
    subject = "the served model" if report.kind == "endpoint" else f"the {report.kind}"
    columns = (
        *(Column("of", is_prose=True), Column("score", is_prose=True), Column("value [95 %]", ".3f")),
        Column(f"gain of {subject} [95 %]", "+.3f", bounds="+.2f"),
    )
    rows: list[tuple[Value, ...]] = []
    for one in data:
        rows.append((subject, f"{one['metric']}, {one['name']}", Estimate(**one["score"]), None))
        for name, baseline in one["baselines"].items():
            rows.append((name, "", Estimate(**baseline["score"]), Estimate(**baseline["gain"])))
    if rows:
        yield Section("Scores", [Table(columns, rows)])
    for one in (one for one in data if one.get("ranks")):
        yield from _lost(one)


def _lost(golden: dict[str, Any]) -> Iterator[Section]:
    """The golden queries of a data set that find none of their answers, the farthest first."""
    lost = sorted((one for one in golden["ranks"] if one["rank"] > FOUND), key=lambda one: -int(one["rank"]))
    columns = Column("query", is_prose=True), Column("rank", ","), Column("should find", is_prose=True)
    rows = [(cut(one["query"], LONGEST), one["rank"], cut(one["expected"], LONGEST)) for one in lost]
    if rows:
        yield Section(f"Not found among the first {FOUND}: {golden['name']}", [Table(columns, rows)])
