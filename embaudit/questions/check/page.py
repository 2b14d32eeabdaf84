"""The page of a check: its verdict, then the findings, worst first.

The section of a check's page about a base: what moved by block, scores side by side, vectors by kind of text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from embaudit.declared.document import Column, Page, Section, Table, Value
from embaudit.measures.quality.scores import FOUND
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import cut

if TYPE_CHECKING:
    from embaudit.questions.check.check import CheckReport


def against_base(base: str, figures: Mapping[str, Any]) -> Iterator[Section]:
    """One section; none if no part of the comparison ran.

    Args:
        figures: of ``embaudit.questions.change``.
    """
    tables = [
        table
        for table in (_scores(figures.get("data")), _blocks(figures.get("weights")), _vectors(figures.get("vectors")))
        if table is not None
    ]
    if tables:
        yield Section(f"Against {base}", tables)


def _scores(data: Sequence[Mapping[str, Any]] | None) -> Table | None:
    columns = (
        *(Column("score", is_prose=True), Column("texts")),
        *(Column("base", ".3f"), Column("tuned", ".3f"), Column("gain [95 %]", "+.3f", bounds="+.3f")),
    )
    rows = [
        (
            f"{one['metric']}, {one['name']}",
            "given" if one["is_given"] else "sample",
            *(one[side]["value"] for side in ("base", "tuned")),
            Estimate(**one["gain"]),
        )
        for one in data or ()
    ]
    return Table(columns, rows, "Scores side by side, on the same texts") if rows else None


def _blocks(weights: Mapping[str, Any] | None) -> Table | None:
    if not weights or weights["extent"] == "incomparable":
        return None
    columns = (
        *(Column("block", is_prose=True), Column("tensors that moved", is_right=True)),
        *(Column("numbers that moved", ".1%"), Column("‖Δ‖/‖W‖", ".2g"), Column("note", is_prose=True)),
    )
    rows: list[tuple[Value, ...]] = [
        (
            block["name"],
            f"{block['tensors_moved']} of {block['tensors']}",
            block["moved"] / block["compared"] if block["compared"] else None,
            block["relative"],
            "has nothing to do with the base's" if block["is_replaced"] else "" if block["compared"] else "only in one",
        )
        for block in weights["blocks"]
    ]
    return Table(columns, rows, "What moved in the weights, by block")


def _vectors(vectors: Sequence[Mapping[str, Any]] | None) -> Table | None:
    columns = (
        *(Column("texts", is_prose=True), Column("how many", ","), Column("1 − cosine, median", ".2g")),
        *(Column("largest", ".2g"), Column("text that moved most", is_prose=True, is_detail=True)),
    )
    rows = [
        (one["kind"], one["texts"], one["median"], one["most"], one["furthest"][:80].strip() or "(blank)")
        for one in vectors or ()
    ]
    return Table(columns, rows, "How far vectors moved, by kind of text") if rows else None


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
