"""Which wider settings are tried, in which order, and that what is said to give more does."""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
import pytest
from stores.test_langchain_faiss import build as langchain_folder

import embaudit
from embaudit.questions.search.curve import wider_settings
from embaudit.questions.search.report import SearchReport
from embaudit.stores.search import Hits, SearchParameter, Settings, StoreSearch, Where
from tests.planted_indexes import built, clustered, written


def nothing(query: np.ndarray, k: int, settings: Settings, where: Where) -> Hits:
    return Hits([], np.empty(0))


EF, SCAN, FACTOR = (
    SearchParameter("ef", 40, 1_000),
    SearchParameter("iterative_scan", 0, 1),
    SearchParameter("refine", 1, 3),
)
# Dials, what makes a search exact, and what is tried in which order.
ORDERS: dict[str, tuple[tuple[SearchParameter, ...], dict[str, int] | None, list[str]]] = {
    "one dial": ((SearchParameter("nprobe", 1, 6),), {"nprobe": 6}, ["nprobe 2", "nprobe 4", "nprobe 6"]),
    "exact comes last": (
        (EF,),
        {"exact": 1},
        ["ef 80", "ef 160", "ef 320", "ef 640", "ef 1,000", "exact 1"],
    ),
    "every dial a little before any far": (
        (EF, SCAN, FACTOR),
        {"bypass": 1},
        [
            *("ef 80", "iterative_scan 1", "refine 2", "ef 160", "refine 3", "ef 320", "ef 640", "ef 1,000"),
            *("ef 1,000, iterative_scan 1, refine 3", "bypass 1"),
        ],
    ),
    "none": ((), {"exact": 1}, ["exact 1"]),
    "nothing can be set": ((), None, []),
    "a graph of many rows": ((SearchParameter("ef", 1_024, 10**6),), None, ["ef 2,048", "ef 4,096"]),
    "as wide as it goes": ((SearchParameter("ef", 40, 40),), None, []),
}


@pytest.mark.parametrize("name", ORDERS)
def test_the_least_is_tried_first_and_exact_search_last(name: str) -> None:
    dials, exact, wanted = ORDERS[name]
    search = StoreSearch("HNSW", nothing, "cosine", dials=dials, exact=exact)
    tried = list(wider_settings(search, search.present))
    assert [said for _, said in tried] == wanted
    assert len({tuple(sorted(settings.items())) for settings, _ in tried}) == len(tried)


def test_a_setting_in_force_is_what_is_widened() -> None:
    search = StoreSearch("HNSW", nothing, "cosine", dials=(EF,))
    assert [said for _, said in wider_settings(search, {"ef": 400})] == ["ef 800", "ef 1,000"]


def advice(report: SearchReport, name: str) -> str:
    return next(one.advice for one in report.findings if one.name == name)


def test_what_is_said_to_give_more_results_does(tmp_path: Path) -> None:
    """Lists of seven rows each: the first of them has no ten."""
    vectors = clustered(1_500, 16)
    index = built("IVF214,Flat", vectors)
    store = written(index, tmp_path / "rows.faiss")
    report = embaudit.search(store, count=60)
    said = advice(report, "fewer")
    name, value = said.split()[:2]
    assert (name, said.split(maxsplit=2)[2]) == ("nprobe", "gives all of them.")
    assert report.filtered is None
    faiss.ParameterSpace().set_index_parameter(index, name, float(value))
    assert (index.search(vectors, 10)[1] >= 0).mean() > 0.99


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_advice_under_a_filter_was_tried_under_it(share: float, tmp_path: Path) -> None:
    """LangChain looks for what a filter keeps among the first ``fetch_k`` alone."""
    vectors = clustered(1_000, 16)
    rows = len(vectors)
    titles = ["kept" if n < share * rows else "others" for n in np.random.default_rng(0).permutation(rows)]
    ids = [f"row-{n}" for n in range(rows)]
    store = langchain_folder(tmp_path, vectors, [f"text {n}" for n in range(rows)], ids, titles)
    report = embaudit.search(store, count=60, where={"metadata.title": "kept"})
    assert report.filtered is not None
    assert report.filtered.first.fewer
    for name, end in (("fewer", "gives all of them."), ("filter", "there, at")):
        assert advice(report, name).startswith("fetch_k ")
        assert end in advice(report, name)
    # Twice as far as it looks now, for two in a hundred, gives nothing.
    least = int(advice(report, "filter").split()[1].replace(",", ""))
    assert least * share >= 10


def test_a_row_that_asks_leaves_itself_out_under_a_filter_too(tmp_path: Path) -> None:
    """It has another number among the rows that the filter keeps, and is not to be found."""
    vectors = clustered(600, 16)
    titles = ["kept" if n % 2 else "others" for n in range(600)]
    ids = [f"row-{n}" for n in range(600)]
    store = langchain_folder(tmp_path, vectors, [f"text {n}" for n in range(600)], ids, titles)
    report = embaudit.search(store, count=60, where={"metadata.title": "kept"}, query_settings={"fetch_k": 600})
    assert report.filtered is not None
    assert report.filtered.first.recall is not None
    assert report.filtered.first.recall.value == 1
