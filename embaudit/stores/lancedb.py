"""LanceDB: a folder of tables, one of its tables, or a bucket with either; one version is read throughout.

LanceDB's own search, of the version of a table that is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

import numpy as np

from embaudit.stores.arrow import table_of_arrow
from embaudit.stores.place import ReadOptions, StorePlace, part_meant
from embaudit.stores.search import Hits, OpenSearch, SearchedColumns, SearchParameter, Settings, StoreSearch, Where
from embaudit.stores.store import BATCH_ROWS, ONLY_READ, Metric, StoreKind, StoreTable, needed
from embaudit.words.errors import CorpusError, EmbauditError, UsageError, one_line
from embaudit.words.masking import keep_credentials

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


ENDING = ".lance"
BUCKETS = ("s3", "gs", "az")
METRICS: dict[str, Metric] = {"l2": "l2", "euclidean": "l2", "cosine": "cosine", "dot": "dot"}
# By default the library reads ahead two gigabytes.
BUFFER, AHEAD = 16 << 20, 1
# Each of its threads decodes a page of its own; what it says of an index has the centroids in it, and a warning.
ENVIRONMENT = {"LANCE_IO_THREADS": "2", "LANCE_CPU_THREADS": "1", "LANCE_INCLUDE_VECTOR_CENTROIDS": "false"}
FEW = 100


def open_lance(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A table of a LanceDB database, at its newest version."""
    keep_credentials(place.named)
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    lance = needed("lance", "lancedb", place.shown)
    where, options = place.named.rstrip("/"), _options(place)
    if place.is_path:
        where = str(place.path)
    with _explained(place):
        called = place.shown
        if not where.endswith(ENDING):
            name = part_meant(_tables(place, where, options), asked.part, place.shown, "table")
            where, called = f"{where}/{name}{ENDING}", f"{place.shown}, table {name}"
        found = lance.dataset(where, storage_options=options)
        version, schema, rows = found.version, found.schema, found.count_rows()
        metric = _metric(found)

    def batches(names: Sequence[str]) -> Iterator[Any]:
        with _explained(place):
            scanner = lance.dataset(where, version=version, storage_options=options).scanner(
                columns=list(names),
                batch_size=BATCH_ROWS,
                io_buffer_size=BUFFER,
                batch_readahead=AHEAD,
                fragment_readahead=1,
                scan_in_order=True,
            )
            yield from map(_plain, scanner.to_batches())

    def searched() -> Any:
        folder, _, file = where.rpartition("/")
        library = needed("lancedb", "lancedb", place.shown)
        table = library.connect(folder, storage_options=options).open_table(file.removesuffix(ENDING))
        table.checkout(version)
        return table

    def partitions(index: str) -> int:
        return max((int(one.get("num_partitions", 0)) for one in _parts_of(found, index)), default=0)

    search = search_of_table(searched, partitions, rows, METRICS, partial(_explained, place))
    return table_of_arrow(
        called, _plain_schema(schema), batches, rows=rows, metric=metric, is_pinned=True, search=search
    )


def _tables(place: StorePlace, where: str, options: dict[str, str]) -> list[str]:
    if place.is_folder:
        return sorted(one.name.removesuffix(ENDING) for one in place.path.glob(f"*{ENDING}") if one.is_dir())
    database = needed("lancedb", "lancedb", place.shown).connect(where, storage_options=options)
    names: list[str] = []
    while some := list(database.table_names(page_token=names[-1] if names else None, limit=FEW)):
        names += some
    return names


def _options(place: StorePlace) -> dict[str, str]:
    """How a bucket is reached, beside the usual variables of the environment."""
    plain = os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    return {"allow_http": "true"} if place.scheme == "s3" and plain else {}


def _metric(found: Any) -> Metric:
    """What its index of vectors ranks by; empty if it has none, or several that differ."""
    metrics = set()
    for name in (one.name for one in found.describe_indices()):
        for index in _parts_of(found, name):
            metrics.add(METRICS.get(str(index.get("metric_type", "")).lower(), ""))
    metrics.discard("")
    return metrics.pop() if len(metrics) == 1 else ""


def _parts_of(found: Any, index: str) -> list[dict[str, Any]]:
    return list(found.stats.index_stats(index).get("indices", ()))


def _plain_schema(schema: Any) -> Any:
    """The schema, in which lists of bfloat16, which Arrow has no type for, are lists of float32."""
    import pyarrow as pa

    for place, field in enumerate(schema):
        if _is_bfloat16(field.type):
            plain = pa.list_(pa.float32(), field.type.list_size)
            schema = schema.set(place, pa.field(field.name, plain, field.nullable))
    return schema


def _plain(batch: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    for place, field in enumerate(batch.schema):
        if _is_bfloat16(field.type):
            column = batch.column(place)
            size = field.type.list_size
            start, end = column.offset * size, (column.offset + len(column)) * size
            raw = np.frombuffer(column.values.storage.buffers()[1], "<u2")[start:end].astype(np.uint32) << 16
            plain = pa.FixedSizeListArray.from_arrays(raw.view(np.float32), size, mask=column.is_null())
            batch = batch.set_column(place, pa.field(field.name, plain.type, field.nullable), plain)
    return batch


def _is_bfloat16(kind: Any) -> bool:
    import pyarrow.types as types

    return types.is_fixed_size_list(kind) and getattr(kind.value_type, "extension_name", "") == "lance.bfloat16"


@contextmanager
def _explained(place: StorePlace) -> Iterator[None]:
    """Errors of the library as one that names the place."""
    try:
        yield
    except EmbauditError:
        raise
    except (ValueError, OSError, RuntimeError) as error:
        reason = one_line(error)
        if "not found" in reason.lower():
            raise UsageError(
                f"{place.shown} has no table there, or it lacks files: {reason}",
                next_step="Check the path, and name a table with --from NAME.",
            ) from error
        raise CorpusError(
            f"{place.shown} cannot be read: {reason}",
            kept=ONLY_READ,
            next_step="Check the path; for a bucket, also the credentials in the environment and AWS_ENDPOINT_URL.",
        ) from error


KINDS = (
    StoreKind(
        name="LanceDB",
        recognises=lambda place: (
            place.scheme in BUCKETS
            or (place.is_folder and (place.path.suffix == ENDING or place.holds(f"*{ENDING}/_versions")))
        ),
        open=open_lance,
        looks="a folder of LanceDB (*.lance), or s3://BUCKET/FOLDER",
        tried="the embedded engine (lancedb 0.40, pylance 14); s3:// on moto's server; gs:// and az:// not tried",
        extra="lancedb",
    ),
)
