"""Every state that a report of a store's search can have is told in every form, and what is said is true in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from told_in_full import assert_told

from embaudit.questions.search.curve import TriedSetting
from embaudit.questions.search.findings import search_findings
from embaudit.questions.search.recall import Third
from embaudit.questions.search.report import SearchReport, look_at_search
from embaudit.stores.opened import open_store
from embaudit.stores.search import Hits
from embaudit.words.errors import CorpusError
from embaudit.words.estimate import Estimate
from embaudit.words.sentences import within
from tests.planted_indexes import L2, built, clustered, graph, written

VECTORS = clustered(300, 8, 10)


def store_of(vectors: np.ndarray, file: Path) -> Path:
    """A table of vectors, which nothing searches by itself."""
    np.save(file, vectors)
    return file


# By name: what is searched, and how it is asked.
REAL: dict[str, tuple[Callable[[Path], Path], dict[str, Any]]] = {
    **{
        f"{rows} in {name}": (
            lambda folder, make=make, rows=rows: written(make(VECTORS[:rows]), folder / "i.faiss"),
            {},
        )
        for rows in (1, 2, 11)
        for name, make in {
            "a graph": lambda some: graph(some, 4, 20, 2),
            "a flat index": lambda some: built("Flat", some),
        }.items()
    },
    "a poor graph": (lambda folder: written(graph(VECTORS, 2, 3, 1), folder / "i.faiss"), {}),
    "lists": (lambda folder: written(built("IVF16,Flat", VECTORS, nprobe=1), folder / "i.faiss"), {}),
    "codes": (lambda folder: written(built("PQ2x4", VECTORS), folder / "i.faiss"), {}),
    "other lengths": (
        lambda folder: written(
            built("Flat", VECTORS * np.linspace(0.1, 3, 300)[:, None].astype("f4")), folder / "i.faiss"
        ),
        {},
    ),
    "one query": (lambda folder: written(graph(VECTORS, 4, 20, 2), folder / "i.faiss"), {"queries": 1}),
    "a file": (lambda folder: store_of(VECTORS, folder / "v.npy"), {}),
    "a file without rows": (lambda folder: store_of(VECTORS[:0], folder / "v.npy"), {}),
}


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("rows", "said"), [(50, "squared Euclidean distances"), (1, "")])
def test_scores_that_are_one_number_are_no_formula(rows: int, said: str, length: float, tmp_path: Path) -> None:
    """Of one row and itself, a distance is what rounding leaves, whatever its formula is."""
    file = written(built("Flat", VECTORS[:rows] * np.float32(length), L2), tmp_path / "i.faiss")
    ranked = look_at_search(open_store(str(file)), rows=50, queries=10).ranked
    assert ranked is not None
    assert ranked.scores == said


@pytest.mark.parametrize("name", REAL)
def test_a_real_report_is_told(name: str, tmp_path: Path) -> None:
    make, given = REAL[name]
    report = look_at_search(open_store(str(make(tmp_path))), rows=50, **({"queries": 10} | given))
    assert_told(report)


@pytest.fixture(scope="module")
def poor(tmp_path_factory: pytest.TempPathFactory) -> SearchReport:
    """Of a graph that misses much."""
    folder = tmp_path_factory.mktemp("poor")
    return look_at_search(open_store(str(written(graph(VECTORS, 2, 3, 1), folder / "i.faiss"))), rows=100, queries=20)


FAILED = (("other settings", CorpusError("The server did not answer.", next_step="Start it.")),)
NONE_TOLD = Estimate(1.0)


def without_search(report: SearchReport) -> SearchReport:
    return replace(report, search=None, plain=None, reached=None, tried=(), ranked=None, thirds=(), settings={})


def giving(report: SearchReport, ids: tuple[str, ...], **more: Any) -> SearchReport:
    """The report if each query were given these rows."""
    assert report.plain is not None
    first, many = (
        replace(one, given=tuple(ids for _ in one.given), hits=tuple(Hits(ids, np.zeros(len(ids))) for _ in one.hits))
        for one in (report.plain.first, report.plain.many)
    )
    return replace(report, plain=replace(report.plain, first=first, many=many, **more))


def third(which: str, found: float) -> Third:
    return Third("distance", f"{which} neighbours", 300, Estimate(found, found - 0.05, found + 0.05))


Change = Callable[[SearchReport], SearchReport]
State = tuple[Change, tuple[tuple[str, CorpusError], ...], bool]


def state(
    change: Change = lambda one: one,
    failed: tuple[tuple[str, CorpusError], ...] = (),
    is_filtered: bool = False,
    **changes: Any,
) -> State:
    """A state, what went wrong on the way to it, and whether a filter was asked for."""
    return lambda one: replace(change(one), **changes), failed, is_filtered


STATES: dict[str, State] = {
    "as it is": state(),
    "its search could not be opened": state(without_search, failed=(("its search", FAILED[0][1]),)),
    "nothing was asked": state(plain=None, tried=(), reached=None, ranked=None, thirds=(), queries=(0, "none")),
    "the queries failed": state(
        plain=None, tried=(), reached=None, ranked=None, thirds=(), failed=(("the queries", FAILED[0][1]),)
    ),
    "other settings failed": state(tried=(), failed=FAILED),
    "one setting was tried": state(lambda one: replace(one, tried=one.tried[:1])),
    "no setting is enough": state(
        lambda one: replace(one, tried=tuple(replace(some, recall=Estimate(0.2)) for some in one.tried))
    ),
    "no setting may be changed": state(
        lambda one: replace(one, tried=one.tried[:1], search=replace(one.search, dials=(), exact=None))
    ),
    "nothing known of settings": state(settings={}),
    "no interval": state(tried=(TriedSetting({"efSearch": 9}, {"efSearch": 9}, NONE_TOLD, 1.0),)),
    "nothing was given": state(lambda one: giving(one, ())),
    "rows that are none": state(lambda one: giving(one, ("9999",), gone=("9999",), repeated=1)),
    "nothing unreachable": state(lambda one: replace(one, reached=replace(one.reached, unreachable=()))),
    "nothing missed": state(lambda one: replace(one, reached=replace(one.reached, unreachable=(), missed=()))),
    "rows were not asked": state(reached=None),
    "no metric": state(
        lambda one: replace(one, search=replace(one.search, metric=""), plain=None, tried=(), reached=None, ranked=None)
    ),
    "no other metric": state(lambda one: replace(one, ranked=replace(one.ranked, changed={}))),
    "another dimension": state(
        plain=None, tried=(), reached=None, ranked=None, queries=(3, "9 dimensions"), function="f"
    ),
    "a filter, and none can be asked with one": state(is_filtered=True),
    "a filter that keeps nothing": state(
        lambda one: replace(
            one,
            search=replace(one.search, takes_where=True),
            filtered=replace(giving(one, ()).plain, where="team=a", rows=0),
        ),
        is_filtered=True,
    ),
    "a filter that failed": state(
        lambda one: replace(one, search=replace(one.search, takes_where=True)),
        failed=(("the filter", FAILED[0][1]),),
        is_filtered=True,
    ),
    "a filter": state(
        lambda one: replace(
            one, search=replace(one.search, takes_where=True), filtered=replace(one.plain, where="team=a", rows=1)
        ),
        is_filtered=True,
    ),
    "a filter that lets other rows through": state(
        lambda one: replace(
            one,
            search=replace(one.search, takes_where=True),
            filtered=replace(giving(one, ("9999",), gone=("9999",)).plain, where="team=a", rows=1),
        ),
        is_filtered=True,
    ),
    "some neighbours are missed more than others": state(
        thirds=(third("far", 0.2), third("usual", 0.5), third("near", 0.9))
    ),
    "codes": state(codes=Estimate(0.5), function="f"),
}


def told(poor: SearchReport, name: str) -> SearchReport:
    change, failed, is_filtered = STATES[name]
    changed = change(replace(poor, findings=()))
    return replace(changed, findings=tuple(search_findings(changed, failed, is_filtered)))


@pytest.mark.parametrize("name", STATES)
def test_a_state_is_told(poor: SearchReport, name: str) -> None:
    assert_told(told(poor, name))


@pytest.mark.parametrize("name", ["other settings failed", "one setting was tried", "no setting may be changed"])
def test_nothing_is_said_of_settings_that_were_not_tried(poor: SearchReport, name: str) -> None:
    advice = next(one.advice for one in told(poor, name).findings if one.name == "recall")
    assert "that was tried" not in advice
    assert ("cannot be changed" in advice) == (name == "no setting may be changed")


def test_what_a_mean_hides_is_said(poor: SearchReport) -> None:
    leak, falls = (
        {one.name: one for one in told(poor, name).findings}
        for name in ("a filter that lets other rows through", "some neighbours are missed more than others")
    )
    through, worst = leak["filter_lets_through"], falls["where_it_falls"]
    assert (through.level, through.value) == ("problem", 1)
    assert through.sentence == "Under team=a the search gives rows that the filter should keep out: 9999."
    assert (worst.level, worst.value, worst.low, worst.high) == ("look", 0.2, pytest.approx(0.15), 0.25)
    assert worst.sentence.startswith(
        "It misses most among far neighbours: 0.20 [0.15, 0.25] found; of near neighbours 0.90"
    )


def test_the_reason_is_said_why_nothing_could_be_told(poor: SearchReport) -> None:
    reasons = {
        "nothing was asked": "no query has a vector.",
        "its search could not be opened": "its search could not be asked: the server did not answer.",
        "the queries failed": "the queries could not be asked: the server did not answer.",
    }
    for name, reason in reasons.items():
        report = told(poor, name)
        assert report.line.endswith(reason), report.line
        assert [within(one.sentence).endswith(reason) for one in report.findings] == [True]


def test_a_store_of_one_row_is_valid_json_and_says_why_nothing_is_told(tmp_path: Path) -> None:
    """No query of its own rows has another row to find: no recall, at any setting."""
    report = look_at_search(open_store(str(written(graph(VECTORS[:1], 4, 20, 2), tmp_path / "i.faiss"))))
    assert (report.verdict, report.tried) == ("could not be told", ())
    assert ": no query has a row to be found" in report.line
    json.dumps(report.as_json(), allow_nan=False)
