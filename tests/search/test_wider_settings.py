"""What a search finds by other settings, and by tenant: the least that is enough, and whose rows are not found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stores.test_framework_folders import build as langchain_folder

import embaudit
from embaudit.questions.search.curve import wider_settings
from embaudit.questions.search.exact import METRICS, exact_search
from embaudit.questions.search.report import SearchReport
from embaudit.stores.search import Hits, SearchParameter, Settings, StoreSearch, Where
from embaudit.stores.store import Metric, RowBatch, Store
from embaudit.words.errors import UsageError
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


# ---- tenants ----


ROWS = 600


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """LangChain looks for what a filter keeps among the first ``fetch_k`` alone: a small tenant gets little."""
    vectors = clustered(ROWS, 16)
    titles = ["small" if n % 40 == 0 else "large" if n % 3 else "middle" for n in range(ROWS)]
    ids = [f"row-{n}" for n in range(ROWS)]
    return langchain_folder(tmp_path_factory.mktemp("shop"), vectors, [f"text {n}" for n in range(ROWS)], ids, titles)


def test_the_worst_tenant_is_named(store: str) -> None:
    report = embaudit.search(store, count=40, where_each="metadata.title")
    (found,) = [one for one in report.findings if one.name == "tenants"]
    assert found.level == "problem"
    assert "(3 values)" in found.sentence
    assert "least for 'small'" in found.sentence
    assert "of its 15 rows" in found.sentence
    assert "get fewer than ten results for 'small', which has 15 rows" in found.sentence
    by_value = {tenant.value: tenant for tenant in report.tenants}
    assert {name: tenant.rows for name, tenant in by_value.items()} == {"small": 15, "large": 390, "middle": 195}
    small, large = by_value["small"].recall, by_value["large"].recall
    assert small is not None
    assert large is not None
    assert (found.value, found.low, found.high) == (small.value, small.low, small.high)
    assert large.known > small.known + 0.3
    # Without a filter, all is well.
    assert report.recall is not None
    assert report.recall.known == 1
    (section,) = [section for section in report.page().sections if section.title == "By tenant"]
    (table,) = section.parts
    assert next(row["value"] for row in table.records()) == "small"  # type: ignore[union-attr]
    figures = {(one.figure, one.item): one.value for one in report.answer_figures()}
    assert figures["recall_at_10", "for small"] == small.value
    assert report.as_json()["tenants"][0]["value"] == "large", "the most frequent first"


def test_with_a_wider_search_every_tenant_finds(store: str) -> None:
    report = embaudit.search(store, count=40, where_each="metadata.title", query_settings={"fetch_k": ROWS})
    (found,) = [one for one in report.findings if one.name == "tenants"]
    assert found.level == "ok"
    assert all(tenant.recall is not None and tenant.recall.known == 1 for tenant in report.tenants)


def test_a_field_that_no_row_has_is_named(store: str) -> None:
    with pytest.raises(UsageError, match="no field 'tenant'") as raised:
        embaudit.search(store, where_each="tenant")
    assert "metadata.title" in (raised.value.next_step or "")


def test_a_search_that_takes_no_filter_measures_no_tenant(tmp_path: Path) -> None:
    index = built("Flat", np.asarray(clustered(200, 16), np.float32))
    report = embaudit.search(written(index, tmp_path / "rows.faiss"), count=20, where_each="id")
    (found,) = [one for one in report.findings if one.name == "tenants"]
    assert found.level == "not measured"


# ---- exact search in one pass is what a slow search of all pairs gives, whatever batches the rows come in ----


def store_of_rows(rows: np.ndarray, at_once: int) -> Store:
    def batches(_: Sequence[str] = ()) -> Iterator[RowBatch]:
        for start in range(0, len(rows), at_once):
            some = rows[start : start + at_once]
            ids = [f"r{start + place}" for place in range(len(some))]
            yield RowBatch(start, len(some), {rows.shape[1]: (np.arange(len(some)), some)}, ids=ids)

    return Store("made up", {"vector": "v", "id": "id"}, "float32", batches, len(rows))


def slow_score(metric: Metric, query: np.ndarray, row: np.ndarray) -> float:
    query, row = query.astype(np.float64), row.astype(np.float64)
    if metric == "cosine":
        return float(query @ row / np.linalg.norm(query) / np.linalg.norm(row))
    return float(query @ row) if metric == "dot" else float(-np.sum((query - row) ** 2))


@pytest.mark.parametrize("metric", METRICS)
@given(seed=st.integers(0, 10_000), count=st.integers(1, 40), at_once=st.integers(1, 17), k=st.integers(1, 12))
@settings(max_examples=25, deadline=None)
def test_nearest_rows_and_ranks_are_those_of_all_pairs(
    metric: Metric, seed: int, count: int, at_once: int, k: int
) -> None:
    generator = np.random.default_rng(seed)
    rows = (generator.normal(size=(count, 5)) * generator.uniform(0.5, 2, size=(count, 1))).astype(np.float32)
    queries = generator.normal(size=(3, 5)).astype(np.float32)
    scores = np.array([[slow_score(metric, query, row) for row in rows] for query in queries])
    bound = scores[:, :1]

    found = exact_search(store_of_rows(rows, at_once), queries, {metric: k}, {metric: bound})

    assert found.rows == count
    nearest, m = found.nearest[metric], min(k, count)
    order = np.argsort(-scores, axis=1)[:, :m]
    np.testing.assert_allclose(nearest.scores[:, :m], np.take_along_axis(scores, order, axis=1), atol=1e-5)
    np.testing.assert_array_equal(nearest.rows[:, :m], order)
    assert (nearest.rows[:, m:] == -1).all()
    assert nearest.ids[0, 0] == f"r{order[0, 0]}"
    # A row that is nearer than the bound by no more than float32 tells is not above it.
    sizes = [np.linalg.norm(some.astype(np.float64), axis=1) for some in (queries, rows)]
    told = 8e-6 * (1 if metric == "cosine" else 2 * sizes[0][:, None] * sizes[1].max())
    surely, perhaps = (scores > bound + told).sum(axis=1), (scores > bound).sum(axis=1)
    above = found.above[metric][:, 0]
    assert ((surely <= above) & (above <= perhaps)).all()


def test_rows_that_point_nowhere_are_left_out() -> None:
    rows = np.eye(4, dtype=np.float32)
    rows[1], rows[2, 0] = 0, np.nan

    found = exact_search(store_of_rows(rows, 3), np.ones((1, 4), np.float32), {"cosine": 4})

    assert found.rows == 2
    assert sorted(found.nearest["cosine"].rows[0].tolist()) == [-1, -1, 0, 3]


def test_rows_as_near_as_the_last_all_reach_it() -> None:
    rows = np.concatenate([np.tile([1.0, 0], (4, 1)), np.tile([0, 1.0], (6, 1))]).astype(np.float32)

    nearest = exact_search(store_of_rows(rows, 4), np.array([[1, 0.1]], np.float32), {"cosine": 10}).nearest["cosine"]

    assert nearest.reaching(2).sum() == 4
    assert nearest.reaching(5).sum() == 10
