"""LangChain's search in a FAISS index: what a filter keeps is looked for among the first ``fetch_k`` rows alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from embaudit.stores.search import Hits, OpenSearch, SearchedColumns, SearchParameter, Settings, StoreSearch, Where
from embaudit.words.errors import UsageError

FETCH, DEFAULT_FETCH = "fetch_k", 20
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
            inner = {name: value for name, value in settings.items() if name != FETCH}
            hits = own.find(query, settings.get(FETCH, DEFAULT_FETCH) if where else k, inner, ())
            found = [
                (names.get(int(str(place)), ""), score) for place, score in zip(hits.ids, hits.scores, strict=True)
            ]
            kept = [one for one in found if one[0] in documents and _is_kept(documents[one[0]], wanted)][:k]
            return Hits([name for name, _ in kept], np.array([score for _, score in kept], dtype=np.float64))

        can_be_exact = own.is_exact or own.exact is not None
        return replace(
            own,
            find=find,
            dials=(*own.dials, SearchParameter(FETCH, DEFAULT_FETCH, max(rows, DEFAULT_FETCH))),
            exact={**(own.exact or {}), FETCH: max(rows, DEFAULT_FETCH)} if can_be_exact else None,
            # With a filter, no index is.
            is_exact=False,
            takes_where=True,
            notes=(
                *own.notes,
                f"LangChain filters the first {FETCH} results of FAISS, {DEFAULT_FETCH} unless it is told otherwise.",
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
