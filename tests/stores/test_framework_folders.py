"""Folders of LangChain and LlamaIndex: texts, metadata and ids beside the vectors, and nothing pickled runs."""

from __future__ import annotations

import copyreg
import functools
import json
import os
import pickle
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from planted_calls import Calls

from embaudit.stores.frameworks import embedded_text
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.words.errors import EmbauditError

faiss = pytest.importorskip("faiss", reason="needs faiss: pip install 'embaudit[faiss]'")
VECTORS = np.random.default_rng(0).normal(size=(30, 8)).astype(np.float32)
HOMES = {
    "today's": ("langchain_community.docstore.in_memory", "langchain_core.documents.base"),
    "of 2023": ("langchain.docstore.in_memory", "langchain.schema.document"),
}


def build(folder: Path, vectors: np.ndarray, texts: Any, ids: Any, titles: Any, kind: str = "Flat") -> str:
    """A folder of these rows, with classes of LangChain's names that are gone afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        store_class, document_class = made_classes(HOMES["today's"], patch)
        store, documents = store_class(), {}
        for name, text, title in zip(ids, texts, titles, strict=True):
            documents[name] = document_class()
            documents[name].__dict__.update(page_content=text, metadata={"title": title}, id=name)
        store.__dict__["_dict"] = documents
        pickled = pickle.dumps((store, dict(enumerate(ids))))
    index = faiss.index_factory(vectors.shape[1], kind)
    index.train(vectors)
    index.add(vectors)
    faiss.write_index(index, str(folder / "index.faiss"))
    (folder / "index.pkl").write_bytes(pickled)
    return str(folder)


def made_classes(homes: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> tuple[type, type]:
    made = []
    for home, name in zip(homes, ("InMemoryDocstore", "Document"), strict=True):
        module = types.ModuleType(home)
        made.append(type(name, (), {"__module__": home}))
        setattr(module, name, made[-1])
        for end in range(1, len(home.split("."))):
            parent = ".".join(home.split(".")[:end])
            monkeypatch.setitem(sys.modules, parent, sys.modules.get(parent, types.ModuleType(parent)))
        monkeypatch.setitem(sys.modules, home, module)
    return made[0], made[1]


@pytest.fixture
def classes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[type, type]:
    """Classes with the names and homes of LangChain's, to be pickled; gone when the folder is read."""
    return made_classes(HOMES[request.param], monkeypatch)


def written(folder: Path, docstore: object) -> Path:
    index = faiss.index_factory(VECTORS.shape[1], "Flat")
    index.add(VECTORS)
    faiss.write_index(index, str(folder / "index.faiss"))
    (folder / "index.pkl").write_bytes(docstore if isinstance(docstore, bytes) else pickle.dumps(docstore))
    return folder


@pytest.mark.parametrize("classes", HOMES, indirect=True)
def test_texts_metadata_and_ids_are_read(
    classes: tuple[type, type], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, document = classes[0](), {}
    for row in range(len(VECTORS)):
        one = document[f"id-{row}"] = classes[1]()
        one.__dict__.update(page_content=f"text {row}", metadata={"source": f"file-{row}"}, id=None)
    store.__dict__["_dict"] = document
    place = written(tmp_path, (store, {row: f"id-{row}" for row in range(len(VECTORS))}))
    for home in HOMES["today's"] + HOMES["of 2023"]:
        monkeypatch.delitem(sys.modules, home, raising=False)
    before = {file.name: file.read_bytes() for file in place.iterdir()}
    found = open_store(place)
    (batch,) = found.batches(["metadata.source"])
    assert (batch.vectors[VECTORS.shape[1]][1] == VECTORS).all()
    assert batch.texts == [f"text {row}" for row in range(len(VECTORS))]
    assert batch.ids == [f"id-{row}" for row in range(len(VECTORS))]
    assert batch.fields["metadata.source"][3] == "file-3"
    assert {file.name: file.read_bytes() for file in place.iterdir()} == before


class Refers(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        return "somewhere" if obj == "refer" else None


def persistent() -> bytes:
    import io

    file = io.BytesIO()
    Refers(file).dump(("refer", {}))
    return file.getvalue()


# Written by hand: names that pickle itself would not write.
ATTACKS: dict[str, Any] = {
    "os.system": lambda mark: Calls(os.system, f"touch {mark}"),
    "eval": lambda mark: Calls(eval, f"open({str(mark)!r}, 'w')"),
    "getattr": lambda mark: Calls(getattr, 0, "bit_length"),
    "functools.partial": lambda mark: Calls(functools.partial, print),
    "copyreg": lambda mark: Calls(copyreg._reconstructor, object, object, None),  # type: ignore[attr-defined]
    "open": lambda mark: Calls(open, str(mark), "w"),
    "a path inside a class": lambda mark: (
        b"\x80\x04\x8c\x1dlangchain_core.documents.base\x8c\x1dDocument.__init__.__globals__\x93."
    ),
    "an extension": lambda mark: b"\x80\x02\x82\x01.",
    "something outside": lambda mark: persistent(),
    "no pickle": lambda mark: b"hello",
    "nothing": lambda mark: b"",
    "another form": lambda mark: pickle.dumps({"texts": []}),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_nothing_that_a_docstore_holds_runs(attack: Any, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    content = attack(mark)
    place = written(tmp_path, content if isinstance(content, bytes) else (content, {}))
    store = open_store(place)
    assert any("index.pkl" in note and "nothing in it was run" in note for note in store.notes)
    (batch,) = store.batches()
    assert (batch.vectors[VECTORS.shape[1]][1] == VECTORS).all()
    assert batch.texts is None
    assert not mark.exists()


def test_a_filter_keeps_what_it_finds_among_the_first_that_are_fetched(tmp_path: Path) -> None:
    titles = ["rare" if row % 10 == 0 else "often" for row in range(len(VECTORS))]
    place = build(tmp_path, VECTORS, titles, [f"id-{row}" for row in range(len(VECTORS))], titles)
    search = open_store(place).search()  # type: ignore[misc]
    order = np.argsort(((VECTORS - VECTORS[0]) ** 2).sum(axis=1), kind="stable").tolist()
    where = [("metadata.title", "rare")]
    for fetched in (1, 20, len(VECTORS)):
        wanted = [f"id-{row}" for row in order[:fetched] if row % 10 == 0]
        assert search.find(VECTORS[0], 30, {"fetch_k": fetched}, where).ids == wanted
    assert (
        len(search.find(VECTORS[0], 30, {}, where).ids) < len(search.find(VECTORS[0], 30, search.exact, where).ids) == 3
    )
    assert len(search.find(VECTORS[0], 30, {}, ()).ids) == 30


# ---- LlamaIndex ----


def folder(place: Path) -> Path:
    nodes = {
        name: {"__data__": {"text": f"text {name}", "metadata": {"file_name": f"{name}.txt", "n": 3},
                            "excluded_embed_metadata_keys": ["n"]}}
        for name in ("a", "b", "deleted")
    }  # fmt: skip
    vectors = {"b": [0.5, 1.0], "a": [1.5, 2.0]}
    (place / "default__vector_store.json").write_text(json.dumps({"embedding_dict": vectors}))
    (place / "image__vector_store.json").write_text(json.dumps({"embedding_dict": {}}))
    (place / "docstore.json").write_text(json.dumps({"docstore/data": nodes}))
    return place


def test_what_was_embedded_is_the_text(tmp_path: Path) -> None:
    before = {file.name: file.read_bytes() for file in folder(tmp_path).iterdir()}
    store = open_store(tmp_path)
    (batch,) = store.batches(["text", "metadata.file_name"])
    assert batch.ids == ["b", "a"]
    assert batch.texts == ["file_name: b.txt\n\ntext b", "file_name: a.txt\n\ntext a"]
    assert batch.fields == {"text": ["text b", "text a"], "metadata.file_name": ["b.txt", "a.txt"]}
    assert "2 of 2 nodes" in store.notes[0]
    assert next(iter(open_store(tmp_path, ReadOptions(text="text")).batches())).texts == ["text b", "text a"]
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("node", "text"),
    [
        ({"text": "t"}, "t"),
        ({"text": "t", "metadata": {"k": 1}, "excluded_embed_metadata_keys": ["k"]}, "t"),
        ({"text": "{t}", "metadata": {"a": "{x}", "b": 2}, "metadata_separator": " | ",
          "metadata_template": "<{key}={value}>", "text_template": "{{{metadata_str}}} {content}"},
         "{<a={x}> | <b=2>} {t}"),
        ({"text_resource": {"text": "t"}, "metadata": {"k": "v"}}, "k: v\n\nt"),
        ({"text": "t", "metadata": {"k": "v"}, "text_template": "{content.__class__}{content}"},
         "{content.__class__}t"),
    ],
)  # fmt: skip
def test_templates_of_a_node(node: dict[str, object], text: str) -> None:
    assert embedded_text(node) == text


def test_a_broken_folder_is_named(tmp_path: Path) -> None:
    (folder(tmp_path) / "default__vector_store.json").write_text('{"embedding_dict": {"a": [1.')
    with pytest.raises(EmbauditError, match="is not JSON"):
        open_store(tmp_path)
    (tmp_path / "default__vector_store.json").write_text("[1, 2]")
    with pytest.raises(EmbauditError, match="is no object"):
        open_store(tmp_path)
    (tmp_path / "default__vector_store.json").write_text('{"embedding_dict": [1, 2]}')
    with pytest.raises(EmbauditError, match="has no embedding_dict"):
        open_store(tmp_path)
