"""Turns what is stored of vectors into arrays: lists of any number type and length, text, or bytes."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from embaudit.errors import CorpusError
from embaudit.stores.byte_numbers import FRACTIONS, numbers_of_bytes, read_bytes
from embaudit.stores.nested import listed
from embaudit.stores.packed import form_of
from embaudit.stores.place import AskedRows
from embaudit.stores.store import ByDimension
from embaudit.stores.table import StoreColumn, Values

Decode = Callable[[Values], ByDimension]
# pgvector's: {index:value,…}/dimensions, indices from 1.
SPARSE = re.compile(r"\s*\{([^{}]*)\}/(\d+)\s*")
BITS = re.compile(r"[01]{8,}")
BASE64 = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}")
CUT = ("...", "…")


def decoder_of(name: str, column: StoreColumn, asked: AskedRows) -> tuple[str, Decode]:
    """How the numbers of a column of vectors are stored, and what makes arrays of them.

    Raises:
        UsageError: if it is unclear what its bytes are.
        CorpusError: if its vectors were cut when they were written.
    """
    texts = [one for one in column.some if isinstance(one, str) and one]
    raw = [bytes(one) for one in column.some if isinstance(one, bytes | bytearray | memoryview) and len(one)]
    if texts:
        form = text_form(texts)
        if form == "base64":
            packed = [base64.b64decode(one) for one in texts]
            numbers = numbers_of_bytes(packed, name, asked.dimension, asked.numbers)
            return numbers, lambda values: of_bytes([_unpacked(one) for one in listed(values)], numbers)
        if any(mark in one for one in texts for mark in CUT):
            raise CorpusError(
                f"Column {name!r} holds vectors that were cut when they were printed: there are dots where numbers "
                f"were, as in {texts[0][:30]!r} …",
                kept="Nothing was compared: what the dots stand for is not in the file.",
                next_step="Export them again, as lists: json.dumps(vector.tolist())",
            )
        forms: dict[str, Callable[[Any], Any]] = {"sparse": _sparse, "bits": _bits}
        reads: Callable[[Any], Any] = forms.get(form, _list_of)
        return "text", lambda values: of_lists([reads(one) for one in listed(values)])
    if raw and not column.numbers and (packed_as := form_of(raw, name)) is not None:
        called, unpack = packed_as
        return called, lambda values: of_lists([unpack(one) for one in listed(values)])
    if raw or column.what == "bytes":
        numbers = asked.numbers or column.numbers or "float32"
        if raw and not column.numbers:
            numbers = numbers_of_bytes(raw, name, asked.dimension, asked.numbers)
        return numbers, lambda values: of_bytes(listed(values), numbers)
    return column.numbers or _number_type(column.type), by_dimension


def text_form(texts: Sequence[str]) -> str:
    """How vectors are written as text: ``list``, ``sparse``, ``bits`` or ``base64``; empty if these are none."""
    if all(one.strip()[:1] == "[" and one.strip()[-1:] == "]" for one in texts):
        return "list" if all(parsed(one) is not None or any(mark in one for mark in CUT) for one in texts[:3]) else ""
    if all(SPARSE.fullmatch(one) for one in texts):
        return "sparse"
    if all(BITS.fullmatch(one) for one in texts) and len({len(one) for one in texts}) == 1:
        return "bits"
    return "base64" if all(BASE64.fullmatch(one) and not len(one) % 4 for one in texts) and _is_packed(texts) else ""


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


def parsed(text: str | None) -> list[Any] | None:
    """A vector that is written as text, as JSON, pgvector or numpy do; None if this is something else."""
    if not text:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return _printed(text)
    return found if isinstance(found, list) else None


def _list_of(value: Any) -> list[Any] | None:
    """A list that is written as text, or that is one."""
    return value if isinstance(value, list) else parsed(value) if isinstance(value, str) else None


def _printed(text: str) -> list[float] | None:
    """``[0.1 0.2]``, in lines or not."""
    try:
        return [float(one) for one in text.strip().removeprefix("[").removesuffix("]").split()] or None
    except ValueError:
        return None


def _sparse(text: str | None) -> list[float] | None:
    found = SPARSE.fullmatch(text or "")
    if not found:
        return None
    vector = [0.0] * int(found[2])
    for part in filter(None, found[1].split(",")):
        place, _, value = part.partition(":")
        vector[int(place) - 1] = float(value)
    return vector


def _bits(text: str | None) -> np.ndarray | None:
    """Bits packed in bytes, as they are compared."""
    if not text or len(text) % 8:
        return None
    return np.packbits(np.frombuffer(text.encode(), np.uint8) - ord("0"))


def _is_packed(texts: Sequence[str]) -> bool:
    from embaudit.errors import UsageError

    try:
        return numbers_of_bytes([base64.b64decode(one) for one in texts], "") in FRACTIONS
    except (UsageError, binascii.Error):
        return False


def _unpacked(text: str | None) -> bytes | None:
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except binascii.Error:
        return None


def _number_type(shown: str) -> str:
    """``float32`` of a type that is shown as ``list<item: float>`` or ``fixed_size_list<item: float>[384]``."""
    found = re.search(r"(?:item|element|array|l): (\w+)", shown)
    return {"halffloat": "float16", "float": "float32", "double": "float64"}.get(found[1], found[1]) if found else shown
