"""Measures whose figures are shares, side by side: one or more checkpoints at a glance, each item below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Part, Section, Table, Value
from embaudit.measures import MEASURES
from embaudit.warehouse.regression import Figure

# (table, column) -> the measure whose share it is.
SHARES = {(table, column): name for name, measure in MEASURES.items() for table, column in measure.shares.items()}
_LISTED = ", ".join(f"('{table}', '{column}')" for table, column in SHARES)
# Tables are named on both sides of the join: DuckDB reads no others then, and answers in a third of the time.
_TABLES = ", ".join(f"'{table}'" for table in sorted({table for table, _ in SHARES}))
FACTS = {
    "shares": (
        "SELECT summary, item, measure, value, low, high "
        f"FROM (FROM summary_figure WHERE summary IN ({_TABLES})) "
        f"LEFT JOIN (FROM summary_interval WHERE summary IN ({_TABLES})) USING (audit_id, summary, item, measure) "
        f"WHERE audit_id = ? AND (summary, measure) IN ({_LISTED}) ORDER BY ALL"
    )
}
MORE = "embaudit query probes"
# Of a single measure, its own section shows as much.
LEAST = 2
ROW, MARGIN = 20, 24
SHARE = Axis("", ".0%", domain=(0.0, 1.0))


def of_one_audit(facts: dict[str, Any]) -> Section | None:
    """The chart of an audit's page."""
    return shares_section([(facts["source"], [Figure(**row) for row in facts["shares"]])])


def shares_section(sides: Sequence[tuple[str, Iterable[Figure]]]) -> Section | None:
    """A chart of all such measures, and one of their items.

    Args:
        sides: the name of each checkpoint or audit, with its figures.

    Returns:
        None if the sides have fewer than two such measures in common.
    """
    by_measure: dict[str, dict[str, dict[str, Figure]]] = {}
    for side, figures in sides:
        for figure in figures:
            if measure := SHARES.get((figure.summary, figure.measure)):
                by_measure.setdefault(measure, {}).setdefault(figure.item, {})[side] = figure
    # Means are only compared over the same items.
    common = {
        measure: shared
        for measure, items in by_measure.items()
        if (shared := {item: found for item, found in items.items() if len(found) == len(sides)})
    }
    if len(common) < LEAST:
        return None
    names = [side for side, _ in sides]
    ordered = {measure: common[measure] for measure in MEASURES if measure in common}
    parts: list[Part] = [_overview(ordered, names), _table(ordered, names)]
    # On an audit's own page, the sections of the measures show them.
    if len(names) > 1:
        parts.append(_items(ordered, names))
    return Section("At a glance", parts)


def _overview(measures: dict[str, dict[str, dict[str, Figure]]], names: Sequence[str]) -> Chart:
    points, spans = [], []
    for measure, items in measures.items():
        for name in names:
            values = [found[name].value for found in items.values()]
            series = name if len(names) > 1 else ""
            points.append(Mark(x=fmean(values), y=measure, series=series, label=f"{fmean(values):.2f}"))
            spans.append(Mark(x=min(values), x2=max(values), y=measure, series=series))
    panel = Panel(
        [Layer("rule", spans, is_data=False), Layer("point", points, size=1.4)],
        SHARE,
        Axis(categories=list(measures)),
        height=ROW * len(measures) + MARGIN,
    )
    return Chart(
        "What users complain about",
        "Points: the mean over what each measure looks at; lines: from the worst item "
        "to the best. Further right is better. Each measure has a share of its own, so compare checkpoints, not rows.",
        [[panel]],
        more=MORE,
    )


def _table(measures: dict[str, dict[str, dict[str, Figure]]], names: Sequence[str]) -> Table:
    """The mean of each measure and its worst item, for media without charts, too."""
    rows: list[list[Value]] = []
    for measure, items in measures.items():
        row: list[Value] = [measure]
        for name in names:
            worst = min(items, key=lambda item: items[item][name].value)
            row += [fmean(found[name].value for found in items.values()), f"{worst} ({items[worst][name].value:.2f})"]
        rows.append(row)
    titles = [("mean", "worst item")] if len(names) == 1 else [(name, f"worst item, {name}") for name in names]
    columns = [Column("measure"), *(one for mean, worst in titles for one in (Column(mean, ".2f"), Column(worst)))]
    return Table(columns, rows, more=MORE)


def _items(measures: dict[str, dict[str, dict[str, Figure]]], names: Sequence[str]) -> Chart:
    panels = [_panel(measure, items, names) for measure, items in measures.items()]
    return Chart(
        "Every item",
        "Points: the share of each item, with its 95 % interval where it has one. Further right is better.",
        [[panel] for panel in panels],
        more=MORE,
    )


def _panel(measure: str, items: dict[str, dict[str, Figure]], names: Sequence[str]) -> Panel:
    order = sorted(items, key=lambda item: items[item][names[0]].value)
    marks = list(_marks(items, names))
    return Panel(
        [
            Layer("rule", [mark for mark in marks if mark.x2 is not None], is_data=False),
            Layer("point", [mark for mark in marks if mark.x2 is None]),
        ],
        SHARE,
        Axis(categories=order),
        title=measure,
        height=ROW * len(items) + MARGIN,
    )


def _marks(items: dict[str, dict[str, Figure]], names: Sequence[str]) -> Iterator[Mark]:
    for item, found in items.items():
        for name in names:
            figure, series = found[name], name if len(names) > 1 else ""
            yield Mark(x=figure.value, y=item, series=series, label=f"{figure.value:.2f}")
            if figure.low is not None and figure.high is not None:
                yield Mark(x=figure.low, x2=figure.high, y=item, series=series)
