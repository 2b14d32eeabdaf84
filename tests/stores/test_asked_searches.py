"""What each engine's client is asked, by the settings, filter and number of results that are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from embaudit.stores import chroma_search, lancedb, milvus_search, postgres_search, qdrant_search
from embaudit.stores.search import SearchedColumns, SearchParameter, StoreSearch
from embaudit.stores.store import StoreColumn
from embaudit.words.errors import UsageError

QUERY = np.array([0.5, 0, -2], dtype=np.float32)
SCORES = np.array([0.25, 0.75])


def dials(search: StoreSearch) -> list[tuple[str, int, int]]:
    return [(dial.name, dial.present, dial.most) for dial in search.dials]


# ---- PostgreSQL ----

REAL = {
    "id": "integer",
    "v": "vector",
    "h": "halfvec",
    "s": "sparsevec",
    "meta": "jsonb",
    "a.b": "text",
    "raw": "bytea",
}
BY_V = ("by_v", "hnsw", "vector_cosine_ops", ["m=8", "ef_construction=64"], "v", "v", None)
LISTS = ("lists", "ivfflat", "vector_l2_ops", ["lists=40"], "v", "v", None)
OF_HALVES = ("halves", "hnsw", "halfvec_ip_ops", None, None, "((v)::halfvec(3))", None)
OF_SOME = ("some", "hnsw", "vector_ip_ops", None, "v", "v", "(n > 3)")


class Postgres:
    """A connection to a database with these indexes, whose planner takes them or not."""

    def __init__(self, *indexes: tuple[Any, ...], is_used: bool = True, **settings: str | None) -> None:
        self.indexes, self.is_used, self.settings = indexes, is_used, settings
        self.said: list[tuple[str, list[Any]]] = []
        self.fails = False
        self.open = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.open += 1
        yield
        self.open -= 1

    def execute(self, statement: str, values: Sequence[Any] = (), *, prepare: bool | None = None) -> Any:
        self.said.append((statement, list(values)))
        rows: list[tuple[Any, ...]] = []
        if statement == postgres_search.INDEXES:
            rows = list(self.indexes)
        elif statement.startswith("SELECT current_setting"):
            rows = [(self.settings.get(values[0].replace(".", "_")),)]
        elif statement.startswith("EXPLAIN"):
            rows = [("Limit",), ("  Index Scan using it" if self.is_used else "  Seq Scan",)]
        elif "LIMIT" in statement:
            # Planned anew, and within a transaction of its own.
            assert (prepare, self.open) == (False, 1)
            if self.fails:
                raise RuntimeError("gone")
            rows = [("a", 0.25), ("b", 0.75)]
        return Rows(rows)

    def asked(self) -> list[tuple[str, list[Any]]]:
        """What was said since, without what every search begins with."""
        said, self.said = self.said, []
        return said


class Rows(list[tuple[Any, ...]]):
    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self)

    def fetchone(self) -> tuple[Any, ...]:
        return self[0]


def searched(connection: Postgres, vector: str = "v", id_: str = "id") -> StoreSearch:
    some = {vector: StoreColumn("vector", "vector", ([1.0, 2, 3],))}
    return postgres_search.search_of_table(connection, "docs", REAL, nullcontext)(SearchedColumns(vector, id_, some))


HNSW = {"hnsw_ef_search": "40", "hnsw_iterative_scan": "off"}
IVF = {"ivfflat_probes": "3", "ivfflat_iterative_scan": "relaxed_order"}
# What it has, its column; what it is ordered by, and what is said of it.
TABLES: list[tuple[Postgres, str, str, str, list[tuple[str, int, int]], str]] = [
    (Postgres(), "v", '"v" <=> %s::vector', "no index", [], "No index of pgvector's is on v: it was asked by cosine"),
    (Postgres(), "h", '"h" <=> %s::halfvec', "no index", [], "No index of pgvector's is on h"),
    (
        Postgres(BY_V, **HNSW),
        "v",
        '"v" <=> %s::vector',
        "HNSW by_v, m 8, ef_construction 64",
        [("hnsw.ef_search", 40, 1_000), ("hnsw.iterative_scan", 0, 1)],
        "",
    ),
    (Postgres(BY_V, hnsw_ef_search="40"), "v", '"v" <=> %s::vector', "HNSW by_v", [("hnsw.ef_search", 40, 1_000)], ""),
    (
        Postgres(LISTS, **IVF),
        "v",
        '"v" <-> %s::vector',
        "IVFFlat lists, lists 40",
        [("ivfflat.probes", 3, 40), ("ivfflat.iterative_scan", 1, 1)],
        "",
    ),
    (
        Postgres((*LISTS[:3], None, *LISTS[4:]), ivfflat_probes="200", ivfflat_iterative_scan="strict_order"),
        "v",
        '"v" <-> %s::vector',
        "IVFFlat lists",
        [("ivfflat.probes", 200, 200), ("ivfflat.iterative_scan", 2, 2)],
        "",
    ),
    (
        Postgres(OF_HALVES, **HNSW),
        "v",
        "(((v)::halfvec(3))) <#> %s::halfvec(3)",
        "HNSW halves",
        [("hnsw.ef_search", 40, 1_000), ("hnsw.iterative_scan", 0, 1)],
        "Index halves is of halves, by which it was asked: ORDER BY (((v)::halfvec(3))) …",
    ),
    (
        Postgres(BY_V, is_used=False, **HNSW),
        "v",
        '"v" <=> %s::vector',
        "no index",
        [],
        "PostgreSQL's planner does not use index by_v here: it looks at every row.",
    ),
    (
        Postgres(OF_SOME, **HNSW),
        "v",
        '"v" <#> %s::vector',
        "no index",
        [],
        "Index some is of rows where (n > 3) alone.",
    ),
    (
        # That of all rows is the one; what is of another column is none.
        Postgres(OF_SOME, (*BY_V[:4], "other", "other", None), LISTS, **IVF),
        "v",
        '"v" <-> %s::vector',
        "IVFFlat lists",
        [("ivfflat.probes", 3, 40), ("ivfflat.iterative_scan", 1, 1)],
        "some rank v by another metric: asked was lists.",
    ),
]


@pytest.mark.parametrize(("connection", "vector", "order", "index", "expected", "note"), TABLES)
def test_postgresql_is_asked_by_the_index_that_it_has(
    connection: Postgres, vector: str, order: str, index: str, expected: list[tuple[str, int, int]], note: str
) -> None:
    search = searched(connection, vector)
    begun = connection.asked()
    assert begun[0] == (postgres_search.INDEXES, ["docs"])
    assert begun[-1][1] == ["max_parallel_workers_per_gather"] or begun[-1][0].startswith("EXPLAIN")
    assert ["max_parallel_workers_per_gather"] in [values for _, values in begun]
    assert search.index.startswith(index)
    assert dials(search) == expected
    assert search.is_exact == (not expected)
    assert [one[: len(note)] for one in search.notes] == ([note] if note else [])
    assert (search.exact, search.takes_where) == ({"exact": 1}, True)
    assert search.metric == {"<=>": "cosine", "<->": "l2", "<#>": "dot"}[order.split()[-2]]
    is_graph = any(name in f"{index} {note}" for name in ("HNSW", "by_v", "Index some"))
    assert search.anew == ("more links (m) and a higher ef_construction" if is_graph else "")
    hits = search.find(QUERY, 7, {}, ())
    assert (hits.ids, hits.scores.tolist()) == (["a", "b"], [0.25, 0.75])
    literal = "[0.5, 0.0, -2.0]"
    assert connection.asked()[-1] == (
        f'SELECT "id", {order} FROM docs ORDER BY {order} LIMIT %s',
        [literal, literal, 7],
    )


def test_a_sparse_vector_is_written_by_its_places() -> None:
    connection = Postgres()
    searched(connection, "s").find(QUERY, 1, {}, ())
    assert connection.asked()[-1][1] == ["{1:0.5,3:-2.0}/3"] * 2 + [1]


def test_postgresql_keeps_what_is_set_until_something_fails() -> None:
    connection = Postgres(BY_V, **HNSW)
    search = searched(connection)
    on = ("SELECT set_config(%s, %s, true)", ["enable_indexscan", "on"])

    def set_by(**settings: int) -> list[list[Any]]:
        connection.asked()
        search.find(QUERY, 1, {name.replace("_", ".", 1): value for name, value in settings.items()}, ())
        return [values for statement, values in connection.asked() if statement == on[0]]

    assert set_by() == []
    assert set_by(hnsw_ef_search=80, hnsw_iterative_scan=2, unknown=9) == [
        ["hnsw.ef_search", "80"],
        ["hnsw.iterative_scan", "strict_order"],
    ]
    assert set_by(hnsw_ef_search=80, hnsw_iterative_scan=2) == []
    assert set_by(exact=1) == [
        ["hnsw.ef_search", "40"],
        ["hnsw.iterative_scan", "off"],
        ["enable_indexscan", "off"],
    ]
    connection.fails = True
    with pytest.raises(RuntimeError):
        set_by(exact=1)
    connection.fails, connection.open = False, 0
    assert set_by() == [["hnsw.ef_search", "40"], ["hnsw.iterative_scan", "off"], ["enable_indexscan", "on"]]


def test_postgresql_filters_by_columns_and_what_is_in_them() -> None:
    connection = Postgres()
    search = searched(connection, id_="meta.key.of")
    search.find(QUERY, 2, {}, [("id", 5), ("meta.is_new", True), ("meta.a.b", 1.5), ("a.b", "x")])
    json = '("meta"::jsonb #>> %s::text[])'
    order = '"v" <=> %s::vector'
    literal = "[0.5, 0.0, -2.0]"
    assert connection.asked()[-1] == (
        f'SELECT {json}, {order} FROM docs WHERE "id" = %s AND {json} = %s AND {json} = %s AND "a.b" = %s '
        f"ORDER BY {order} LIMIT %s",
        [["key", "of"], literal, 5, ["is_new"], "true", ["a", "b"], "1.5", "x", literal, 2],
    )
    with pytest.raises(UsageError, match="The table has no column 'title'"):
        search.find(QUERY, 2, {}, [("title", 1)])


@pytest.mark.parametrize(
    ("vector", "said"), [("raw", "Column raw is bytea"), ("meta.v", "meta.v is inside another one")]
)
def test_what_pgvector_does_not_search_is_refused(vector: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        searched(Postgres(), vector)


@pytest.mark.parametrize(
    ("of", "opclass", "expected"),
    [
        ("((v)::halfvec(3))", "halfvec_l2_ops", "halfvec(3)"),
        ('(("v")::vector(3))', "vector_l2_ops", "vector(3)"),
        ("((w)::halfvec(3))", "halfvec_l2_ops", None),
        ("((v)::bit(3))", "bit_hamming_ops", None),
        ("binary_quantize(v)", "bit_hamming_ops", None),
    ],
)
def test_an_index_may_be_of_what_a_column_is_cast_to(of: str, opclass: str, expected: str | None) -> None:
    found = postgres_search.indexes_of(Postgres(("i", "hnsw", opclass, None, None, of, None)), "docs", "v")
    assert [(one.of, one.type, one.metric, one.only) for one in found] == (
        [(f"({of})", expected, "l2", "")] if expected else []
    )


# ---- LanceDB ----


class Lance:
    """A table, and what its query was told, one after the other."""

    def __init__(self, kind: str = "", distance: str = "cosine", new: int = 0) -> None:
        self.schema = SimpleNamespace(names=["key", "text", "v", "meta", "a.b"])
        self.kind, self.distance, self.new = kind, distance, new
        self.told: list[tuple[Any, ...]] = []

    def list_indices(self) -> list[Any]:
        indexes = [SimpleNamespace(name="of_text", columns=["text"])]
        return indexes + ([SimpleNamespace(name="of_v", columns=["v"])] if self.kind else [])

    def index_stats(self, name: str) -> Any:
        assert name == "of_v"
        return SimpleNamespace(index_type=self.kind, distance_type=self.distance, num_unindexed_rows=self.new)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def tell(*given: Any, **named: Any) -> Any:
            self.told.append((name, *given, *named.values()))
            return self

        return tell

    def to_arrow(self) -> pa.Table:
        return pa.table({"id": ["a", "b"], "_distance": SCORES})


def lance_search(table: Lance, rows: int = 900, lists: int = 0) -> StoreSearch:
    def partitions(name: str) -> int:
        assert name == "of_v"
        return lists

    opened = lancedb.search_of_table(lambda: table, partitions, rows, lancedb.METRICS, nullcontext)
    return opened(SearchedColumns("v", "meta.id"))


LANCE: list[tuple[Lance, int, str, str, list[tuple[str, int, int]], str]] = [
    (Lance(), 0, "no index: every row is looked at", "l2", [], "No index is on v: it was asked by Euclidean distance"),
    (Lance("ivf_flat"), 40, "IVF_FLAT, 40 partitions", "cosine", [("nprobes", 20, 40)], ""),
    (Lance("IVF_FLAT", "L2"), 20, "IVF_FLAT, 20 partitions", "l2", [], ""),
    (
        Lance("IVF_PQ", "dot", 3),
        21,
        "IVF_PQ, 21 partitions",
        "dot",
        [("nprobes", 20, 21), ("refine_factor", 1, 64)],
        "3 rows",
    ),
    (Lance("IVF_HNSW_SQ"), 1, "IVF_HNSW_SQ, 1 partitions", "cosine", [("ef", 15, 900), ("refine_factor", 1, 64)], ""),
    (Lance("IVF_HNSW_FLAT", "hamming"), 0, "IVF_HNSW_FLAT", "", [("ef", 15, 900)], ""),
]


@pytest.mark.parametrize(("table", "lists", "index", "metric", "expected", "note"), LANCE)
def test_lancedb_has_the_settings_of_its_index(
    table: Lance, lists: int, index: str, metric: str, expected: list[tuple[str, int, int]], note: str
) -> None:
    search = lance_search(table, lists=lists)
    assert (search.index, search.metric, dials(search)) == (index, metric, expected)
    assert [one[: len(note)] for one in search.notes] == ([note] if note else [])
    assert search.is_exact == (not table.kind)
    assert search.exact == ({"bypass_vector_index": 1} if table.kind else None)
    assert search.anew == ("more links (m) and a higher ef_construction" if "HNSW" in index else "")
    assert max({name: most for name, _, most in dials(lance_search(table, 7, lists))}.get("ef", 15), 15) == 15


@pytest.mark.parametrize(
    ("settings", "where", "told"),
    [
        ({}, (), []),
        ({"nprobes": 20, "ef": 15, "refine_factor": 1}, (), []),
        ({"nprobes": 33, "ef": 30, "refine_factor": 4}, (), [("nprobes", 33), ("ef", 30), ("refine_factor", 4)]),
        # No fewer candidates than half as many again as there are results.
        ({"ef": 16}, (), [("ef", 18)]),
        ({"bypass_vector_index": 1, "nprobes": 33}, (), [("bypass_vector_index",), ("distance_type", "cosine")]),
        (
            {},
            [("key", "it's"), ("meta.n", 3), ("a.b", True), ("a.b.c", 0.1)],
            [("where", "`key` = 'it''s' AND `meta`.`n` = 3 AND `a.b` = true AND `a.b`.`c` = 0.1")],
        ),
    ],
)
def test_lancedb_is_told_what_is_not_so_anyway(
    settings: dict[str, int], where: Sequence[tuple[str, object]], told: list[tuple[Any, ...]]
) -> None:
    table = Lance("IVF_HNSW_SQ")
    hits = lance_search(table, lists=40).find(QUERY, 12, settings, where)
    assert (hits.ids, hits.scores.tolist()) == (["a", "b"], SCORES.tolist())
    (asked, query, column), *middle, selected, limit = table.told
    assert (asked, query is QUERY, column) == ("search", True, "v")
    assert middle == told
    assert (selected, limit) == (("select", {"id": "`meta`.`id`", "_distance": "_distance"}), ("limit", 12))


def test_an_index_of_lancedb_without_a_metric_is_passed_by_as_by_default() -> None:
    table = Lance("IVF_FLAT", "hamming")
    lance_search(table).find(QUERY, 1, {"bypass_vector_index": 1}, ())
    assert ("distance_type", "l2") in table.told


# ---- Milvus ----


class Milvus:
    """A client of a collection whose vectors have this index."""

    def __init__(self, **index: Any) -> None:
        self.index = index
        self.said: dict[str, Any] = {}

    def list_indexes(self, name: str) -> list[str]:
        return ["of_key", "of_v", "of_w"]

    def describe_index(self, name: str, index: str) -> dict[str, Any] | None:
        return {"field_name": "v", **self.index} if index == "of_v" and self.index else None

    def search(self, name: str, **said: Any) -> list[list[dict[str, Any]]]:
        self.said = {"collection": name, **said}
        inner = {"entity": {"meta": {"id": "x"}}}
        return [[{"key": "a", "distance": 0.25, **inner}, {"id": "b", "distance": 0.75, **inner}]]


MILVUS_TYPES = {"key": "VARCHAR", "v": "FLOAT_VECTOR", "h": "FLOAT16_VECTOR", "b": "BINARY_VECTOR", "meta": "JSON"}


def milvus_search_of(
    client: Milvus, vector: str = "v", id_: str = "key", rows: int = 900, is_lite: bool = True
) -> StoreSearch:
    opened = milvus_search.search_of_collection(
        client,
        "docs",
        MILVUS_TYPES,
        "key",
        rows,
        lambda name: name.split(".")[0],
        lambda what, *given, **named: what(*given, **named),
        is_lite=is_lite,
    )
    return opened(SearchedColumns(vector, id_))


MILVUS: list[tuple[Milvus, bool, str, str, list[tuple[str, int, int]], bool]] = [
    (Milvus(), True, "no index: every row is looked at", "cosine", [], True),
    (Milvus(index_type="FLAT", metric_type="L2"), True, "FLAT", "l2", [], True),
    (
        Milvus(index_type="hnsw", metric_type="IP", M=8, efConstruction=50),
        True,
        "HNSW, M 8, efConstruction 50",
        "dot",
        [("ef", 64, 900)],
        False,
    ),
    (Milvus(index_type="HNSW_SQ"), False, "HNSW_SQ", "cosine", [("ef", 16, 900)], False),
    (Milvus(index_type="IVF_FLAT", nlist="40"), True, "IVF_FLAT, nlist 40", "cosine", [("nprobe", 10, 40)], False),
    (Milvus(index_type="IVF_FLAT", nlist=4), False, "IVF_FLAT, nlist 4", "cosine", [("nprobe", 4, 4)], False),
    (Milvus(index_type="IVF_PQ"), False, "IVF_PQ", "cosine", [("nprobe", 8, 900)], False),
    (Milvus(index_type="SCANN", metric_type="JACCARD"), True, "SCANN", "", [("nprobe", 10, 900)], False),
    (Milvus(index_type="DISKANN"), False, "DISKANN", "cosine", [("search_list", 16, 65_536)], False),
    (Milvus(index_type="DISKANN"), True, "DISKANN", "cosine", [], False),
]


@pytest.mark.parametrize(("client", "is_lite", "index", "metric", "expected", "is_exact"), MILVUS)
def test_milvus_has_the_settings_of_its_index(
    client: Milvus, is_lite: bool, index: str, metric: str, expected: list[tuple[str, int, int]], is_exact: bool
) -> None:
    search = milvus_search_of(client, is_lite=is_lite)
    assert (search.index, search.metric, dials(search), search.is_exact) == (index, metric, expected, is_exact)
    assert search.exact == ({"nprobe": expected[0][2]} if "IVF_FLAT" in index else None)
    assert bool(search.notes) == (not expected and not is_exact)
    assert search.takes_where
    assert search.anew == ("more links (M) and a higher efConstruction" if "HNSW" in index else "")


@pytest.mark.parametrize(
    ("client", "settings", "params"),
    [
        (Milvus(index_type="HNSW"), {}, {}),
        (Milvus(index_type="HNSW"), {"ef": 64}, {}),
        (Milvus(index_type="HNSW"), {"ef": 128}, {"ef": 128}),
        # No fewer candidates than results; lists are no candidates.
        (Milvus(index_type="HNSW"), {"ef": 3}, {"ef": 7}),
        (Milvus(index_type="IVF_FLAT", nlist=40), {"nprobe": 2}, {"nprobe": 2}),
        (Milvus(), {"ef": 3}, {}),
    ],
)
def test_milvus_is_told_what_is_not_so_anyway(client: Milvus, settings: dict[str, int], params: dict[str, int]) -> None:
    hits = milvus_search_of(client).find(QUERY, 7, settings, [("key", 'a"'), ("n", 3), ("meta.b.c", True)])
    assert (hits.ids, hits.scores.tolist()) == (["a", "b"], [0.25, 0.75])
    assert client.said == {
        "collection": "docs",
        "data": [[0.5, 0.0, -2.0]],
        "anns_field": "v",
        "limit": 7,
        "filter": 'key == "a\\"" and n == 3 and meta["b"]["c"] == true',
        "search_params": {"metric_type": "COSINE", "params": params},
        "output_fields": [],
    }


def test_milvus_gives_ids_of_another_field_and_takes_halves() -> None:
    client = Milvus(index_type="FLAT", metric_type="L2")
    assert milvus_search_of(client, id_="meta.id").find(QUERY, 7, {}, [("a b.c", 1)]).ids == ["x", "x"]
    assert (client.said["output_fields"], client.said["filter"]) == (["meta"], '$meta["a b"]["c"] == 1')
    assert client.said["search_params"]["metric_type"] == "L2"
    milvus_search_of(client, "h").find(QUERY, 7, {}, ())
    (sent,) = client.said["data"]
    assert sent.dtype == np.float16
    for vector, said in (("b", "Field b is binary_vector"), ("none", "Field none is no vector")):
        with pytest.raises(UsageError, match=said):
            milvus_search_of(client, vector)


# ---- Chroma's and Qdrant's servers ----


@pytest.mark.parametrize(
    ("own", "index", "name"),
    [
        ({"hnsw": {"max_neighbors": 8}}, "HNSW, max_neighbors 8", "ef_search"),
        ({"spann": {"search_nprobe": 4}}, "SPANN", "search_nprobe"),
        ({}, "HNSW", "ef_search"),
    ],
)
def test_chromas_server_is_asked_as_it_is_set_up(own: dict[str, Any], index: str, name: str) -> None:
    said: dict[str, Any] = {}

    def query(**given: Any) -> dict[str, Any]:
        said.update(given)
        return {"ids": [["a", "b"]], "distances": [[0.25, 0.75]]}

    collection = SimpleNamespace(configuration_json=own, metadata=None, query=query)
    opened = chroma_search.search_of_server(collection, "dot", lambda what, *given, **named: what(*given, **named))
    search = opened(SearchedColumns("v", "id"))
    assert (search.index, search.metric, search.dials, search.takes_where) == (index, "dot", (), True)
    assert name in search.notes[0]
    assert search.anew.endswith(f", or a higher {name} (collection.modify)")
    hits = search.find(QUERY, 7, {}, ())
    assert (hits.ids, hits.scores.tolist()) == (["a", "b"], [0.25, 0.75])
    plain = {"query_embeddings": [[0.5, 0.0, -2.0]], "n_results": 7, "include": ["distances"]}
    assert said == plain
    search.find(QUERY, 7, {}, [("metadata.a", 1)])
    assert said == {**plain, "where": {"a": 1}}
    search.find(QUERY, 7, {}, [("metadata.a", 1), ("metadata.b", "x")])
    assert said == {**plain, "where": {"$and": [{"a": 1}, {"b": "x"}]}}


@pytest.mark.parametrize(
    ("config", "index", "ef", "notes"),
    [
        ({}, "HNSW, m 16, ef_construct 100", (100, 900), 0),
        ({"hnsw_config": {"m": 8, "ef_construct": 1_000}}, "HNSW, m 8, ef_construct 1000", (1_000, 1_000), 0),
        (
            {"hnsw_config": {"m": 8}, "params": {"vectors": {"own": {"hnsw_config": {"m": None, "ef_construct": 50}}}}},
            "HNSW, m 8, ef_construct 50",
            (50, 900),
            0,
        ),
        ({"quantization_config": {"scalar": {}}}, "HNSW, m 16, ef_construct 100", (100, 900), 1),
    ],
)
def test_qdrants_server_is_asked_for_the_vector_that_is_meant(
    config: dict[str, Any], index: str, ef: tuple[int, int], notes: int
) -> None:
    models = pytest.importorskip("qdrant_client", reason="needs qdrant-client").models
    said: list[Any] = []

    def query_points(name: str, **given: Any) -> Any:
        said[:] = [name, given]
        return SimpleNamespace(points=[SimpleNamespace(id="a", score=0.25), SimpleNamespace(id="b", score=0.75)])

    whole = {"params": {}, **config}
    client = SimpleNamespace(
        get_collection=lambda name: SimpleNamespace(config=SimpleNamespace(model_dump=lambda mode: whole)),
        query_points=query_points,
    )
    opened = qdrant_search.search_of_client(
        client,
        "docs",
        {"vector.own": (3, "dot"), "vector": (3, "l2")},
        900,
        lambda what, *given, **named: what(*given, **named),
    )
    search = opened(SearchedColumns("vector.own", "id"))
    assert (search.index, search.metric, dials(search)) == (index, "dot", [("hnsw_ef", *ef)])
    assert (search.exact, len(search.notes), search.takes_where) == ({"exact": 1}, notes, True)
    hits = search.find(QUERY, 7, {}, ())
    assert (hits.ids, hits.scores.tolist()) == (["a", "b"], [0.25, 0.75])
    plain = {"query": [0.5, 0.0, -2.0], "using": "own", "limit": 7, "with_payload": False}
    assert said == ["docs", {**plain, "query_filter": None, "search_params": None}]
    search.find(QUERY, 7, {"hnsw_ef": 30}, [("payload.a", 1), ("payload.b", 0.5)])
    assert said[1]["search_params"] == models.SearchParams(hnsw_ef=30, exact=False)
    conditions = [
        models.FieldCondition(key="a", match=models.MatchValue(value=1)),
        models.FieldCondition(key="b", range=models.Range(gte=0.5, lte=0.5)),
    ]
    assert said[1]["query_filter"] == models.Filter(must=conditions)
    search.find(QUERY, 7, {"exact": 1}, ())
    assert said[1]["search_params"] == models.SearchParams(exact=True)
    opened(SearchedColumns("vector", "id")).find(QUERY, 7, {}, ())
    assert said[1]["using"] is None


def test_a_setting_that_a_query_does_not_have_is_refused_with_those_that_it_has() -> None:
    search = lance_search(Lance("IVF_HNSW_FLAT"), lists=40)
    assert search.present_with({"ef": 30}, "rows") == {"nprobes": 20, "ef": 30}
    assert search.present_with({"bypass_vector_index": 1}, "rows")["bypass_vector_index"] == 1
    with pytest.raises(UsageError, match="m is no setting of a query of rows") as raised:
        search.present_with({"m": 1, "nprobes": 3}, "rows")
    assert raised.value.next_step == "Settings: bypass_vector_index, ef, nprobes."
    assert SearchParameter("ef", 0, 3).wider() == (1, 2, 3)
