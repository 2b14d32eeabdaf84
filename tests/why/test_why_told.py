"""Every case that a search can be, alone and among others, is told in every form, and what is said is true of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from told_in_full import assert_told

import embaudit
from embaudit.questions.why.above import RowAbove
from embaudit.questions.why.case import ByAnother, Case, Diagnosis, ShownResults, StoreAnswer
from embaudit.questions.why.lost import where_lost
from embaudit.questions.why.other_ways import Attempt
from embaudit.questions.why.report import WhyReport
from embaudit.questions.why.unexpected import CameUp, LeftOut, not_shown, why_it_came_up

sys.path.append(str(Path(__file__).resolve().parent))
from test_where_lost import CASE, PIECE, READ, ROW, RULES, TEN, above, answer

ODD = ("hub", "copy", "near copy", "no content", "few words")
# What the rules do not tell apart, and a page may: one or nothing of each.
MORE: dict[str, Case] = {
    "nothing known": Case("a query", "policy-17"),
    "a row of which nothing is known": Case("a query", "policy-17", ROW),
    "a row without id or text": replace(CASE, row=replace(ROW, id=None, text=None)),
    "built by it to the last bit": replace(CASE, apart=0.0),
    "built by it, nearly": replace(CASE, apart=1e-7, read=READ),
    "whether it is built by it is not known": replace(CASE, is_own=None),
    "foreign, nobody knows how far": replace(CASE, is_own=False, rank=90),
    "the store gives nothing": replace(CASE, rank=3, answer=answer(None, given=())),
    "the store gives one": replace(CASE, rank=3, answer=answer(None, given=("a",))),
    "an answer of which nothing is known": replace(CASE, rank=3, answer=StoreAnswer()),
    "wide": replace(CASE, rank=3, answer=answer(None, wide=44)),
    "found at another rank": replace(CASE, rank=3, answer=answer(4)),
    "no cosine": replace(CASE, cosine=None, score=None),
    "words": replace(CASE, words=1),
    "a piece of one word": replace(CASE, rank=99, piece=replace(PIECE, start=3, end=4, is_behind=False), piece_rank=1),
    "behind a limit that nobody knows": replace(CASE, rank=99, piece=PIECE, piece_rank=1),
    "a sticky token that changes nothing": replace(CASE, rank=99, sticky=("'x'",), sticky_rank=98),
    "another function, about": replace(CASE, rank=99, also=ByAnother("o", 1, 1, 3, 9, 5)),
    "a row without a text above": replace(CASE, rank=2, above=(RowAbove("r", None, 0.5, 0.0),)),
    **{f"one above: {kind}": replace(CASE, rank=11, above=above(9) + above(1, kind)) for kind in ODD},
    **{f"two above: {kind}": replace(CASE, rank=12, above=above(9) + above(2, kind)) for kind in ODD},
}
CASES = {name: case for name, (case, *_) in RULES.items()} | MORE


@pytest.fixture(scope="module")
def real(tiny_index: Any, tmp_path_factory: pytest.TempPathFactory) -> WhyReport:
    """A walk in a store that has no search of its own, with rows of other lengths besides."""
    file = tmp_path_factory.mktemp("told") / "index.parquet"
    rows = slice(0, 80)
    vectors = list(tiny_index.vectors[rows].astype("float32"))
    pq.write_table(
        pa.table({"id": [f"row-{n}" for n in range(80)], "text": tiny_index.texts[rows], "vector": vectors}), file
    )
    return embaudit.why(file, str(tiny_index.folder), {tiny_index.texts[3]: "row-3"}, text="text", id="id")


def of(real: WhyReport, *cases: Case, **changed: Any) -> WhyReport:
    """The report if these were its cases."""
    lost = tuple(where_lost(case, TEN, "l2", "cosine" if case.declared_rank else "l2") for case in cases)
    return replace(real, walked=replace(real.walked, cases=cases), lost=lost, **changed)


def test_a_real_walk_is_told(real: WhyReport) -> None:
    assert_told(real)


@pytest.mark.parametrize("name", CASES)
def test_a_case_alone_is_told(real: WhyReport, name: str) -> None:
    assert_told(of(real, CASES[name]))


def test_all_cases_at_once_are_told(real: WhyReport) -> None:
    """Queries that are the same, too: a page has one place for each."""
    cases = tuple(CASES.values())
    # As many as a page walks line by line.
    for start in range(0, len(cases), 20):
        assert_told(of(real, *cases[start : start + 20]))


def test_cut_offs_and_foreign_indexes_are_told(real: WhyReport) -> None:
    least = ShownResults(10, 0.9, "relevance")
    lost = (
        where_lost(replace(CASE, score=-0.8), least, "l2", "l2"),
        where_lost(replace(CASE, score=-0.8), replace(least, scale="cosine"), "l2", "l2"),
        where_lost(replace(CASE, score=12.0), least, "dot", "dot"),
        where_lost(CASES["foreign"], TEN, "l2", "l2", own=0.05),
    )
    assert {one.cause for one in lost} == {"score", "foreign index"}
    for one in lost:
        assert_told(replace(of(real, CASE), lost=(one,)))


@pytest.mark.parametrize("names", [("never ranked",) * 2, ("found by the store",) * 2, ("never ranked", "farther")])
def test_several_of_few_kinds_are_told(real: WhyReport, names: tuple[str, ...]) -> None:
    assert_told(of(real, *(CASES[name] for name in names)))


def test_what_could_not_be_told_is_not_called_lost(real: WhyReport) -> None:
    report = of(real, CASES["never ranked"], CASES["no such row"], CASES["found by the store"])
    assert report.line.endswith("lost: 1 no such row; not told: 1.")


UP = CameUp(CASE, "", 12, 29.0, 0.3, (), None, None, None, None, (), None)
OUT = LeftOut("query", ("jaguar",), Attempt(400, 0.1, 0.1))
PAIR = LeftOut("text", ("jaguar", "cat"), Attempt(40, 0.1, 0.1))
UPS: dict[str, CameUp] = {
    "nothing alone": UP,
    "nothing known": replace(UP, usual=0.0, share=0.0),
    "a foreign vector": replace(UP, case=replace(CASE, is_own=False), again=61),
    "of another text, as near": replace(UP, case=replace(CASE, is_own=False, of_other="r5"), again=2),
    "a foreign vector, of which no text is known": replace(UP, case=replace(CASE, is_own=False)),
    "sticky tokens": replace(UP, sticky=("'##ⁱ' × 60",), sticky_rank=324),
    "a hub": replace(UP, case=replace(CASE, in_results=0.3), usually=77),
    "a heading": replace(UP, kind="few words", words=2, joined=15),
    "a heading at the end": replace(UP, kind="few words", words=2),
    "a page number": replace(UP, kind="no content", words=1, joined=4),
    "a word of the query": replace(UP, left_out=(OUT,)),
    "two words of its text": replace(UP, left_out=(PAIR,)),
    "the query again": replace(UP, case=replace(CASE, query="how to stop biting"), share=1.0, without_all=90),
    "the store has it elsewhere": replace(UP, case=replace(CASE, answer=answer(4)), left_out=(OUT,)),
}
AWAY: dict[str, Case] = {
    "behind": replace(CASE, rank=45),
    "left out": replace(CASE, passes=False),
    "zeros": replace(CASE, vector="zeros only", rank=None),
    "not given": replace(CASE, rank=3, answer=answer(None)),
}


@pytest.mark.parametrize("name", UPS)
def test_a_row_that_came_up_is_told(real: WhyReport, name: str) -> None:
    up = UPS[name]
    walked = replace(real.walked, cases=(up.case,))
    report = replace(real, walked=walked, lost=(why_it_came_up(up, 10),), came_up={0: up})
    assert report.verdict == "came up"
    assert_told(report)


def test_rows_that_came_up_and_others_are_told(real: WhyReport) -> None:
    cases = (*(up.case for up in UPS.values()), *AWAY.values())
    lost = (*(why_it_came_up(up, 10) for up in UPS.values()), *(not_shown(case, 10) for case in AWAY.values()))
    cases = tuple(replace(case, query=f"query {place}") for place, case in enumerate(cases))
    ups = {place: replace(up, case=cases[place]) for place, up in enumerate(UPS.values())}
    report = replace(real, walked=replace(real.walked, cases=cases), lost=lost, came_up=ups)
    assert report.line == f"{len(UPS)} of {len(cases)} rows came up."
    assert_told(report)
    for case, one in zip(cases[len(UPS) :], lost[len(UPS) :], strict=True):
        away = replace(real, walked=replace(real.walked, cases=(case,)), lost=(one,))
        assert (away.verdict, away.exit_code) == ("not shown", 0)
        assert_told(away)


# Why the store's own search was not asked: a case, what the store can, and a part of what is said.
NOT_ASKED: dict[str, tuple[Case, dict[str, Any], Callable[[Any], Any], str]] = {
    "it has none": (CASE, {}, lambda store: store, "the store has none"),
    "it could not be opened": (
        CASE,
        {"not_searched": "The server is away."},
        lambda store: store,
        "The server is away",
    ),
    "the row is none": (replace(CASE, row=None), {}, lambda store: replace(store, search=lambda: None), ""),
    "the row has no vector": (
        replace(CASE, vector="missing"),
        {},
        lambda store: replace(store, search=lambda: None),
        "",
    ),
    "the filter leaves it out": (
        replace(CASE, passes=False),
        {},
        lambda store: replace(store, search=lambda: None),
        "",
    ),
    "the row has no id": (
        replace(CASE, row=replace(ROW, id=None)),
        {},
        lambda store: replace(store, search=lambda: None),
        "the row has none",
    ),
    "it takes no filter": (CASE, {}, lambda store: replace(store, search=lambda: None), "with the filter"),
}


@pytest.mark.parametrize("name", NOT_ASKED)
def test_why_the_stores_own_search_was_not_asked(real: WhyReport, name: str) -> None:
    case, changed, store, said = NOT_ASKED[name]
    report = replace(of(real, case, **changed), store=store(real.store))
    steps = dict(report.page().sections[0].parts[0].rows)  # type: ignore[union-attr]
    assert ("search" in steps) == bool(said)
    assert said in steps.get("search", "")


def test_what_nothing_mends_has_no_arrow() -> None:
    assert Diagnosis("not told", "It could not be ranked.").told == "It could not be ranked."
    assert Diagnosis("found", "The store says: 1 rows are there..").told == "The store says: 1 row is there."
