"""Turns what is stored of vectors into arrays: lists of any number type and length, text, or bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from embaudit.stores.nested import listed
from embaudit.stores.place import ReadOptions
from embaudit.stores.store import ByDimension, StoreColumn, Values
from embaudit.stores.tensors import form_of
from embaudit.stores.written import BYTES_OF, CUT, LISTS_OF, numbers_of_bytes, read_bytes, text_form
from embaudit.words.errors import CorpusError

Decode = Callable[[Values], ByDimension]


def decoder_of(name: str, column: StoreColumn, asked: ReadOptions) -> tuple[str, Decode]:
    """How the numbers of a column of vectors are stored, and what makes arrays of them.

    Raises:
        UsageError: if it is unclear what its bytes are.
        CorpusError: if its vectors were cut when they were written.
    """
    texts = [one for one in column.some if isinstance(one, str) and one]
    raw = [bytes(one) for one in column.some if isinstance(one, bytes | bytearray | memoryview) and len(one)]
    if texts:
        form = text_form(texts)
        if (bytes_of := BYTES_OF.get(form)) is not None:
            raw = [one for one in map(bytes_of, texts) if one]
            numbers, of_raw = _of_raw(raw, name, asked, "")
            return numbers, lambda values: of_raw([bytes_of(one) for one in listed(values)])
        if any(mark in one for one in texts for mark in CUT):
            raise CorpusError(
                f"Column {name!r} holds vectors that were cut when they were printed: there are dots where numbers "
                f"were, as in {texts[0][:30]!r} …",
                kept="Nothing was compared: what the dots stand for is not in the file.",
                next_step="Export them again, as lists: json.dumps(vector.tolist())",
            )
        reads = LISTS_OF.get(form, LISTS_OF["list"])
        return "text", lambda values: of_lists([reads(one) for one in listed(values)])
    if raw or column.what == "bytes":
        return _of_raw(raw, name, asked, column.numbers)
    return column.numbers or _number_type(column.type), by_dimension


def _of_raw(raw: Sequence[bytes], name: str, asked: ReadOptions, numbers: str) -> tuple[str, Decode]:
    """The same of bytes, which may say themselves what they are.

    Args:
        raw: some of them, none empty.
        numbers: what the store says that they are; empty if it does not.
    """
    if raw and not numbers and (packed := form_of(raw, name)) is not None:
        called, unpack = packed
        return called, lambda values: of_lists([unpack(one) for one in listed(values)])
    if raw and not numbers:
        numbers = numbers_of_bytes(raw, name, asked.dimension, asked.numbers)
    numbers = numbers or asked.numbers or "float32"
    return numbers, lambda values: of_bytes(listed(values), numbers)


def by_dimension(values: Values) -> ByDimension:
    """Vectors of a column, by how many numbers they have: their places, and (m, D) of the column's type.

    A null, or something that is no list of numbers, is no vector; a null within a vector is NaN.
    """
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return {values.shape[1]: (np.arange(len(values)), values)} if values.size else {}
    kind = getattr(values, "type", None)
    if kind is None:
        return of_lists(values)
    import pyarrow.types as types

    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return _of_arrow_lists(values)
    return of_lists(values.to_pylist())


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


def of_bytes(rows: Sequence[Any], numbers: str) -> ByDimension:
    """The same of bytes; those that are no whole number of such numbers are no vector."""
    places: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        if row is not None and len(row):
            places.setdefault(len(row), []).append(place)
    found = {}
    for _, own in sorted(places.items()):
        try:
            vectors = read_bytes([bytes(rows[place]) for place in own], numbers)
        except ValueError:
            continue
        found[vectors.shape[1]] = (np.array(own, dtype=np.int64), vectors)
    return found


def of_lists(rows: Sequence[Sequence[Any] | None]) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """The same of Python lists of numbers; a row that is None, empty or has something else in it is no vector."""
    places: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        if row is not None and not isinstance(row, str | bytes) and hasattr(row, "__len__") and len(row):
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


def _number_type(shown: str) -> str:
    """``float32`` of a type that is shown as ``list<item: float>`` or ``fixed_size_list<item: float>[384]``."""
    found = re.search(r"(?:item|element|array|l): (\w+)", shown)
    return {"halffloat": "float16", "float": "float32", "double": "float64"}.get(found[1], found[1]) if found else shown
