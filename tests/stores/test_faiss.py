"""FAISS's index files: every kind gives its rows in order, and a code book's rows are judged as it rounds them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from some_rows import mostly_slow

import embaudit
from embaudit.questions.vectors.forms import form_of_index
from embaudit.stores.faiss_rows import FaissRows
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.stores.store import Store
from embaudit.words.errors import CorpusError, EmbauditError, EmptyStore

faiss = pytest.importorskip("faiss", reason="faiss is missing: pip install faiss-cpu")
ROWS, D = 5_000, 16
VECTORS = np.random.default_rng(0).normal(size=(ROWS, D)).astype(np.float32)
EXACT = ["Flat", "HNSW8", "IVF8,Flat", "IDMap,Flat", "IDMap2,Flat", "IDMap,HNSW8", "PQ4,RFlat", "IDMap,IVF8,Flat"]
CODED = ["SQ8", "SQfp16", "SQ4", "PQ8x6", "IVF8,PQ8x6", "IVF8,SQ8", "HNSW8,SQ8", "OPQ8,PQ8x6", "RaBitQ", "PCA8,Flat"]


def written(folder: Path, kind: str, vectors: np.ndarray = VECTORS, trained: int = ROWS) -> Path:
    index = faiss.index_factory(D, kind, faiss.METRIC_INNER_PRODUCT)
    for part in (index, getattr(index, "base_index", None), getattr(index, "index", None)):
        if hasattr(coder := faiss.downcast_index(part), "do_polysemous_training"):
            # An order of codes that no reader sees; it would take seconds.
            coder.do_polysemous_training = False
    index.train(VECTORS[:trained])
    if kind.startswith("IDMap"):
        index.add_with_ids(vectors, np.arange(len(vectors)) * 3 + 7)
    else:
        index.add(vectors)
    faiss.write_index(index, str(folder / "rows.faiss"))
    return folder / "rows.faiss"


def rows_of(store: Store) -> tuple[np.ndarray, list[Any]]:
    batches = list(store.batches())
    return np.concatenate([one.vectors[D][1] for one in batches]), [name for one in batches for name in one.ids or ()]


@pytest.mark.parametrize("kind", EXACT)
def test_vectors_are_read_in_order_and_the_file_stays_as_it_is(kind: str, tmp_path: Path) -> None:
    place = written(tmp_path, kind)
    before = hashlib.sha256(place.read_bytes()).hexdigest()
    store = open_store(place)
    vectors, ids = rows_of(store)
    assert (vectors == VECTORS).all()
    assert ids == [row * 3 + 7 if kind.startswith("IDMap") else row for row in range(ROWS)]
    assert (store.kind, store.metric, store.rows, store.notes) == ("FAISS", "dot", ROWS, ())
    assert [file.name for file in tmp_path.iterdir()] == ["rows.faiss"]
    assert hashlib.sha256(place.read_bytes()).hexdigest() == before


FEW = 300
FURTHER = ["IDMap,IVF8,PQ4x4", "IDMap2,IVF8,SQ8", "PQ8x4fs"]


@pytest.mark.parametrize("kind", [*EXACT, *(one for one in CODED if "OPQ" not in one), *FURTHER])
@pytest.mark.parametrize("count", [1, 60])
def test_what_is_read_is_what_it_rounds_a_vector_to(kind: str, count: int, tmp_path: Path) -> None:
    place = written(tmp_path, kind, VECTORS[:count], FEW)
    rows = FaissRows(faiss, place, place.read_bytes()[:64], "rows.faiss")
    found = np.concatenate([vectors for _, vectors in rows.batches()])
    missing = np.full((1, D), np.nan, dtype=np.float32)
    rounded = rows.rounded(np.concatenate([VECTORS[:count], missing]))
    np.testing.assert_allclose(found, rounded[:-1], atol=1e-5)
    assert np.isnan(rounded[-1]).all()
    if not kind.startswith("PCA"):
        # Nearer to its own vector than to others.
        nearest = ((found[:, None] - VECTORS[None, :FEW]) ** 2).sum(axis=2).argmin(axis=1)
        assert (nearest == np.arange(count)).mean() > 0.9
    assert (rows.count, rows.dimension, rows.is_exact, rows.is_binary) == (count, D, kind in EXACT, False)
    # Lists are left on disk, wherever they are wrapped in ids.
    has_lists = kind.split(",")[-2 if kind.count(",") else 0].startswith("IVF")
    assert (rows._flags == faiss.IO_FLAG_MMAP) == has_lists
    assert rows.ids.tolist() == [row * 3 + 7 if kind.startswith("IDMap") else row for row in range(count)]


@pytest.mark.parametrize("kind", ["Flat", "IVF8,Flat", "IDMap,Flat", "HNSW8,SQ8"])
def test_an_index_without_rows_is_one_error(kind: str, tmp_path: Path) -> None:
    with pytest.raises(EmptyStore, match=r"rows\.faiss is an index without rows") as raised:
        open_store(written(tmp_path, kind, VECTORS[:0], FEW))
    assert raised.value.next_step == "Add vectors, or name another file."


def test_an_index_of_which_faiss_gives_no_vectors_is_refused(tmp_path: Path) -> None:
    """Of the codes of a fast scan in lists, it would end the program."""
    with pytest.raises(CorpusError, match=r"rows\.faiss is an index from which FAISS cannot reconstruct") as raised:
        open_store(written(tmp_path, "IVF8,PQ8x4fs", VECTORS[:60], FEW))
    assert raised.value.next_step == "Name a file of the vectors that it was built from."
    assert raised.value.kept == "Nothing was measured."


@pytest.mark.parametrize("kind", mostly_slow(CODED, {*CODED} - {"OPQ8,PQ8x6"}))
def test_rows_of_a_code_book_are_its_own_and_those_of_others_are_not(kind: str, tmp_path: Path) -> None:
    stored = VECTORS[:400].copy()
    stored[:16] = np.roll(VECTORS[:16], 5, axis=0)
    store = open_store(written(tmp_path, kind, stored))
    assert "codes" in store.notes[0]
    found, _ = rows_of(store)
    ours = VECTORS[:400] + np.float32(1e-6)
    form = form_of_index(ours, found, store.rounded)
    assert form is not None
    distances = form.distance(ours, found)
    is_foreign = distances > form.tolerance(distances)
    assert not is_foreign[16:].any()
    assert is_foreign[:16].all()


@pytest.mark.parametrize("kind", ["IVF8,Flat", "SQ8"])
def test_an_index_of_a_checkpoint_with_its_texts(kind: str, tiny_faiss: Any, tmp_path: Path) -> None:
    texts, vectors, folder = tiny_faiss
    index = faiss.index_factory(vectors.shape[1], kind)
    index.train(vectors)
    index.add(vectors)
    faiss.write_index(index, str(tmp_path / "rows.index"))
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    report = embaudit.vectors(tmp_path / "rows.index", folder, texts=tmp_path / "texts.jsonl", device="cpu")
    assert report.verdict == "wholly its own"


@pytest.fixture(scope="module")
def tiny_faiss(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from tiny import ENGLISH, tiny_bert

    from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint

    folder = tiny_bert(tmp_path_factory.mktemp("faiss") / "tiny")
    words = [word for word in ENGLISH.split() if len(word) > 3]
    texts = [f"the {word} of {words[-1 - row]} {row}" for row, word in enumerate(words)][:320]
    return texts, Encoder(load_checkpoint(str(folder), LoadOptions(device="cpu"))).encode_texts(texts), folder


@pytest.mark.parametrize("kind", ["Flat", "HNSW8", "IVF8,Flat", "IVF8,PQ4x4", "SQ8"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.95])
def test_a_half_written_file_is_named(kind: str, share: float, tmp_path: Path) -> None:
    place = written(tmp_path, kind)
    place.write_bytes(place.read_bytes()[: int(place.stat().st_size * share)])
    with pytest.raises(EmbauditError, match=r"rows\.faiss cannot be read"):
        list(open_store(place, ReadOptions()).batches())


@pytest.mark.parametrize(
    ("content", "said"), [(b"", "is empty"), (b"hello, this is text" * 9, "starts with b'hell'")], ids=["empty", "text"]
)
def test_what_is_no_index_is_named(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "rows.faiss").write_bytes(content)
    with pytest.raises(EmbauditError, match=said):
        open_store(tmp_path / "rows.faiss")


def test_a_binary_index(tmp_path: Path) -> None:
    bits = np.random.default_rng(0).integers(0, 256, (300, 8), dtype=np.uint8)
    index = faiss.IndexBinaryFlat(64)
    index.add(bits)
    faiss.write_index_binary(index, str(tmp_path / "rows.faiss"))
    (batch,) = open_store(tmp_path / "rows.faiss").batches()
    assert (batch.vectors[8][1] == bits).all()


def test_codes_that_are_too_coarse_cannot_be_told(tiny_faiss: Any, tmp_path: Path) -> None:
    texts, vectors, folder = tiny_faiss
    index = faiss.index_factory(vectors.shape[1], "PQ1x2", faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.add(vectors)
    place, beside = tmp_path / "coarse.faiss", tmp_path / "texts.jsonl"
    faiss.write_index(index, str(place))
    beside.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    report = embaudit.vectors(place, folder, device="cpu", texts=beside, with_explanation=False)
    assert (report.verdict, report.exit_code) == ("could not be told", 2), report.line
    assert "would pass for the row of another text" in " ".join(finding.sentence for finding in report.findings)
