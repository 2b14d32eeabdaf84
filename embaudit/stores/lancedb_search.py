"""LanceDB's own search, of the version of a table that is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from embaudit.stores.search import Hits, OpenSearch, SearchedColumns, SearchParameter, Settings, StoreSearch, Where
from embaudit.stores.store import Metric

NPROBES, EF, REFINE = "nprobes", "ef", "refine_factor"
# What the library takes where nothing is said: of ef, half as many again as there are results; no ranking anew.
DEFAULT_NPROBES, DEFAULT_EF, DEFAULT_REFINE, MOST_REFINE = 20, 15, 1, 64
EXACT = {"bypass_vector_index": 1}
SCORE, ROW = "_distance", "id"
# Indexes that keep codes rank by these, unless they are told to rank anew.
CODES = ("PQ", "SQ", "RQ")


def search_of_table(
    opened: Callable[[], Any],
    partitions: Callable[[str], int],
    rows: int,
    metrics: dict[str, Metric],
    explained: Callable[[], AbstractContextManager[None]],
) -> OpenSearch:
    """The search of a table.

    Args:
        opened: opens it with lancedb, at the version that is read.
        partitions: how many an index has, by its name.
    """

    def open_search(columns: SearchedColumns) -> StoreSearch:
        with explained():
            table = opened()
            names = list(table.schema.names)
            index = next((one for one in table.list_indices() if list(one.columns) == [columns.vector]), None)
            stats = table.index_stats(index.name) if index is not None else None
            kind = str(stats.index_type).upper() if stats is not None else ""
            lists = partitions(index.name) if index is not None else 0
        metric = metrics.get(str(stats.distance_type).lower(), "") if stats is not None else "l2"
        dials = _dials(kind, lists, rows)
        id_ = _path(columns.id, names)

        def find(query: np.ndarray, k: int, settings: Settings, where: Where) -> Hits:
            with explained():
                asked = table.search(query, vector_column_name=columns.vector)
                if settings.get("bypass_vector_index"):
                    # Without its index, the table does not know by what it was made.
                    asked = asked.bypass_vector_index().distance_type(metric or "l2")
                else:
                    for dial in dials:
                        value = settings.get(dial.name, dial.present)
                        if value != dial.present:
                            # No narrower than where nothing is said.
                            getattr(asked, dial.name)(max(value, k + k // 2) if dial.name == EF else value)
                if where:
                    asked = asked.where(" AND ".join(_test(name, value, names) for name, value in where))
                found = asked.select({ROW: id_, SCORE: SCORE}).limit(k).to_arrow()
            return Hits(found[ROW].to_pylist(), found[SCORE].to_numpy())

        shown = f"{kind}, {lists:,} partitions" if lists else kind
        return StoreSearch(
            index=shown or "no index: every row is looked at",
            find=find,
            metric=metric,
            is_exact=not kind,
            dials=tuple(dials),
            exact=EXACT if kind else None,
            takes_where=True,
            notes=_notes(columns.vector, kind, stats),
            anew="more links (m) and a higher ef_construction" if "HNSW" in kind else "",
        )

    return open_search


def _dials(kind: str, lists: int, rows: int) -> list[SearchParameter]:
    dials = []
    if lists > DEFAULT_NPROBES:
        dials.append(SearchParameter(NPROBES, DEFAULT_NPROBES, lists))
    if "HNSW" in kind:
        dials.append(SearchParameter(EF, DEFAULT_EF, max(rows, DEFAULT_EF)))
    if kind.endswith(CODES):
        dials.append(SearchParameter(REFINE, DEFAULT_REFINE, MOST_REFINE))
    return dials


def _notes(vector: str, kind: str, stats: Any) -> tuple[str, ...]:
    if not kind:
        return (f"No index is on {vector}: it was asked by Euclidean distance, LanceDB's default.",)
    new = int(stats.num_unindexed_rows)
    return (f"{new:,} rows are not in the index: they are looked at one by one, until optimize().",) if new else ()


def _path(name: str, names: Sequence[str]) -> str:
    """A column as SQL names it; one inside another by its path. Names may hold dots themselves."""
    top = max((one for one in names if name == one or name.startswith(f"{one}.")), key=len, default=name)
    inner = name[len(top) + 1 :]
    return ".".join(f"`{part}`" for part in (top, *(inner.split(".") if inner else ())))


def _test(name: str, value: object, names: Sequence[str]) -> str:
    if isinstance(value, bool):
        written = str(value).lower()
    elif isinstance(value, int | float):
        written = repr(value)
    else:
        written = "'" + str(value).replace("'", "''") + "'"
    return f"{_path(name, names)} = {written}"
