"""Milvus's own search: what a query may set depends on the index of its vectors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from embaudit.stores.nested import at
from embaudit.stores.search import Hits, OpenSearch, SearchedColumns, SearchParameter, Settings, StoreSearch, Where
from embaudit.stores.store import Metric
from embaudit.words.errors import UsageError

TYPES: Mapping[str, Any] = {"FLOAT_VECTOR": np.float32, "FLOAT16_VECTOR": np.float16}
METRICS: Mapping[str, Metric] = {"COSINE": "cosine", "IP": "dot", "L2": "l2"}
EF, NPROBE, LIST = "ef", "nprobe", "search_list"
# What is in force where a query says nothing: of Milvus Lite, and of a server (of ef: at least the number of results).
LITE_DEFAULTS: Mapping[str, int] = {EF: 64, NPROBE: 10}
SERVER_DEFAULTS: Mapping[str, int] = {EF: 16, NPROBE: 8, LIST: 16}
MOST_LISTS = 65_536
Ask = Callable[..., Any]


def search_of_collection(
    client: Any,
    name: str,
    types: Mapping[str, str],
    key: str,
    rows: int,
    top_of: Callable[[str], str],
    ask: Ask,
    *,
    is_lite: bool,
) -> OpenSearch:
    """The search of a collection.

    Args:
        types: of its fields, by name.
        key: its primary key.
        top_of: the field that a path begins with.
    """

    def open_search(columns: SearchedColumns) -> StoreSearch:
        numbers = TYPES.get(types.get(columns.vector, ""))
        if numbers is None:
            raise UsageError(
                f"Field {columns.vector} is {types.get(columns.vector, 'no vector').lower()}: its search is not asked, "
                f"that of {' and '.join(one.lower() for one in TYPES)} is.",
                next_step="Name another field of vectors: --vector FIELD",
            )
        index = index_of(client, name, columns.vector, ask)
        kind = str(index.get("index_type", "")).upper()
        metric = METRICS.get(str(index.get("metric_type", "COSINE")).upper(), "")
        dial = _dial(kind, index, rows, LITE_DEFAULTS if is_lite else SERVER_DEFAULTS)
        output = [] if columns.id == key else [top_of(columns.id)]

        def find(query: np.ndarray, k: int, settings: Settings, where: Where) -> Hits:
            params = {"metric_type": index.get("metric_type", "COSINE"), "params": _params(dial, settings, k)}
            found = ask(
                client.search,
                name,
                data=[query.astype(numbers) if numbers is np.float16 else query.tolist()],
                anns_field=columns.vector,
                limit=k,
                filter=" and ".join(_test(one, value, types, top_of) for one, value in where),
                search_params=params,
                output_fields=output,
            )[0]
            ids = [hit.get(key, hit.get("id")) if not output else at(hit["entity"], columns.id) for hit in found]
            return Hits(ids, np.array([hit["distance"] for hit in found], dtype=np.float64))

        is_exact = kind in ("FLAT", "BRUTE_FORCE", "")
        return StoreSearch(
            index=_shown(kind, index),
            find=find,
            metric=metric,
            is_exact=is_exact,
            dials=(dial,) if dial is not None else (),
            exact={NPROBE: dial.most} if kind == "IVF_FLAT" and dial is not None else None,
            takes_where=True,
            notes=(f"No setting of a query is known of its index {kind}: others were not tried.",)
            if dial is None and not is_exact
            else (),
            anew="more links (M) and a higher efConstruction" if "HNSW" in kind else "",
        )

    return open_search


def index_of(client: Any, name: str, vector: str, ask: Ask) -> Mapping[str, Any]:
    """What a collection says of the index of its vectors; nothing if they have none."""
    for index in ask(client.list_indexes, name):
        found = ask(client.describe_index, name, index) or {}
        if found.get("field_name") == vector:
            return dict(found)
    return {}


def _dial(kind: str, index: Mapping[str, Any], rows: int, defaults: Mapping[str, int]) -> SearchParameter | None:
    if kind.startswith("HNSW"):
        return SearchParameter(EF, defaults[EF], max(rows, defaults[EF]))
    if kind.startswith("IVF") or kind == "SCANN":
        # Milvus Lite does not say how many lists there are, and takes more than that.
        lists = int(index.get("nlist") or min(rows, MOST_LISTS))
        return SearchParameter(NPROBE, min(defaults[NPROBE], lists), lists)
    if kind == "DISKANN" and LIST in defaults:
        return SearchParameter(LIST, defaults[LIST], MOST_LISTS)
    return None


def _params(dial: SearchParameter | None, settings: Settings, k: int) -> dict[str, int]:
    """What a query sets: nothing where it is what is in force anyway; no fewer candidates than results."""
    value = settings.get(dial.name) if dial is not None else None
    if dial is None or value is None or value == dial.present:
        return {}
    return {dial.name: value if dial.name == NPROBE else max(value, k)}


def _test(name: str, value: object, types: Mapping[str, str], top_of: Callable[[str], str]) -> str:
    top = name if name in types else top_of(name)
    inner = name[len(top) + 1 :]
    # A field that is not of the schema, by whatever name, is in the dynamic one.
    own = top if top in types or top.isidentifier() else f"$meta[{_written(top)}]"
    path = "".join(f"[{_written(part)}]" for part in inner.split(".")) if inner else ""
    return f"{own}{path} == {_written(value)}"


def _written(value: object) -> str:
    return json.dumps(value if isinstance(value, bool | int | float) else str(value), ensure_ascii=False)


def _shown(kind: str, index: Mapping[str, Any]) -> str:
    made = "".join(f", {name} {index[name]}" for name in ("M", "efConstruction", "nlist") if name in index)
    return f"{kind or 'no index: every row is looked at'}{made}"
