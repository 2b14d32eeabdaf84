"""Qdrant's own search, by its client; of a local folder, which the client would unpickle, the same on its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from embaudit.stores.nested import Record, at, batched
from embaudit.stores.search import Hits, OpenSearch, SearchedColumns, SearchParameter, Settings, StoreSearch, Where
from embaudit.stores.servers import quiet
from embaudit.stores.store import Metric, needed
from embaudit.words.errors import CorpusError, UsageError

EF, EXACT = "hnsw_ef", {"exact": 1}
FIELD, VECTOR = "payload.", "vector"
# Of a local folder: rows that are put into a client's memory.
MOST_ROWS, AT_ONCE = 100_000, 1_000
Ask = Callable[..., Any]


def search_of_client(
    client: Any, name: str, sizes: Mapping[str, tuple[int, Metric]], rows: int, ask: Ask
) -> OpenSearch:
    """The search of a collection that a connected client asks."""

    def open_search(columns: SearchedColumns) -> StoreSearch:
        own = columns.vector.removeprefix(VECTOR).removeprefix(".")
        config = ask(client.get_collection, name).config.model_dump(mode="json")
        hnsw = config.get("hnsw_config") or {}
        vectors = config["params"].get("vectors") or {}
        hnsw |= {
            key: one for key, one in ((vectors.get(own) or {}).get("hnsw_config") or {}).items() if one is not None
        }
        # Where a query says nothing, it looks at as many as were looked at to build the graph.
        present = int(hnsw.get("ef_construct") or 100)
        return StoreSearch(
            index=f"HNSW, m {hnsw.get('m', 16)}, ef_construct {present}",
            find=_find(client, name, own, ask),
            metric=sizes[columns.vector][1],
            dials=(SearchParameter(EF, present, max(rows, present)),),
            exact=EXACT,
            takes_where=True,
            notes=("Its vectors are quantized; rescoring and oversampling were left at their defaults.",)
            if config.get("quantization_config")
            else (),
            anew="more links (m) and a higher ef_construct",
        )

    return open_search


def search_of_rows(
    records: Callable[[], Iterable[Record]],
    distances: Mapping[str, tuple[int, str, Metric]],
    rows: int,
    shown: str,
    ask: Ask,
) -> OpenSearch:
    """The search of a local folder: exact. Its rows, as they are read here, are put into a client's memory.

    Args:
        distances: dimension, distance and metric by column.
    """

    def open_search(columns: SearchedColumns) -> StoreSearch:
        size, distance, metric = distances[columns.vector]
        if rows > MOST_ROWS:
            raise CorpusError(
                f"{shown} has {rows:,} points: its search is its client's, which holds all of them in memory, and at "
                f"most {MOST_ROWS:,} are put there.",
                kept="Nothing was changed.",
                next_step="A local folder is searched exactly, whatever its size; ask the server that is to hold them.",
            )
        with quiet("qdrant_client"):
            library = needed("qdrant_client", "qdrant", shown)
            client = library.QdrantClient(":memory:")
        models, name = library.models, "rows"
        config = models.VectorParams(size=size, distance=models.Distance(distance))
        ask(client.create_collection, name, vectors_config=config)
        for some in batched([one for one in records() if at(one, columns.vector) is not None], AT_ONCE):
            points = [
                models.PointStruct(id=one["id"], vector=at(one, columns.vector), payload=one["payload"]) for one in some
            ]
            ask(client.upsert, name, points)
        return StoreSearch(
            index="none: the client of a local folder looks at every row",
            find=_find(client, name, "", ask),
            metric=metric,
            is_exact=True,
            takes_where=True,
        )

    return open_search


def _find(client: Any, name: str, vector: str, ask: Ask) -> Callable[[np.ndarray, int, Settings, Where], Hits]:
    def find(query: np.ndarray, k: int, settings: Settings, where: Where) -> Hits:
        from qdrant_client import models

        params = models.SearchParams(hnsw_ef=settings.get(EF), exact=bool(settings.get("exact")))
        found = ask(
            client.query_points,
            name,
            query=query.tolist(),
            using=vector or None,
            limit=k,
            query_filter=filter_of(where, models),
            search_params=params if settings else None,
            with_payload=False,
        ).points
        return Hits([one.id for one in found], np.array([one.score for one in found], dtype=np.float64))

    return find


def filter_of(where: Where, models: Any) -> Any:
    """Pairs as Qdrant's filter; None without any.

    Raises:
        UsageError: if one is of something that is not in the payload.
    """
    for name, _ in where:
        if not name.startswith(FIELD):
            raise UsageError(
                f"Qdrant filters by the payload, and {name} is none of it.",
                next_step=f"Name a field of the payload: --where {FIELD}FIELD=VALUE",
            )
    if not where:
        return None
    return models.Filter(must=[_condition(name.removeprefix(FIELD), value, models) for name, value in where])


def _condition(key: str, value: object, models: Any) -> Any:
    if isinstance(value, float):
        return models.FieldCondition(key=key, range=models.Range(gte=value, lte=value))
    return models.FieldCondition(key=key, match=models.MatchValue(value=value))
