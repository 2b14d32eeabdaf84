"""One suite for the search of every engine: its own client gives what own code finds, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from engine_rows import contents

import embaudit
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.stores.search import SearchParameter, StoreSearch
from embaudit.stores.store import Metric, Store
from embaudit.words.errors import UsageError

ROWS, D, K, GROUPS = 400, 12, 10, 5
GENERATOR = np.random.default_rng(5)
VECTORS = (GENERATOR.normal(size=(ROWS, D)) * GENERATOR.uniform(0.5, 2, size=(ROWS, 1))).astype(np.float32)
QUERIES = GENERATOR.normal(size=(20, D)).astype(np.float32)
TEXTS = [f"text {row}" for row in range(ROWS)]
TITLES = [f"title's {row % GROUPS}" for row in range(ROWS)]
NAMES = [f"row-{row:03}" for row in range(ROWS)]


# Without a filter; and of codes that are ranked well by themselves.
SETS_NOTHING_HERE = ("fetch_k", "refine_factor")


class Made(NamedTuple):
    """A store, and what is said to read it.

    Attributes:
        place: its file or folder, or its address.
        ids: of the rows, in their order.
        metric: what it was told to rank by.
        title: its column of titles; empty if it cannot be filtered.
        refused: a field that it has and cannot filter by.
        is_sound: whether its default settings find what it holds.
        filters: whether they do with a filter.
    """

    place: str
    ids: list[Any]
    metric: Metric
    title: str = ""
    refused: str = ""
    asked: ReadOptions = ReadOptions()
    is_sound: bool = True
    filters: bool = True


class Opened(NamedTuple):
    made: Made
    folder: Path
    store: Store
    search: StoreSearch


def builder(name: str) -> Any:
    """The tests of an engine, which say how a store of it is built; skipped where it is not installed."""
    return import_module(f"tests.stores.test_{name}")


def chroma(folder: Path) -> Made:
    place = builder("chroma").build(folder, VECTORS, TEXTS, NAMES, TITLES)
    return Made(place, NAMES, "dot", "metadata.title", "document")


def lancedb(folder: Path, index: str = "", metric: Metric = "l2", **given: Any) -> Made:
    """A table with an index; with none it ranks by Euclidean distance."""
    place = builder("lancedb").build(folder, VECTORS, TEXTS, NAMES, TITLES)
    if index:
        table = import_module("lancedb").connect(place).open_table("docs")
        table.create_index(metric=metric, index_type=index, **given)
    return Made(place, NAMES, metric, "metadata.title")


def qdrant(folder: Path) -> Made:
    place = builder("qdrant").build(folder, VECTORS, TEXTS, range(ROWS), TITLES)
    return Made(place, list(range(ROWS)), "dot", "payload.metadata.title", "id")


def milvus(folder: Path, index: str = "HNSW", metric: Metric = "dot") -> Made:
    tests = builder("milvus")
    place = tests.build(folder, VECTORS, TEXTS, NAMES, TITLES)
    if index != "HNSW":
        with tests.opened(place) as client:
            client.release_collection("docs")
            client.drop_index("docs", "vector")
            made = client.prepare_index_params()
            made.add_index("vector", index_type=index, metric_type={"l2": "L2", "cosine": "COSINE"}[metric])
            client.create_index("docs", made)
    return Made(place, NAMES, metric, "metadata.title")


def langchain(folder: Path, kind: str) -> Made:
    place = builder("framework_folders").build(folder, VECTORS, TEXTS, NAMES, TITLES, kind)
    return Made(place, NAMES, "l2", "metadata.title", "text")


def duckdb(folder: Path, metric: str = "", kind: str = f"FLOAT[{D}]", options: str = "") -> Made:
    """A table, with an index of vss if it says by what."""
    import duckdb
    import pandas as pd

    made = {"l2sq": "l2", "ip": "dot", "cosine": "cosine", "": "cosine"}
    inner = [{"title": title} for title in TITLES]
    frame = pd.DataFrame({"id": NAMES, "text": TEXTS, "e": list(VECTORS), "meta": inner})  # noqa: F841
    with duckdb.connect(str(folder / "rows.db")) as connection:
        connection.execute(f'CREATE TABLE "my rows" AS SELECT id, text, e::{kind} AS e, meta FROM frame')
        if metric:
            package = pytest.importorskip("duckdb_extension_vss", reason="needs the package duckdb-extension-vss")
            (file,) = Path(package.__file__).parent.rglob("vss.duckdb_extension")
            connection.execute(f"LOAD '{file}'; SET hnsw_enable_experimental_persistence = true")
            connection.execute(f"CREATE INDEX by_e ON \"my rows\" USING hnsw (e) WITH (metric = '{metric}'{options})")
    return Made(str(folder / "rows.db"), NAMES, made[metric], "meta.title")  # type: ignore[arg-type]


ENGINES: dict[str, Callable[[Path], Made]] = {
    "Chroma": chroma,
    "LanceDB": lancedb,
    "LanceDB, IVF": lambda folder: lancedb(folder, "IVF_FLAT", "cosine", num_partitions=40),
    "LanceDB, codes": lambda folder: lancedb(folder, "IVF_SQ", "dot", num_partitions=2),
    "LanceDB, HNSW": lambda folder: lancedb(folder, "IVF_HNSW_SQ", "l2", num_partitions=2, m=8, ef_construction=50),
    "Qdrant": qdrant,
    "LangChain's FAISS": lambda folder: langchain(folder, "Flat")._replace(filters=False),
    "LangChain's FAISS, IVF": lambda folder: langchain(folder, "IVF2,Flat")._replace(is_sound=False),
    "DuckDB": duckdb,
    "DuckDB, lists": lambda folder: duckdb(folder, kind="DOUBLE[]"),
    "DuckDB, HNSW": lambda folder: duckdb(folder, "l2sq")._replace(filters=False),
    "DuckDB, HNSW by inner product": lambda folder: duckdb(folder, "ip")._replace(filters=False),
    "Milvus Lite, HNSW": milvus,
    # It makes 128 lists, whatever it is asked for, of which 10 are probed.
    "Milvus Lite, IVF": lambda folder: milvus(folder, "IVF_FLAT", "l2")._replace(is_sound=False),
    "Milvus Lite, FLAT": lambda folder: milvus(folder, "FLAT", "cosine"),
}
# Further indexes of the same engines.
SLOW = (
    "LanceDB, IVF",
    "Milvus Lite, IVF",
    "LanceDB, HNSW",
    "LanceDB, codes",
    "DuckDB, lists",
    "DuckDB, HNSW",
    "DuckDB, HNSW by inner product",
    "Milvus Lite, FLAT",
)
CASES = [pytest.param(made, id=name, marks=[pytest.mark.slow] * (name in SLOW)) for name, made in ENGINES.items()]


@pytest.fixture(scope="module", params=CASES)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    folder = tmp_path_factory.mktemp("searched")
    made = request.param(folder)
    before = contents(folder)
    store = open_store(made.place, made.asked)
    assert store.search is not None
    yield Opened(made, folder, store, store.search())
    assert contents(folder) == before


def nearest(query: np.ndarray, metric: Metric, rows: np.ndarray) -> list[int]:
    """Rows by the nearest first, by own code."""
    own, query = VECTORS[rows].astype(np.float64), query.astype(np.float64)
    if metric == "l2":
        scores = -((own - query) ** 2).sum(axis=1)
    else:
        scores = own @ query
        if metric == "cosine":
            scores /= np.linalg.norm(own, axis=1)
    return rows[np.argsort(-scores, kind="stable")].tolist()


def widest(search: StoreSearch) -> dict[str, int]:
    return dict(search.exact) if search.exact is not None else {dial.name: dial.most for dial in search.dials}


def recall(opened: Opened, settings: dict[str, int], k: int = K) -> float:
    found = 0
    for query in QUERIES:
        hits = opened.search.find(query, k, settings, ())
        assert len(hits.ids) == len(hits.scores) <= k
        wanted = nearest(query, opened.search.metric, np.arange(ROWS))[:k]
        found += len({str(opened.made.ids[row]) for row in wanted} & set(map(str, hits.ids)))
    return found / k / len(QUERIES)


def test_it_ranks_as_declared_and_finds_all_at_its_widest(opened: Opened) -> None:
    assert opened.search.metric == opened.made.metric
    assert opened.store.metric in (opened.made.metric, "")
    assert opened.made.is_sound == (recall(opened, opened.search.present) > 0.92)
    assert len(opened.search.find(QUERIES[0], K, {}, ()).ids) == K
    for k in (K, 60):
        assert recall(opened, widest(opened.search), k) == 1
    assert opened.search.present == {dial.name: dial.present for dial in opened.search.dials}


def test_a_row_finds_itself_by_the_id_that_its_column_has(opened: Opened) -> None:
    (name,) = {type(one) for batch in opened.store.batches() for one in batch.ids or ()}
    for row in range(0, ROWS, 40):
        hits = opened.search.find(VECTORS[row], ROWS // 4, {}, ())
        assert str(opened.made.ids[row]) in list(map(str, hits.ids))
        assert {type(one) for one in hits.ids} == {name}
        steps = np.diff(np.asarray(hits.scores, np.float64))
        assert (steps >= -1e-5).all() or (steps <= 1e-5).all()


def test_every_setting_of_a_query_is_taken(opened: Opened) -> None:
    for dial in opened.search.dials:
        for value in (dial.present, *dial.wider()):
            assert len(opened.search.find(QUERIES[0], K, {dial.name: value}, ()).ids) == K


def test_a_setting_changes_what_is_found(opened: Opened) -> None:
    """At its least, a search finds fewer rows than at its widest; asked in turn, it does so again."""
    for dial in opened.search.dials:
        if dial.name not in SETS_NOTHING_HERE:
            least = [
                recall(opened, {dial.name: 1}),
                recall(opened, widest(opened.search)),
                recall(opened, {dial.name: 1}),
            ]
            # Chroma makes a small graph anew when it is opened, never twice the same.
            assert max(least[0], least[2]) < least[1] == 1


def test_a_filter_keeps_only_its_rows(opened: Opened) -> None:
    assert opened.search.takes_where == bool(opened.made.title)
    if not opened.made.title:
        return
    for title in (TITLES[0], TITLES[3]):
        rows = np.array([row for row, one in enumerate(TITLES) if one == title])
        for query in QUERIES[:5]:
            hits = opened.search.find(query, K, widest(opened.search), [(opened.made.title, title)])
            wanted = nearest(query, opened.search.metric, rows)[:K]
            assert set(map(str, hits.ids)) == {str(opened.made.ids[row]) for row in wanted}
    nothing = opened.search.find(QUERIES[0], K, {}, [(opened.made.title, "no ' such \" title")])
    assert len(nothing.ids) == len(nothing.scores) == 0


def test_a_filter_that_it_cannot_take_is_refused(opened: Opened) -> None:
    if opened.made.refused:
        with pytest.raises(UsageError, match=rf"\b{opened.made.refused} is none"):
            opened.search.find(QUERIES[0], K, {}, [(opened.made.refused, "x")])


def test_its_report_says_so(opened: Opened) -> None:
    made = opened.made
    where = {made.title: TITLES[1]} if made.title else None
    report = embaudit.search(made.place, rows=60, count=30, where=where, from_table=made.asked.part)
    assert report.recall is not None
    assert made.is_sound == (report.recall.value > 0.92)
    assert (report.verdict == "finds what it holds") == (made.is_sound and made.filters), report.findings
    problems = {finding.name for finding in report.findings if finding.level == "problem"}
    assert made.filters or "filter" in problems


@pytest.mark.parametrize(
    ("present", "most", "wider"), [(0, 1, (1,)), (10, 35, (20, 35)), (7, 7, ()), (0, 5, (1, 2, 4, 5))]
)
def test_a_setting_is_doubled_until_it_changes_nothing(present: int, most: int, wider: tuple[int, ...]) -> None:
    assert SearchParameter("any", present, most).wider() == wider
