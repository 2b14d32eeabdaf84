"""The page of some searches: of one, the walk in a few lines; of many, where they were lost, and each by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from embaudit.declared.document import Column, Page, Section, Table, Value
from embaudit.questions.why.above import counted_kinds
from embaudit.questions.why.case import Case, Diagnosis, heading_of
from embaudit.questions.why.mends import TriedMend
from embaudit.questions.why.stage_trace import StageTrace
from embaudit.questions.why.unexpected import LEFT_OUT, CameUp
from embaudit.statistics import exact_share
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import cut, quoted

if TYPE_CHECKING:
    from embaudit.questions.why.report import WhyReport

# Characters of a text in a cell, rows above one that are shown, and cases of a page that are walked line by line.
LONGEST, ABOVE, WALKED = 70, 10, 20


def why_page(report: WhyReport) -> Page:
    """The verdict, then the walk."""
    identity = [("by", report.function), ("took", f"{report.seconds:.0f} s")]
    if encodes := report.walked.encodes:
        identity.append(("tried", f"{encodes:,} {'text' if encodes == 1 else 'texts'} encoded for it"))
    cases = report.cases
    if len(cases) == 1:
        identity.insert(0, ("query", cut(cases[0][0].query, LONGEST)))
    return Page(report.store.shown, identity, report.told(), list(_sections(report)), kind="Why, in")


def _sections(report: WhyReport) -> Iterator[Section]:
    cases = report.cases
    if len(cases) == 1:
        case, lost = cases[0]
        yield Section("The walk", [_walk(report, case, lost, _trace(report, 0))])
        if (up := report.came_up.get(0)) is not None and up.left_out:
            yield Section("Words left out", [_left_out(up)])
        if case.above:
            yield Section("Above it", [_above(case)])
        if (trace := _trace(report, 0)) is not None and trace.lost_at and trace.instead:
            yield Section("In its place", [trace.table()])
        return
    yield Section("Where they were lost", [_shares(report)])
    if report.stages is not None and report.stages.traces:
        yield report.stages.section()
    if report.mends:
        yield Section("What would find them", [_mends(report)])
    yield Section("Each of them", [_each(report)])
    lost_later = {} if report.stages is None else report.stages.lost
    shown = [
        place for place, (_, lost) in enumerate(cases) if lost.lost not in ("found", "not shown") or place in lost_later
    ]
    for place in shown[:WALKED]:
        case, lost = cases[place]
        up = report.came_up.get(place)
        left_out = [_left_out(up)] if up is not None and up.left_out else []
        trace = lost_later.get(place)
        instead: list[str | Table] = [] if trace is None else [trace.told_with_mend]
        if trace is not None and trace.instead:
            instead.append(trace.table())
        yield Section(cut(case.query, LONGEST), [lost.told, _walk(report, case, lost, trace), *left_out, *instead])


def _trace(report: WhyReport, place: int) -> StageTrace | None:
    return None if report.stages is None else report.stages.traces.get(place)


def _walk(report: WhyReport, case: Case, lost: Diagnosis, trace: StageTrace | None) -> Table:
    rows = [
        ("row", _row(report, case)),
        ("function", _function(report, case)),
        ("search", _search(report, case)),
        ("words", _words(report, case)),
    ]
    if (up := next((one for one in report.came_up.values() if one.case is case), None)) is not None:
        rows.append(("itself", _is_itself(up)))
    if case.piece is not None:
        rows.append(("pieces", _pieces(case)))
    if case.field is not None:
        said = (
            f"with {case.field.name} before its text it would be {case.field.rank:,}, by it alone {case.field.alone:,}"
        )
        rows.append(("fields", said))
    if case.sticky:
        rows.append(("tokens", f"without {', '.join(case.sticky[:5])} it is {case.sticky_rank:,}"))
    if case.readings:
        rows.append(("asked", "; ".join(f"{said} {rank:,}" for said, rank in case.readings)))
    if case.also is not None:
        rows.append(("also", str(case.also)))
    if lost.trials:
        rows.append(("mends", "; ".join(map(_tried, lost.trials))))
    if trace is not None:
        rows.append(("stages", trace.told))
    return Table((Column("step"), Column("what it shows", is_prose=True)), [row for row in rows if row[1]])


def _left_out(up: CameUp) -> Table:
    """Words without which the row would be farther, the farthest first."""
    rows: list[tuple[Value, ...]] = [
        (" and ".join(one.words), one.side, one.attempt.rank) for one in up.left_out[:LEFT_OUT]
    ]
    return Table((Column("without", is_prose=True), Column("of the"), Column("rank", ",")), rows)


def _is_itself(up: CameUp) -> str:
    """What of the row itself brings it up."""
    said = [
        f"in {up.case.in_results:.0%} of other rows' first ten",
        f"{up.words:,} words, a usual text {up.usual:.0f}" if up.usual else "",
        f"its text has {up.share:.0%} of the query's words, by weight" if up.share else "",
        f"by its own vector {up.again:,}" if up.again is not None else "",
    ]
    return "; ".join(filter(None, said))


def _tried(trial: TriedMend) -> str:
    if trial.why_not:
        return f"{trial.mend.name}, not tried: {trial.why_not}"
    then = "not ranked" if trial.after is None else f"{trial.after:,}"
    return f"{trial.mend.name} {then}{'' if trial.is_confirmed else ' (not enough)'}"


def _mends(report: WhyReport) -> Table:
    """The cheapest first: how many lost queries each finds, and how many that none before does."""
    rows: list[tuple[Value, ...]] = [
        (one.mend.name, one.more, one.found, one.mend.cost.shown, one.mend.done) for one in report.mends
    ]
    columns = (
        Column("would be found", is_prose=True),
        Column("more", ","),
        Column("of all", ","),
        Column("costs", is_prose=True),
        Column("tried so", is_prose=True, is_detail=True),
    )
    return Table(columns, rows)


def _row(report: WhyReport, case: Case) -> str:
    row = case.row
    if row is None:
        return f"none with the id or text {quoted(case.expected)}"
    length = "" if row.text is None else f", {len(row.text):,} characters"
    start = f"{row.id or f'row {row.number + 1:,}'}{length}"
    if case.vector:
        return f"{start}; its vector is {case.vector}"
    if case.passes is False:
        return f"{start}; the filter leaves it out"
    read = case.read
    of = f", of the first {read.limit:,} of its {read.tokens:,} tokens" if read is not None and read.is_cut else ""
    if case.is_own is None:
        return f"{start}; whether its vector is the function's is not known"
    how = ""
    if case.apart is not None:
        how = f" (1 − cosine {case.apart:.2g})" if case.apart > 0 else " to the last bit"
    return f"{start}; its vector is {'' if case.is_own else 'not '}the function's{how}{of if case.is_own else ''}"


def _function(report: WhyReport, case: Case) -> str:
    if case.rank is None:
        return "not ranked"
    cosine = "" if case.cosine is None else f" (cosine {case.cosine:.2f})"
    said = f"exact rank {case.rank:,} of {report.walked.rows:,}{cosine}"
    odd = counted_kinds(case.above)
    return f"{said}; above it {odd}" if odd else said


def _search(report: WhyReport, case: Case) -> str:
    answer = case.answer
    if answer is None:
        why = _not_asked(report, case)
        return f"not asked: {why}" if why else ""
    if answer.failed:
        return f"not measured: {answer.failed}"
    how = ", ".join(filter(None, (answer.index, answer.settings)))
    how = f" ({how})" if how else ""
    if answer.rank is not None:
        same = ", too: nothing is lost there" if answer.rank == case.rank else ""
        return f"the store has it at {answer.rank:,}{same}{how}"
    if answer.copy is not None:
        return f"the store has a copy of it, {answer.copy[0]}, at {answer.copy[1]:,}{how}"
    finds = "".join(f"; {said} finds it at {rank:,}" for said, rank in answer.finds[:1])
    wide = f", and has it at {answer.wide:,} of a hundred" if answer.wide is not None else ""
    given = f"not among the {len(answer.given):,} that the store gives" if answer.given else "the store gives none"
    return f"{given}{wide}{finds}{how}"


def _not_asked(report: WhyReport, case: Case) -> str:
    """Why the store's own search was not asked for a row; empty if there was nothing to ask for."""
    if case.row is None or not case.can_be_searched or case.rank is None:
        return ""
    if report.not_searched:
        return report.not_searched
    if report.store.search is None:
        return "the store has none that can be asked: ranks are exact"
    if case.row.id is None:
        return "what it gives has ids, and the row has none: ranks are exact"
    return "it cannot be asked with the filter: ranks are exact"


def _words(report: WhyReport, case: Case) -> str:
    if report.walked.gathered.texts is None or case.rank is None:
        return ""
    return "BM25: it has none of the query's words" if case.words is None else f"BM25 has it at {case.words:,}"


def _pieces(case: Case) -> str:
    piece = case.piece
    assert piece is not None
    behind = ", behind what the function reads" if piece.is_behind else ""
    where = f"words {piece.start + 1:,} to {piece.end:,}{behind}"
    return f"the best one ({where}) alone would be {case.piece_rank:,}: {quoted(piece.text)}"


def _above(case: Case) -> Table:
    columns = (
        Column("rank", ","),
        Column("id"),
        Column("score", ".3f"),
        Column("in others' first ten", ".0%"),
        Column("is", is_prose=True),
        Column("text", is_prose=True),
    )
    rows: list[tuple[Value, ...]] = [
        (place, one.id, one.score, one.in_results, one.kind, cut(one.text or "", LONGEST))
        for place, one in enumerate(case.above[:ABOVE], 1)
    ]
    return Table(columns, rows)


def _shares(report: WhyReport) -> Table:
    cases = len(report.lost)
    rows: list[tuple[Value, ...]] = []
    for word, count in report.counts.items():
        rows.append((heading_of(word), count, Estimate(count / cases, *exact_share(count, cases))))
    columns = (Column("lost", is_prose=True), Column("cases", ","), Column("share [95 %]", ".0%", bounds=".0%"))
    return Table(columns, rows)


def _each(report: WhyReport) -> Table:
    later = {} if report.stages is None else report.stages.lost
    columns = (
        Column("query", is_prose=True),
        Column("expected"),
        Column("lost"),
        Column("stage"),
        Column("exact", ","),
        Column("store", ","),
        Column("BM25", ","),
        Column("what happened", is_prose=True),
    )
    rows: list[tuple[Value, ...]] = [
        (
            cut(case.query, LONGEST),
            cut(case.expected, 30),
            lost.lost,
            later[place].lost_at if place in later else "",
            case.rank,
            None if case.answer is None else case.answer.rank,
            case.words,
            later[place].sentence if place in later and lost.lost == "found" else lost.sentence,
        )
        for place, (case, lost) in sorted(
            enumerate(report.cases), key=lambda one: one[1][1].lost == "found" and one[0] not in later
        )
    ]
    return Table(columns, rows, brief=25)
