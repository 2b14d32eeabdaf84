"""``embaudit.search``: look at a store's own search from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.api.rows import opened_first, rows_asked_for, with_filter
from embaudit.api.switch import QUERY
from embaudit.corpora.draw import Draw
from embaudit.corpora.load import load_corpus
from embaudit.embedders.opened import CallOptions, Given, asked_of, name_of, open_kept
from embaudit.questions.audit import AuditRequest
from embaudit.questions.search.report import QUERIES, RECALL, SearchReport, look_at_search
from embaudit.stores.opened import open_store
from embaudit.stores.place import ReadOptions
from embaudit.words.errors import UsageError

# Files that hold no texts.
MATRICES = (".npy", ".npz", ".safetensors", ".pt", ".h5")
Progress = Callable[[str, int, int | None], None]


def search(
    store: str | Path,
    function: Given | None = None,
    *,
    api: str | None = None,
    model: str | None = None,
    queries: str | Path | None = None,
    where: Mapping[str, object] | None = None,
    query_settings: Mapping[str, int] | None = None,
    recall: float = RECALL,
    vector: str | None = None,
    text: str | None = None,
    id: str | None = None,
    texts: str | Path | None = None,
    from_table: str | None = None,
    count: int = QUERIES,
    rows: int | None = None,
    **settings: Any,
) -> SearchReport:
    """Does a store's own search find what its vectors hold? It is asked beside exact search over the same vectors.

    Args:
        store: a FAISS index, the folder or address of a store, a database (docs/search.md lists them).
        function: encodes queries: a checkpoint, an endpoint's address, or a Python object; None: stored vectors ask for
            their neighbours.
        queries: a file of queries, or of their vectors, for which no function is needed; by default, the first words of
            stored texts.
        where: the search is also asked with this filter: only rows whose fields have these values.
        query_settings: what the application sets in a query: ``{"efSearch": 64}``; by default, the store's own.
        recall: of the ten nearest rows, the share that is wanted.
        vector, text, id, texts, from_table: as for ``embaudit.vectors``.
        count, rows: how many queries are asked, and how many rows are asked for by their own vectors (2,000; of a graph
            in memory 10,000).
        settings: seed of the draws, and how a checkpoint is loaded.

    Raises:
        EmbauditError: if the store or the function cannot be read, or a setting is unknown.
    """
    request = AuditRequest.of(checkpoint=name_of(function if function is not None else str(store)), **settings)
    return run(
        request,
        str(store),
        rows_asked_for(texts, from_table, where, vector=vector, text=text, id=id),
        function=function,
        asked=None if function is None else asked_of([function], api=api, model=model)[0],
        queries=None if queries is None else str(queries),
        query_settings=query_settings or {},
        recall=recall,
        count=count,
        rows=rows,
    )


def run(
    request: AuditRequest,
    named: str,
    asked_rows: ReadOptions,
    *,
    function: Given | None = None,
    asked: CallOptions | None = None,
    queries: str | None = None,
    query_settings: Mapping[str, int],
    recall: float = RECALL,
    count: int = QUERIES,
    rows: int | None = None,
    progress: Progress = lambda what, done, total: None,
) -> SearchReport:
    """Look at a store's search, by the queries of a function if one is named."""
    texts: Sequence[str] | None = None
    vectors = None
    if queries is not None and (function is None or Path(queries).suffix in MATRICES):
        vectors = vectors_of(queries, count)
    elif queries is not None:
        draw = Draw(rows=count, seed=request.seed)
        texts = [text.text for text in load_corpus(QUERY, queries, draw=draw).texts]
    first = opened_first(named, replace(asked_rows, where=()))
    with ExitStack() as stack:
        opened = None
        if function is not None:
            ways = asked or asked_of([function])[0]
            options = replace(request.load_options, dtype="float32")
            opened = stack.enter_context(open_kept(function, options, ways))
        store, filtered = with_filter(opened, named, asked_rows, first)
        return look_at_search(
            store,
            opened,
            filtered=filtered,
            texts=texts,
            vectors=vectors,
            settings=query_settings,
            queries=count,
            rows=rows,
            target=recall,
            seed=request.seed,
            progress=progress,
        )


def vectors_of(file: str, most: int) -> np.ndarray:
    """(Q, D) the first vectors of a file; those of the dimension that most have."""
    found: dict[int, list[np.ndarray]] = {}
    for batch in open_store(file).batches():
        for dimension, (_, vectors) in batch.vectors.items():
            found.setdefault(dimension, []).append(np.asarray(vectors, np.float32))
        if sum(map(len, (one for own in found.values() for one in own))) >= most:
            break
    if not found:
        raise UsageError(f"{file} has no vectors.", next_step="Name a function that encodes queries, or another file.")
    return np.concatenate(max(found.values(), key=lambda own: sum(map(len, own))))[:most]
