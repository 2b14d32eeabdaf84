"""Chroma's own search. How many candidates it looks at is a setting of the collection, which a query cannot change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.stores.search import Hits, OpenSearch, SearchedColumns, SearchParameter, Settings, StoreSearch, Where
from embaudit.stores.store import Metric
from embaudit.words.errors import UsageError

EF, DEFAULT_EF = "ef_search", 100
OLD_EF = "hnsw:search_ef"
FIELD = "metadata."
# Indexes that are held in memory at once: at the present setting, and at the one that is tried beside it.
HELD = 2
ANEW = "more links (max_neighbors) and a higher ef_construction"
Ask = Callable[..., Any]


def search_on_copy(
    copy: Path, opened: Callable[[str], Any], name: str, metric: Metric, rows: int, ask: Ask
) -> OpenSearch:
    """The search of a folder's copy, on which the collection's setting is changed as a user could change it.

    Args:
        opened: opens a client of a folder.
    """

    def open_search(_: SearchedColumns) -> StoreSearch:
        at: dict[int, Any] = {}
        own = ask(lambda: opened(str(copy)).get_collection(name, embedding_function=None))
        present = _ef(own)

        def collection(ef: int) -> Any:
            """The collection, of which the index was loaded with this setting: it is read when it is loaded."""
            if ef in at:
                return at[ef][1]
            for gone in [one for one in at if one != present][: max(len(at) - HELD + 1, 0)]:
                at.pop(gone)[0].close()
            # Clients of one path share what is loaded; those of two names of it do not.
            link = copy / f"at-{ef}"
            if not link.exists():
                link.symlink_to(copy)
            client = opened(str(link))
            found = client.get_collection(name, embedding_function=None)
            if _ef(found) != ef:
                found.modify(configuration={"hnsw": {EF: ef}})
                found = client.get_collection(name, embedding_function=None)
            at[ef] = client, found
            return found

        def find(query: np.ndarray, k: int, settings: Settings, where: Where) -> Hits:
            return _hits(ask, ask(collection, int(settings.get(EF, present))), query, k, where)

        return StoreSearch(
            index=_index(_own(own)),
            find=find,
            metric=metric,
            dials=(SearchParameter(EF, present, max(rows, present)),),
            takes_where=True,
            notes=(
                "ef_search is a setting of the collection: collection.modify(configuration={'hnsw': {'ef_search': N}}),"
                " in force when a client opens it next. Here it was changed on a copy.",
            ),
            anew=ANEW,
        )

    return open_search


def search_of_server(collection: Any, metric: Metric, ask: Ask) -> OpenSearch:
    """The search of a server's collection, as it is set up: nothing is changed."""

    def open_search(_: SearchedColumns) -> StoreSearch:
        own = _own(collection)
        name = "search_nprobe" if "search_nprobe" in own else EF
        return StoreSearch(
            index=_index(own),
            find=lambda query, k, _, where: _hits(ask, collection, query, k, where),
            metric=metric,
            takes_where=True,
            notes=(f"{name} is a setting of the collection, no query can change it: other values were not tried.",),
            anew=f"{ANEW}, or a higher {name} (collection.modify)",
        )

    return open_search


def _hits(ask: Ask, collection: Any, query: np.ndarray, k: int, where: Where) -> Hits:
    asked = {"where": filter_of(where)} if where else {}
    found = ask(collection.query, query_embeddings=[query.tolist()], n_results=k, include=["distances"], **asked)
    return Hits(found["ids"][0], np.array(found["distances"][0], dtype=np.float32))


def filter_of(where: Where) -> dict[str, object]:
    """Pairs as Chroma writes a filter.

    Raises:
        UsageError: if one is of something that is no metadata.
    """
    for name, _ in where:
        if not name.startswith(FIELD):
            raise UsageError(
                f"Chroma filters by metadata, and {name} is none.",
                next_step=f"Name a field of the metadata: --where {FIELD}FIELD=VALUE",
            )
    pairs: Sequence[dict[str, object]] = [{name.removeprefix(FIELD): value} for name, value in where]
    return pairs[0] if len(pairs) == 1 else {"$and": list(pairs)}


def _own(collection: Any) -> Mapping[str, Any]:
    settings = collection.configuration_json or {}
    return settings.get("hnsw") or settings.get("spann") or {}


def _ef(collection: Any) -> int:
    """In force for the collection; before 1.0 it stood in the metadata."""
    return int(_own(collection).get(EF) or (collection.metadata or {}).get(OLD_EF) or DEFAULT_EF)


def _index(own: Mapping[str, Any]) -> str:
    links = own.get("max_neighbors")
    return f"{'SPANN' if 'search_nprobe' in own else 'HNSW'}{f', max_neighbors {links}' if links else ''}"
