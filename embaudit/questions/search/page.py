"""The page of a store's search: the verdict, what other settings would give, and where recall falls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.chart import interval as interval_marks
from embaudit.declared.document import Column, Page, Section, Table, Value
from embaudit.questions.search.curve import NAMES
from embaudit.questions.search.recall import Results

if TYPE_CHECKING:
    from embaudit.questions.search.curve import TriedSetting
    from embaudit.questions.search.report import SearchReport


def search_page(report: SearchReport) -> Page:
    """The verdict is the first finding and takes the place of the first problem."""
    identity = [("took", f"{report.seconds:.0f} s")]
    if report.plain is not None:
        identity.insert(0, ("queries", f"{report.queries[0]:,} {report.queries[1]}"))
    if report.profile is not None:
        identity.insert(0, ("rows", f"{report.profile.rows:,}"))
    if report.search is not None:
        ranks = NAMES.get(report.search.metric, "")
        identity.insert(0, ("search", f"{report.search.index}{f', by {ranks}' if ranks else ''}"))
    if report.settings:
        identity.append(("settings", ", ".join(f"{name} {value:,}" for name, value in report.settings.items())))
    if report.function:
        identity.append(("encoded by", report.function))
    return Page(report.store.shown, identity, report.told(), list(_sections(report)), kind="Search of")


def _sections(report: SearchReport) -> Iterator[Section]:
    if report.plain is not None:
        yield Section("Beside exact search", [_beside_exact(report)])
    if len(report.tried) > 1:
        yield Section("Settings of a query", [_tried(report), _curve(report)])
    if report.tenants:
        yield Section("By tenant", [_tenants(report)])
    if report.thirds:
        yield Section("Where it finds less", [_thirds(report)])
    if report.ranked is not None and report.ranked.changed:
        yield Section("Metrics", [_metrics(report)])


def _beside_exact(report: SearchReport) -> Table:
    rows: list[tuple[Value, ...]] = []
    for one in (report.plain, report.filtered):
        if one is not None:
            rows += [_row(one.where or "all rows", one.rows, outcome) for outcome in (one.first, one.many)]
    columns = (
        Column("among", is_prose=True),
        Column("rows", ","),
        Column("asked for", ","),
        Column("recall [95 %]", ".3f", bounds=".3f"),
        Column("queries with fewer", ","),
    )
    return Table(columns, rows)


def _tenants(report: SearchReport) -> Table:
    """The worst first."""
    columns = (
        Column("value", is_prose=True),
        Column("rows", ","),
        Column("recall@10 [95 %]", ".3f", bounds=".3f"),
        Column("queries with fewer than 10", ","),
    )
    told = sorted(report.tenants, key=lambda one: 2.0 if one.recall is None else one.recall.known)
    return Table(columns, [(one.value, one.rows, one.recall, one.fewer) for one in told], brief=12)


def _row(among: str, rows: int, outcome: Results) -> tuple[Value, ...]:
    return (among, rows, outcome.truth.k, outcome.recall, outcome.fewer)


def _tried(report: SearchReport) -> Table:
    columns = (
        Column("setting", is_prose=True),
        Column("recall@10 [95 %]", ".3f", bounds=".3f"),
        Column("time of a query", is_right=True),
    )
    rows: list[tuple[Value, ...]] = [
        (one.shown if one.changed else f"{one.shown} (present)", one.recall, _multiple(one.times))
        for one in sorted(report.tried, key=lambda one: tuple(one.settings.values()))
    ]
    return Table(columns, rows, brief=12)


def _curve(report: SearchReport) -> Chart:
    """Recall over time, the present setting outlined."""
    tried = sorted(report.tried, key=lambda one: one.times)
    line = [Mark(x=one.times, y=one.recall.value, label=_label(one)) for one in tried]
    bars = [mark for one in tried for mark in interval_marks(one.times, one.recall.low, one.recall.high)]
    now = [Mark(x=one.times, y=one.recall.value, label=f"{_label(one)} (present)") for one in tried if not one.changed]
    goal = [Mark(y=report.target, label=f"wanted: {report.target:.2f}")]
    layers = [
        Layer("rule", goal, "soft", is_dashed=True, is_data=False),
        Layer("rule", bars, "one", is_data=False),
        Layer("line", line, "one", is_data=False),
        Layer("point", line, "one"),
        Layer("point", now, "two", is_data=False, size=1.6, is_outlined=True),
    ]
    times = Axis("time of a query, as a multiple of the present", "~g", is_log=True)
    return Chart(
        "Recall beside time",
        "Each point is a setting of a query; the outlined one is in force. The dashed line is the wanted recall.",
        [[Panel(layers, times, Axis("recall@10", ".2f", (0.0, 1.0)), height=280)]],
    )


def _multiple(times: float) -> str:
    return f"× {times:.0f}" if times >= 10 else f"× {times:.2g}"


def _label(one: TriedSetting) -> str:
    return f"{one.shown}: {one.recall.value:.3f} at {_multiple(one.times)}"


def _thirds(report: SearchReport) -> Table:
    columns = (
        Column("neighbours", is_prose=True),
        Column("how many", ","),
        Column("found [95 %]", ".3f", bounds=".3f"),
    )
    return Table(columns, [(one.which, one.neighbours, one.found) for one in report.thirds])


def _metrics(report: SearchReport) -> Table:
    ranked = report.ranked
    assert ranked is not None
    columns = (
        Column("the store ranks by", is_prose=True),
        Column("another metric", is_prose=True),
        Column("of the first ten, others [95 %]", ".3f", bounds=".3f"),
    )
    rows: list[tuple[Value, ...]] = [
        (NAMES[ranked.store], NAMES[metric], share) for metric, share in ranked.changed.items()
    ]
    scores = f"Its scores are {ranked.scores}, {ranked.lowest:.3g} to {ranked.highest:.3g} in these results."
    return Table(columns, rows, scores if ranked.scores else "")
