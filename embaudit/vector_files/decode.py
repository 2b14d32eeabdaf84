"""Turns a batch of Arrow into arrays: lists of any number type and length, text such as ``[0.1, 0.2]``, or bytes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from embaudit.comparisons.stored.rows import RowBatch

BATCH_ROWS = 4_096


def row_batches(batches: Iterable[Any], columns: Mapping[str, str]) -> Iterator[RowBatch]:
    """Rows of Arrow record batches with these columns, which are never all in memory."""
    start = 0
    for whole in batches:
        for offset in range(0, whole.num_rows, BATCH_ROWS):
            batch = whole.slice(offset, BATCH_ROWS)
            texts = batch.column(columns["text"]).to_pylist() if "text" in columns else None
            ids = batch.column(columns["id"]).to_pylist() if "id" in columns else None
            vectors = by_dimension(batch.column(columns["vector"]))
            yield RowBatch(start, batch.num_rows, vectors, texts, ids)
            start += batch.num_rows


def by_dimension(column: Any) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """The vectors of an Arrow column, by how many numbers they have: their places, and (m, D) of the column's type.

    A null, or text that is no list of numbers, is no vector; a null within a vector is NaN.
    """
    import pyarrow.types as types

    kind = column.type
    if types.is_fixed_size_binary(kind):
        return _of_bytes(column)
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return of_lists([parsed(text) for text in column.to_pylist()])
    return _of_arrow_lists(column)


def _of_arrow_lists(column: Any) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    present = np.flatnonzero(np.asarray(column.is_valid()))
    if column.null_count:
        column = column.drop_null()
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False).astype(np.int64)
    values = column.flatten()
    if types.is_decimal(values.type):
        values = values.cast(pa.float64())
    # Whole numbers with a null become float64, in which NaN stands for it.
    numbers = values.to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths)
    found = {}
    for dimension in np.unique(lengths[lengths > 0]).tolist():
        own = np.flatnonzero(lengths == dimension)
        if len(own) == len(lengths):
            rows = numbers.reshape(-1, dimension)
        else:
            rows = numbers[(ends[own] - dimension)[:, None] + np.arange(dimension)]
        found[dimension] = (present[own], rows)
    return found


def _of_bytes(column: Any) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    rows = column.to_pylist()
    places = np.array([place for place, row in enumerate(rows) if row is not None], dtype=np.int64)
    if not len(places):
        return {}
    packed = np.frombuffer(b"".join(row for row in rows if row is not None), dtype=np.uint8)
    return {column.type.byte_width: (places, packed.reshape(len(places), -1))}


def of_lists(rows: Sequence[Sequence[Any] | None]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """The same of Python lists of numbers; a row that is None, empty or has something else in it is no vector."""
    places: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        if row:
            places.setdefault(len(row), []).append(place)
    found = {}
    for dimension, own in sorted(places.items()):
        try:
            vectors = _numbers([rows[place] for place in own])
        except (TypeError, ValueError, OverflowError):
            own = [place for place in own if _is_numbers(rows[place])]
            if not own:
                continue
            vectors = _numbers([rows[place] for place in own])
        found[dimension] = (np.array(own), vectors)
    return found


def _numbers(rows: Sequence[Any]) -> np.ndarray:
    vectors = np.array(rows)
    if vectors.ndim != 2 or vectors.dtype.kind not in "iufO":
        raise TypeError("no numbers")
    if vectors.dtype.kind == "O":
        # A null within a vector.
        vectors = np.array(rows, dtype=np.float64)
    # Decimals are written so that float32 is read back exactly.
    return vectors.astype(np.float32) if vectors.dtype == np.float64 else vectors


def _is_numbers(row: Any) -> bool:
    return all(one is None or (isinstance(one, int | float) and not isinstance(one, bool)) for one in row)


def parsed(text: str | None) -> list[Any] | None:
    """A vector that is written as text, as pgvector does; None if this is something else."""
    try:
        found = json.loads(text) if text else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None
