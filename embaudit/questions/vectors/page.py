"""The page of stored vectors: the verdict, the findings, and the figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from embaudit.declared.document import Column, Page, Section, Table, Value, count
from embaudit.questions.report import WrongRow
from embaudit.questions.vectors.crowding import FEWEST_SENTINELS
from embaudit.questions.vectors.findings import FEWEST_DIFFERENT
from embaudit.questions.vectors.neighbours import FEWEST, FEWEST_ROWS
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import punctuated, quoted

if TYPE_CHECKING:
    from embaudit.questions.vectors.crowding import Crowding
    from embaudit.questions.vectors.report import StoredReport

# What a figure is from.
EXACT, DRAWN = "every row: exact", "every row that was read: exact"
SAMPLE, INTERVAL = "a sample", "a sample: 95 % interval"


def stored_page(report: StoredReport) -> Page:
    """The verdict is the first finding and takes the place of the first problem."""
    columns = ", ".join(name if name == what else f"{name} ({what})" for what, name in report.index.columns.items())
    rows = report.alone.profile.rows if report.since is None else len(report.since.marks)
    identity = [("rows", f"{rows:,}"), ("columns", columns), ("took", f"{report.seconds:.0f} s")]
    if report.checkpoint:
        identity.insert(0, ("by", report.checkpoint))
    return Page(report.index.shown, identity, report.told(), list(_sections(report)), kind="Vectors of")


def _sections(report: StoredReport) -> Iterator[Section]:
    if report.since is not None and (wrong := report.rows()[WrongRow]):
        cells = [(row["row"], row["finding"], f"{row['since']:%Y-%m-%d}" if row["since"] else "") for row in wrong]
        columns = (Column("row"), Column("what is wrong"), Column("since"))
        yield Section("Rows that are wrong", [Table(columns, cells, brief=20)])
    yield Section("The vectors alone", [_alone(report)])
    if report.crowding is not None and report.crowding.crowding:
        yield Section("Rows that crowd", [_crowding(report.crowding)])
    if report.alone.repeats.groups:
        yield Section("One vector, several rows", [_groups(report)])
    if report.against is not None and report.against.reasons:
        yield Section("Rows that differ", [_reasons(report)])
    if report.every_row is not None and report.every_row.count:
        yield Section("Every row that differs", [_every_row(report)])


def _alone(report: StoredReport) -> Table:
    alone = report.alone
    profile = alone.profile
    exact = EXACT if report.index.drawn is None else DRAWN
    of = dict.fromkeys(alone.sampled, SAMPLE)
    dimensions = ", ".join(f"{one:,} ({count(rows, 'row')})" for one, rows in profile.dimensions.items()) or "none"
    texts = f"{alone.repeats.repeated_texts:,}" if report.index.has_texts else "no texts"
    rows: list[tuple[Value, ...]] = [
        ("dimensions", dimensions, exact),
        ("stored as", report.index.numbers, ""),
        ("numbers are", alone.precision, of.get("precision", exact)),
        ("without a vector; NaN or infinity; zeros", _three(report), exact),
        ("length", _lengths(report), exact),
        ("constant dimensions", f"{len(profile.constant):,}", exact),
        ("texts stored more than once", texts, exact),
    ]
    if alone.mean_cosine is not None:
        # A mean of nearly nothing has no sign.
        rows.append(("mean cosine of all pairs", f"{round(alone.mean_cosine, 3) + 0.0:.3f}", exact))
    if alone.effective_rank is not None:
        rows.append(("effective rank", f"{alone.effective_rank:.0f}", of.get("effective_rank", exact)))
    if (found := alone.neighbours) is not None:
        hub = "rows that have the largest hub among their ten nearest"
        figures = [("rows with a copy at a cosine of .999", found.copy_share)]
        for what, (share, low, high) in (*figures, *(() if found.is_few else [(hub, found.largest_share)])):
            if found.is_exact:
                rows.append((what, f"{share:.1%}", exact))
            else:
                rows.append((what, f"{share:.1%} [{low:.1%}, {high:.1%}]", INTERVAL))
        if found.is_few:
            rows.append((hub, f"told from {FEWEST_ROWS:,} rows on", ""))
        if found.skewness is not None:
            rows.append(("skewness of neighbour counts", f"{found.skewness:.1f}", of.get("hubness_skewness", exact)))
    if (crowding := report.crowding) is not None:
        share, low, high = crowding.share(crowding.most)
        what = f"unrelated queries with the row that comes up most {crowding.where}"
        rows.append((what, f"{share:.1%} [{low:.1%}, {high:.1%}]", f"{crowding.sentinels:,} queries: 95 % interval"))
    elif report.checkpoint and alone.copies is not None and alone.copies.texts < FEWEST_SENTINELS:
        rows.append(("rows that crowd", f"told from {FEWEST_SENTINELS:,} different texts on", ""))
    if (copies := alone.copies) is not None and (results := copies.results) is not None:
        rows.append(
            (
                "different texts among ten results",
                f"{results.different:.1f}",
                f"asked with {count(results.queries, 'text')}",
            )
        )
        rows.append((f"results that hold {results.wanted:,} different texts", f"{results.enough:,}", "95 % of these"))
    if 0 < profile.usable.sum() < FEWEST:
        rows.append(("two models or two lengths in one index", f"told from {FEWEST:,} rows on", ""))
    if profile.dimensions and alone.independent < FEWEST_DIFFERENT:
        rows.append(("collapse", f"told from {FEWEST_DIFFERENT:,} different rows on", ""))
    return Table((Column("of"), Column("value", is_prose=True), Column("from")), [row for row in rows if row[1]])


def _three(report: StoredReport) -> str:
    profile = report.alone.profile
    return f"{profile.without_vector:,}; {len(profile.not_finite):,}; {len(profile.zeros):,}"


def _lengths(report: StoredReport) -> str:
    quantiles = report.alone.norm_quantiles
    if not quantiles:
        return ""
    if report.alone.profile.is_normalised:
        return "1 (normalised)"
    low, median, high = quantiles["0"], quantiles["0.5"], quantiles["1"]
    return f"{median:.4g} ({low:.4g} to {high:.4g})"


def _groups(report: StoredReport) -> Table:
    rows: list[tuple[Value, ...]] = []
    for group in report.alone.repeats.groups:
        texts = [report.alone.shown.get(number, (None, None))[0] for number in group.numbers]
        shown = " · ".join(quoted(text) for text in texts if text is not None)
        rows.append((group.rows, group.texts, f"{group.numbers[0] + 1:,}", shown))
    columns = (
        Column("rows", ","),
        Column("texts", ","),
        Column("first row", is_right=True),
        Column("of", is_prose=True),
    )
    return Table(columns, rows)


def _crowding(found: Crowding) -> Table:
    rows: list[tuple[Value, ...]] = [
        (
            hub.label,
            f"{hub.met:,} of {found.sentinels:,}",
            Estimate(*found.share(hub)),
            hub.displaced,
            hub.copies,
            hub.excerpt,
        )
        for hub in found.crowding
    ]
    columns = (
        Column("row"),
        Column(f"{found.where} for", is_right=True),
        Column("share", ".0%", ".0%"),
        Column("rows displaced", ","),
        Column("rows with its vector", ","),
        Column("text", is_prose=True),
    )
    return Table(columns, rows, brief=20)


def _reasons(report: StoredReport) -> Table:
    assert report.against is not None
    against = report.against
    rows: list[tuple[Value, ...]] = []
    trials = int(against.compared.sum())
    for reason in against.reasons:
        shown = against.rows.at(reason.places[:1])
        rows.append(
            (
                punctuated(f"{len(reason.places):,} of them {reason.said}"),
                Estimate(len(reason.places) / trials),
                "" if against.form is None else f"{float(against.distances[list(reason.places)].max()):.2g}",
                quoted(shown.texts[0] or ""),
            )
        )
    columns = (
        Column("why", is_prose=True),
        Column("of the sample", ".1%"),
        Column("largest 1 − cos", is_right=True),
        Column("for example", is_prose=True),
    )
    return Table(columns, rows)


def _every_row(report: StoredReport) -> Table:
    assert report.every_row is not None
    found = report.every_row
    rows: list[tuple[Value, ...]] = [
        (row, one or "", f"{apart:.2g}", quoted(text)) for row, one, apart, text in found.first
    ]
    columns = (Column("row", ","), Column("id"), Column("1 − cos", is_right=True), Column("text", is_prose=True))
    return Table(columns, rows, brief=20, more=str(found.table or "--table FILE"))
