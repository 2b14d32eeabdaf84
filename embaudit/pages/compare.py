"""A page comparing audits with the first: what got better or worse, and what is not compared.

Measures whose figures are shares, side by side: one or more checkpoints at a glance, each item below.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from statistics import fmean
from typing import Any

from embaudit.declared.chart import Axis, Chart, Layer, Mark, Panel
from embaudit.declared.document import Column, Page, Part, Section, Table, Value, count
from embaudit.declared.rule import LEVELS, Finding, Level
from embaudit.measures import MEASURES
from embaudit.pages.sides import MEANS_NOTHING, Comparison, Side, compare_sides
from embaudit.questions.check.verdict import FIRST
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


FIGURES_SHOWN, TOKENS_SHOWN = 15, 10
CHANGES: dict[str, Level] = {"worse": "problem", "better": "ok", MEANS_NOTHING: "not measured"}


def comparison_page(sides: Sequence[Side]) -> Page:
    """The page comparing all later sides with the first."""
    first, *others = sides
    comparisons = [compare_sides(first, other) for other in others]
    glance = shares_section(
        [(side.name, [one for audit in reversed(side.audits) for one in audit.figures]) for side in sides]
    )
    return Page(
        kind="Compared with",
        title=first.name,
        identity=[
            ("then" if place else "first", f"{audit.source}, audit {audit.audit_id}, {audit.finished}")
            for place, side in enumerate(sides)
            for audit in side.audits
        ],
        findings=[
            *(finding for side in sides for finding in _verdict(side)),
            *(
                finding
                for side, one in zip(others, comparisons, strict=True)
                for finding in _findings(first, side, one)
            ),
        ],
        sections=[
            Section("Findings", [_finding_table(sides, comparisons)]),
            *([glance] if glance else []),
            *(Section(side.name, list(_parts(side, one))) for side, one in zip(others, comparisons, strict=True)),
        ],
    )


def _verdict(side: Side) -> Iterator[Finding]:
    """Whether it may be served, where that is in question: before any figure."""
    kind = side.verdict.get("kind")
    if kind == "do not serve":
        yield Finding("problem", f"{side.name}: {side.verdict['line']}")
    elif kind is None:
        checkpoint = f"embaudit audit {side.source} --measures integrity,quality"
        yield Finding("not measured", f"{side.name}: whether it is sound was not checked.", advice=checkpoint)


def _findings(first: Side, side: Side, comparison: Comparison) -> Iterator[Finding]:
    yield _headline(side, comparison)
    rank = LEVELS.index
    worse = [
        ".".join(key)
        for key, (before, now) in comparison.findings.items()
        if now["level"] in ("problem", "look")
        # Going from too little evidence to some is not a change for the worse.
        and before["level"] != "not measured"
        and rank(now["level"]) < rank(before["level"])
    ]
    # A check of integrity or quality that finds nothing is no finding of its own.
    known = {key for audit in first.audits for key in audit.findings}
    worse += [
        ".".join(key)
        for key, row in side.newest.findings.items()
        if key[0] in FIRST and key not in known and first.verdict and row["level"] in ("problem", "look")
    ]
    if worse:
        yield Finding("look", f"{side.name}: {count(len(worse), 'finding')} got worse: {', '.join(worse)}.")
    if comparison.precision:
        yield Finding("look", f"{side.name}: {comparison.precision}.")
    otherwise = [what for what in comparison.run_otherwise if what != "dtype" or not comparison.precision]
    if otherwise:
        yield Finding("look", f"{side.name}: it was run with different {', '.join(otherwise)}.")
    for why, names in comparison.not_compared.items():
        yield Finding("not measured", f"{side.name}: {count(len(names), 'figure')} not compared: {why}.")


def _headline(side: Side, comparison: Comparison) -> Finding:
    """How many figures got worse, and how many could not be compared: without the second, the first says little."""
    changes = Counter(row["change"] for row in comparison.figures)
    compared, missed = len(comparison.figures), sum(map(len, comparison.not_compared.values()))
    said = (
        f"of {count(compared, 'figure')} compared, {changes['worse']} got worse by more than noise, "
        f"{changes['better']} better"
        if compared
        else "there are no figures to compare"
    )
    if comparison.means_nothing:
        said += (
            f"; {count(changes[MEANS_NOTHING], 'figure')} moved the other way and mean nothing, because "
            f"{comparison.means_nothing}"
            if changes[MEANS_NOTHING]
            else f"; {comparison.means_nothing}"
        )
    if missed:
        said += f"; {missed:,} could not be compared"
    # What could not be compared has a line of its own.
    level: Level = "look" if changes["worse"] else "ok" if compared else "not measured"
    return Finding(level, f"{side.name}: {said}.")


def _finding_table(sides: Sequence[Side], comparisons: Sequence[Comparison]) -> Table:
    """Every finding on every side, those whose level is another now first.

    Where both asked the same, they are those of that question, otherwise the newest.
    """
    newest = [
        {key: found for audit in reversed(side.audits) for key, found in audit.findings.items()} for side in sides
    ]
    keys = list(dict.fromkeys(key for found in newest for key in found))
    levels: dict[str, Level] = {level: level for level in LEVELS}
    columns = [Column("finding"), *(Column(side.name, levels=levels) for side in sides), Column("now", is_prose=True)]
    rows = []
    for key in keys:
        pairs = [comparison.findings.get(key) for comparison in comparisons]
        earlier = next((pair[0] for pair in reversed(pairs) if pair), newest[0].get(key))
        found = [earlier, *(pair[1] if pair else own.get(key) for pair, own in zip(pairs, newest[1:], strict=True))]
        last = found[-1]
        said = last["sentence"] if last and (earlier is None or last["level"] != earlier["level"]) else ""
        rows.append((".".join(key), *(one["level"] if one else "" for one in found), said))
    return Table(columns, sorted(rows, key=lambda row: not row[-1]))


FIGURES = {
    **{"figure": Column("figure"), "item": Column("item"), "predecessor_value": Column("before", ".4g")},
    **{"value": Column("now", ".4g"), "delta": Column("change [95 %]", "+.3g", "+.3g", ends=("low", "high"))},
    "change": Column("", levels=CHANGES),
}
TOKENS = {
    **{"token": Column("token"), "severe": Column("severe only"), "script": Column("script")},
    "loss": Column("loss [95 %]", ".3f", ends=("low", "high")),
    "severity": Column("severity", levels={"strong": "problem", "moderate": "look"}),
}


def _parts(side: Side, comparison: Comparison) -> Iterator[Part]:
    rows = [{**row, "figure": f"{row['summary']}.{row['measure']}"} for row in comparison.figures]
    yield Table.of(FIGURES, rows, "Figures, those that got worse first", brief=FIGURES_SHOWN, more="--json")
    if comparison.tokens is None:
        yield f"Severe tokens are not compared: {comparison.tokens_why}."
        return
    alone = Counter(row["severe"] for row in comparison.tokens)
    yield (
        f"Severe tokens (moderate or strong): {alone['in this one']} only on this side, {alone['in the first']} only "
        "in the first. A search lists only a limited number of tokens, and the last ones vary by chance."
    )
    yield Table.of(TOKENS, comparison.tokens, brief=TOKENS_SHOWN, more="--json")


def as_json(sides: Sequence[Side]) -> dict[str, Any]:
    """The comparison as plain values: the audits of every side, and each later side against the first."""
    first, *others = sides
    return {
        "audits": [
            {
                **{"side": place, "audit_id": audit.audit_id, "source": audit.source, "finished": audit.finished},
                "measures": [*audit.versions],
                "findings": [{"measure": key[0], "name": key[1], **row} for key, row in audit.findings.items()],
            }
            for place, side in enumerate(sides)
            for audit in side.audits
        ],
        "against_first": [_comparison_json(compare_sides(first, other)) for other in others],
    }


def _comparison_json(comparison: Comparison) -> dict[str, Any]:
    findings = [
        {"measure": measure, "name": name, "before": before["level"], "now": now["level"]}
        for (measure, name), (before, now) in comparison.findings.items()
    ]
    return {**asdict(replace(comparison, findings={})), "findings": findings}
