"""A folder that LlamaIndex persisted: vectors by node, and beside them the nodes, which say what was embedded.

LangChain's folder of a FAISS index: the index, and beside it a pickled docstore, of which nothing is run.

LangChain's search in a FAISS index: what a filter keeps is looked for among the first ``fetch_k`` rows alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Formatter
from typing import Any

import numpy as np

from embaudit.stores.faiss import ID, VECTOR, is_faiss, open_faiss
from embaudit.stores.nested import at, column_of, flat, listed, table_of_records
from embaudit.stores.pickled import DOCUMENTS, OnlyThese, stand_ins
from embaudit.stores.place import ReadOptions, StorePlace, part_meant
from embaudit.stores.search import Hits, OpenSearch, SearchedColumns, SearchParameter, Settings, StoreSearch, Where
from embaudit.stores.store import FETCH, LOOKED_AT, StoreKind, StoreTable, Values, reported
from embaudit.words.errors import CorpusError, UsageError, one_line

VECTORS, NODES, INDEXES = "*vector_store.json", "docstore.json", "index_store.json"
DEFAULT = "default__vector_store.json"
# llama_index.core.schema: DEFAULT_TEXT_NODE_TMPL, DEFAULT_METADATA_TMPL
TEXT_TEMPLATE, METADATA_TEMPLATE, SEPARATOR = "{metadata_str}\n\n{content}", "{key}: {value}", "\n"


def open_index(place: StorePlace, asked: ReadOptions) -> StoreTable:
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


FETCH_K, DEFAULT_FETCH = "fetch_k", 20
FIELD = "metadata."


def search_of_documents(
    index: OpenSearch, documents: Mapping[str, Mapping[str, Any]], names: Mapping[int, str]
) -> OpenSearch:
    """The search of an index, of which the results are documents."""

    def open_search(columns: SearchedColumns) -> StoreSearch:
        own = index(columns)
        rows = len(names)

        def find(query: np.ndarray, k: int, settings: Settings, where: Where) -> Hits:
            wanted = _wanted(where)
            inner = {name: value for name, value in settings.items() if name != FETCH_K}
            hits = own.find(query, settings.get(FETCH_K, DEFAULT_FETCH) if where else k, inner, ())
            found = [
                (names.get(int(str(place)), ""), score) for place, score in zip(hits.ids, hits.scores, strict=True)
            ]
            kept = [one for one in found if one[0] in documents and _is_kept(documents[one[0]], wanted)][:k]
            return Hits([name for name, _ in kept], np.array([score for _, score in kept], dtype=np.float64))

        can_be_exact = own.is_exact or own.exact is not None
        return replace(
            own,
            find=find,
            dials=(*own.dials, SearchParameter(FETCH_K, DEFAULT_FETCH, max(rows, DEFAULT_FETCH))),
            exact={**(own.exact or {}), FETCH_K: max(rows, DEFAULT_FETCH)} if can_be_exact else None,
            # With a filter, no index is.
            is_exact=False,
            takes_where=True,
            notes=(
                *own.notes,
                f"LangChain filters the first {FETCH_K} results of FAISS, {DEFAULT_FETCH} unless it is told otherwise.",
            ),
        )

    return open_search


def _wanted(where: Where) -> dict[str, object]:
    for name, _ in where:
        if not name.startswith(FIELD):
            raise UsageError(
                f"LangChain filters by metadata, and {name} is none.",
                next_step=f"Name a field of the metadata: --where {FIELD}FIELD=VALUE",
            )
    return {name.removeprefix(FIELD): value for name, value in where}


def _is_kept(document: Mapping[str, Any], wanted: Mapping[str, object]) -> bool:
    metadata = document.get("metadata") or {}
    return all(metadata.get(key) == value for key, value in wanted.items())


TEXT = "text"


def open_folder(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The rows of the index with their documents; ``--from NAME`` says which of several."""
    names = sorted(file.stem for file in place.path.glob("*.faiss") if file.with_suffix(".pkl").exists())
    default = "index" if "index" in names else None
    name = part_meant(names, asked.part or default, place.shown, "index")
    table = open_faiss(StorePlace(str(place.path / f"{name}.faiss")), asked)
    table = replace(table, shown=f"{place.shown}, {name}")
    try:
        return with_documents(table, *docstore(place.path / f"{name}.pkl"))
    except CorpusError as error:
        # Of another's pickle nothing is read; the vectors are, and what else lies beside them.
        from embaudit.stores.beside import with_texts_beside

        is_pointer = f"{name}.pkl" in place.pointers()
        why = f"{name}.pkl is a pointer of Git LFS (git lfs pull fetches the file)" if is_pointer else error.happened
        note = f"{why.rstrip('.')}: its texts are not read, and nothing in it was run."
        return with_texts_beside(replace(table, notes=(*table.notes, note)), place.path / f"{name}.faiss")


def docstore(file: Path) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[int, str]]:
    """Documents by id, and the ids by place in the index.

    Raises:
        CorpusError: if the file holds anything but these, or is damaged.
    """
    with reported(str(file)):
        try:
            with file.open("rb") as stream:
                store, names = OnlyThese(stream, stand_ins(DOCUMENTS)).load()
            documents = {name: dict(vars(one)) for name, one in vars(store)["_dict"].items()}
            return documents, {int(place): name for place, name in dict(names).items()}
        except OSError:
            raise
        except Exception as error:
            raise CorpusError(
                f"{file} is no docstore of LangChain's: {one_line(error) or type(error).__name__}.",
                kept="Nothing in it was run: only LangChain's documents are read from a pickle.",
                next_step=f"{FETCH} If it is another's pickle, do not open it.",
            ) from error


def with_documents(
    table: StoreTable, documents: Mapping[str, Mapping[str, Any]], names: Mapping[int, str]
) -> StoreTable:
    """The rows of an index by their documents' ids, with texts and metadata."""

    def fields(place: Any) -> dict[str, Any]:
        name = names.get(place)
        one = documents.get(name, {}) if name is not None else {}
        return {ID: name, TEXT: one.get("page_content"), "metadata": one.get("metadata") or {}}

    some: dict[str, list[Any]] = {}
    for place in list(names)[:LOOKED_AT]:
        for path, value in flat(fields(place)):
            some.setdefault(path, []).extend([] if value is None else [value])
    lost = sum(name not in documents for name in names.values())
    notes = (f"{lost:,} rows of the index have no document: LangChain cannot return them.",) if lost else ()

    def read(wanted: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        for batch in table.read([VECTOR, ID] if VECTOR in wanted else [ID]):
            rows = [fields(place) for place in listed(batch[ID])]
            yield {name: batch[VECTOR] if name == VECTOR else [at(row, name) for row in rows] for name in wanted}

    columns = {VECTOR: table.columns[VECTOR], **{name: column_of(own) for name, own in some.items()}}
    columns.setdefault(TEXT, column_of([""]))
    return replace(
        table,
        columns=columns,
        read=read,
        text=TEXT,
        id=ID,
        notes=(*table.notes, *notes),
        search=None if table.search is None else search_of_documents(table.search, documents, names),
    )


def is_langchain(place: StorePlace) -> bool:
    return place.holds("*.faiss") and any(file.with_suffix(".pkl").exists() for file in place.path.glob("*.faiss"))


KINDS = (
    StoreKind(
        name="LangChain's FAISS",
        recognises=is_langchain,
        open=open_folder,
        looks="a folder with index.faiss and index.pkl (LangChain)",
        tried="a folder written by langchain-community 0.4.2",
        extra="faiss",
    ),
    StoreKind(
        name="LlamaIndex",
        recognises=lambda place: place.holds(VECTORS),
        open=open_index,
        looks="a folder with default__vector_store.json and docstore.json (LlamaIndex)",
        tried="a folder persisted by llama-index-core 0.14.25",
    ),
)
