"""LlamaIndex's folder: the text that was embedded is computed as its nodes say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from embaudit.stores.frameworks import embedded_text
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.words.errors import EmbauditError


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
