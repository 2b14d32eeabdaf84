"""The page of a switch: its verdict, the findings, the figures behind them, and what changes most, to be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Page, Part, Section, Table, Value
from embaudit.measures.quality.golden import GoldenChanges
from embaudit.questions.switch.search import ReadQuery, SearchOutcome
from embaudit.questions.switch.verdict import CutOffTransfer, ScaledPairs
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import cut

if TYPE_CHECKING:
    from embaudit.questions.switch.switch import SwitchReport

# Characters of a text in a table, and points of a chart.
LONGEST, POINTS = 90, 600
# Rows of a table to read, where space is limited: three queries.
BRIEF = 9


def switch_page(report: SwitchReport) -> Page:
    """The verdict is the first finding."""
    identity = [("old", report.old_id), ("new", report.new_id), ("took", f"{report.seconds:.0f} s")]
    return Page(
        f"{report.old} → {report.new}",
        [(name, value) for name, value in identity if value],
        report.told(),
        list(_sections(report)),
        kind="Switch",
    )


def _sections(report: SwitchReport) -> Iterator[Section]:
    for one in report.searches:
        yield Section(f"Search: {one.name}", list(_search(one)))
    if report.cut_offs:
        charts = [_scale_chart(scale, report.cut_offs) for scale in report.scales]
        yield Section("Cut-offs", [_cut_offs(report), _decisions(report), *charts])
    for golden in report.golden:
        if golden.lost or golden.won:
            yield Section(f"Golden queries of {golden.name}", [_golden(golden)])
    if report.quality:
        yield Section("Quality", [_quality(report)])


def _search(one: SearchOutcome) -> Iterator[Part]:
    halves = " and ".join(f"{count:,}" for count in one.documents)
    fitted = " and ".join(f"{count:,}" for count in one.fitted_on)
    yield _ways(one)
    yield (
        f"In halves of {halves} documents, each searched by itself; maps fitted on {fitted} texts outside of it."
        if one.bridge is not None
        else f"In all {halves} documents; too few for halves, and so for a bridge."
    )
    yield _overlap_chart(one)
    for title, read in (("Queries that change most", one.read), ("Texts whose neighbours change most", one.read_texts)):
        if read:
            yield _read(title, read)


def _ways(one: SearchOutcome) -> Table:
    columns = [
        Column("search", is_prose=True),
        Column("of NEW's first ten [95 %]", ".3f"),
        *([Column("recall@10", ".3f"), Column("nDCG@10", ".3f")] if one.is_judged else []),
        *([Column("of NEW's nDCG@10", ".3f")] if one.is_judged else []),
        Column("cosine with OLD's query", ".2f"),
    ]
    rows: list[tuple[Value, ...]] = []
    for way in one.ways.values():
        judged = [way.recall, way.ndcg, way.kept] if way.recall is not None and way.ndcg is not None else []
        cells = [figure for figure in (way.found, *judged) if figure is not None]
        rows.append((way.name, *cells, way.fidelity))
    return Table(columns, rows)


def _overlap_chart(one: SearchOutcome) -> Chart:
    counts = np.bincount(np.rint(10 * one.overlaps).astype(int), minlength=11)
    marks = [
        Mark(x=share - 0.4, x2=share + 0.4, y=0, y2=int(count), label=f"{share} of 10 the same: {count:,}")
        for share, count in enumerate(counts)
        if count
    ]
    panel = Panel(
        [Layer("rect", marks, "one")],
        Axis("of the first ten, the same", "d", (-0.5, 10.5)),
        Axis("queries", ",d", has_zero=True),
    )
    return Chart(
        "How many of a query's first ten stay",
        "Each bar counts queries. All at 10: nobody sees a difference.",
        [[panel]],
    )


def _read(title: str, read: tuple[ReadQuery, ...]) -> Table:
    columns = (
        Column("of ten, stay", ".0f"),
        Column("query or text", is_prose=True),
        Column("OLD finds", is_prose=True),
        Column("NEW finds", is_prose=True),
    )
    rows: list[tuple[Value, ...]] = []
    for one in read:
        for place in range(max(len(one.old), len(one.new))):
            old, new = (cut(side[place], LONGEST) if place < len(side) else "" for side in (one.old, one.new))
            first = place == 0
            rows.append((10 * one.overlap if first else None, cut(one.query, LONGEST) if first else "", old, new))
    return Table(columns, rows, title, brief=BRIEF)


def _cut_offs(report: SwitchReport) -> Table:
    columns = (
        Column("on", is_prose=True),
        Column("OLD's", ".3f"),
        Column("chosen", is_prose=True),
        Column("same share of unrelated [95 %]", ".3f"),
        Column("same recall [95 %]", ".3f"),
    )
    rows: list[tuple[Value, ...]] = [
        (one.name, one.old, one.how, *(_number(one, found) for found in (one.same_share, one.same_recall)))
        for one in report.cut_offs
    ]
    return Table(columns, rows, "What a cut-off becomes")


def _decisions(report: SwitchReport) -> Table:
    columns = (
        Column("on", is_prose=True),
        Column("OLD's", ".3f"),
        Column("unrelated pass", is_right=True),
        Column("matching kept", is_right=True),
        Column("flip [95 %]", ".1%", bounds=".1%"),
        Column("flip at the new one [95 %]", ".1%", bounds=".1%"),
    )
    rows: list[tuple[Value, ...]] = []
    for one in report.cut_offs:
        changes = [_change(*both) for both in (one.let_through, one.kept)]
        rows.append((one.name, one.old, *changes, one.flips_at_old, one.flips_at_new))
    return Table(columns, rows, "Decisions if the number stays, and if it becomes the new one")


def _number(one: CutOffTransfer, found: Estimate) -> Value:
    return found if one.is_told(found) else "too few to tell"


def _change(before: Estimate, after: Estimate) -> str:
    return "" if before.value is None or after.value is None else f"{before.value:.1%} → {after.value:.1%}"


def _scale_chart(scale: ScaledPairs, cut_offs: tuple[CutOffTransfer, ...]) -> Chart:
    """Each pair by its two similarities, with the first cut-off and what it becomes."""
    layers = []
    kinds = {"unrelated": scale.is_unrelated, "matching": scale.is_matching}
    kinds["between"] = ~(scale.is_unrelated | scale.is_matching)
    for name, chosen in kinds.items():
        places = np.flatnonzero(chosen)[:POINTS]
        marks = [Mark(x=float(scale.old[place]), y=float(scale.new[place]), series=name) for place in places]
        if marks:
            layers.append(Layer("point", marks, size=0.6))
    own = [one for one in cut_offs if one.name == scale.name][:1]
    for one in own:
        lines = [Mark(x=one.old, label=f"cut-off of OLD, {one.old:.3f}")]
        layers.append(Layer("rule", lines, "ink", is_dashed=True, is_data=False))
        if one.new.value is not None:
            lines = [Mark(y=one.new.value, label=f"becomes {one.new.value:.3f}")]
            layers.append(Layer("rule", lines, "ink", is_dashed=True, is_data=False))
    panel = Panel(layers, Axis("similarity by OLD", ".2f"), Axis("similarity by NEW", ".2f"), height=320)
    return Chart(
        f"The scale, {scale.name}",
        "A point is a pair of texts. The dashed lines are OLD's cut-off and what it becomes: pairs above left come to "
        "pass, those below right cease to.",
        [[panel]],
        tones={"unrelated": "two", "matching": "three", "between": "soft"},
    )


def _golden(golden: GoldenChanges) -> Table:
    rows: list[tuple[Value, ...]] = []
    for what, found in (("lost", golden.lost), ("won", golden.won)):
        rows += [(what, cut(one.query, LONGEST), one.old, one.new, cut(one.expected, LONGEST)) for one in found]
    columns = (
        Column("with NEW"),
        Column("query", is_prose=True),
        Column("rank by OLD", ","),
        Column("rank by NEW", ","),
        Column("should find", is_prose=True),
    )
    return Table(columns, rows)


def _quality(report: SwitchReport) -> Table:
    columns = (
        Column("score", is_prose=True),
        Column("OLD [95 %]", ".3f"),
        Column("NEW [95 %]", ".3f"),
        Column("NEW − OLD [95 %]", "+.3f", bounds="+.3f"),
    )
    rows: list[tuple[Value, ...]] = [
        (f"{one.metric}, {one.name}", one.old, one.new, one.change) for one in report.quality
    ]
    return Table(columns, rows)
