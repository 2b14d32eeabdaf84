"""A folder that LlamaIndex persisted: vectors by node, and beside them the nodes, which say what was embedded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import Formatter
from typing import Any

from embaudit.stores.faiss import is_faiss, open_faiss
from embaudit.stores.nested import table_of_records
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import FETCH, StoreKind, StoreTable, reported
from embaudit.words.errors import CorpusError, UsageError

VECTORS, NODES, INDEXES = "*vector_store.json", "docstore.json", "index_store.json"
DEFAULT = "default__vector_store.json"
# llama_index.core.schema: DEFAULT_TEXT_NODE_TMPL, DEFAULT_METADATA_TMPL
TEXT_TEMPLATE, METADATA_TEMPLATE, SEPARATOR = "{metadata_str}\n\n{content}", "{key}: {value}", "\n"


def open_folder(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A row for each vector; ``embedded`` is what LlamaIndex embedded of its node."""
    file = _vectors(place, asked)
    place_of_file = StorePlace(str(file))
    vectors = _in_faiss(place_of_file, asked) if is_faiss(place_of_file) else _object(file).get("embedding_dict")
    if not isinstance(vectors, dict):
        raise CorpusError(f"{file} has no embedding_dict: LlamaIndex keeps vectors in it.", next_step=FETCH)
    nodes: dict[str, Any] = {}
    if (place.path / NODES).exists():
        nodes = _object(place.path / NODES).get("docstore/data") or {}
    rows = []
    for name, vector in vectors.items():
        node = nodes.get(name) or {}
        data = node.get("__data__") or {}
        data = json.loads(data) if isinstance(data, str) else data
        rows.append({"id": name, "vector": vector, **_texts(data), "metadata": data.get("metadata") or {}})
    if not rows:
        raise CorpusError(f"{file} holds no vector.", next_step="Name the folder of another index.")
    differ = sum(row["embedded"] != row["text"] for row in rows)
    lost = sum(row["embedded"] is None for row in rows)
    notes = []
    if differ:
        notes.append(
            f"LlamaIndex embedded the metadata with the text of {differ:,} of {len(rows):,} nodes, as the nodes say: "
            "these texts were compared. --text text takes the content alone."
        )
    if lost:
        notes.append(f"{lost:,} of {len(rows):,} vectors have no node in {NODES}, or one without text.")
    return table_of_records(
        f"{place.shown}, {file.name}",
        lambda: iter(rows),
        rows=len(rows),
        vector="vector",
        id="id",
        text="embedded" if differ else "text",
        notes=tuple(notes),
    )


def _in_faiss(file: StorePlace, asked: ReadOptions) -> dict[str, Any]:
    """Vectors by node of an index of FAISS's, which is persisted under the same name; its index says whose they are."""
    table = open_faiss(file, replace(asked, part=None))
    rows = [row for batch in table.read([table.vector]) for row in batch[table.vector]]
    names: dict[str, str] = {}
    if (store := file.path.parent / INDEXES).exists():
        for one in (_object(store).get("index_store/data") or {}).values():
            data = one.get("__data__") or {}
            names |= (json.loads(data) if isinstance(data, str) else data).get("nodes_dict") or {}
    return {str(names.get(str(number), number)): vector for number, vector in enumerate(rows)}


def embedded_text(data: Mapping[str, Any]) -> str | None:
    """What LlamaIndex's ``get_content(metadata_mode=MetadataMode.EMBED)`` gives of a node."""
    content = _content(data)
    if content is None:
        return None
    left_out = set(data.get("excluded_embed_metadata_keys") or ())
    line = data.get("metadata_template") or data.get("metadata_tmpl") or METADATA_TEMPLATE
    separator = data.get("metadata_separator", data.get("metadata_seperator"))
    parts = [
        _filled(line, key=key, value=str(value))
        for key, value in (data.get("metadata") or {}).items()
        if key not in left_out
    ]
    metadata = (SEPARATOR if separator is None else separator).join(parts)
    # A TextNode strips them, and a node of another class does not.
    metadata = metadata if "text_resource" in data else metadata.strip()
    if not metadata:
        return content
    return _filled(data.get("text_template") or TEXT_TEMPLATE, content=content, metadata_str=metadata).strip()


def _filled(template: str, **values: str) -> str:
    """``str.format`` for plain names alone: a file's template must reach nothing else."""
    return "".join(
        before + ("" if name is None else values.get(name, "{" + name + "}"))
        for before, name, _, _ in Formatter().parse(template)
    )


def _texts(data: Mapping[str, Any]) -> dict[str, str | None]:
    return {"text": _content(data), "embedded": embedded_text(data)}


def _content(data: Mapping[str, Any]) -> str | None:
    resource = data.get("text_resource")
    found = data.get("text", resource.get("text") if isinstance(resource, Mapping) else None)
    return found if isinstance(found, str) else None


def _vectors(place: StorePlace, asked: ReadOptions) -> Path:
    files = {file.name: file for file in sorted(place.path.glob(VECTORS))}
    if asked.part:
        found = [file for name, file in files.items() if asked.part in (name, name.partition("__")[0])]
    else:
        found = [files[DEFAULT]] if DEFAULT in files else list(files.values())
    if len(found) != 1:
        raise UsageError(
            f"{place.shown} holds {', '.join(files)}.",
            next_step=f"Name the one that is meant: --from {next(iter(files))}",
        )
    return found[0]


def _object(file: Path) -> dict[str, Any]:
    with reported(str(file)):
        try:
            content = json.loads(file.read_bytes())
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"{file} is not JSON: {error}.", kept="Nothing was measured.", next_step=FETCH) from error
    if not isinstance(content, dict):
        raise CorpusError(f"{file} is no object.", kept="Nothing was measured.", next_step=FETCH)
    return content


KINDS = (
    StoreKind(
        name="LlamaIndex",
        recognises=lambda place: place.holds(VECTORS),
        open=open_folder,
        looks="a folder with default__vector_store.json and docstore.json (LlamaIndex)",
        tried="a folder persisted by llama-index-core 0.14.25",
    ),
)
