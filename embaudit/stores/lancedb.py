"""LanceDB: a folder of tables, one of its tables, or a bucket with either; one version is read throughout."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from embaudit.stores.arrow_table import table_of_arrow
from embaudit.stores.extras import needed
from embaudit.stores.lancedb_search import search_of_table
from embaudit.stores.parts import part_meant
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import Metric
from embaudit.stores.table import BATCH_ROWS, StoreKind, StoreTable
from embaudit.words.errors import CorpusError, EmbauditError, UsageError, one_line
from embaudit.words.masking import keep_credentials

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
            kept="Nothing was changed: it is only read.",
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
