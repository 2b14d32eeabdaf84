"""Bytes that say themselves what they are: numpy.save's, pickled arrays, JSON; and others, by name.

Such bytes are no raw numbers, whatever they look like when they are read as some.
"""

from __future__ import annotations

import array
import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from embaudit.stores.tensors import OnlyThese
from embaudit.words.errors import UsageError

NPY, PICKLE_ENDS = b"\x93NUMPY", b"."
PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
# First bytes of what is named, and how its vectors are got.
NAMED: Sequence[tuple[tuple[bytes, ...], str, str]] = (
    (
        (b"PK\x03\x04",),
        "a zip file, as torch.save and numpy.savez write",
        "numpy.load(file)[name], or torch.load(file)",
    ),
    ((b"\x1f\x8b\x08",), "compressed by gzip", "gzip.decompress(value)"),
    ((b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"), "compressed by zlib", "zlib.decompress(value)"),
    ((b"\x28\xb5\x2f\xfd",), "compressed by zstd", "zstandard.decompress(value)"),
    ((b"\x04\x22\x4d\x18",), "compressed by lz4", "lz4.frame.decompress(value)"),
    ((b"ARROW1",), "Arrow's", "pyarrow.ipc.open_file(value).read_all()"),
    ((b"PAR1",), "Parquet's", "pyarrow.parquet.read_table(io.BytesIO(value))"),
)
Unpack = Callable[[Any], Any]


def form_of(some: Sequence[bytes], column: str) -> tuple[str, Unpack] | None:
    """What these values are, and what makes a list or an array of one; None if nothing says it.

    Raises:
        UsageError: if they are something that is not opened here.
    """
    if all(one.startswith(NPY) for one in some):
        return "numpy.save's", _tried(_npy)
    if all(one.startswith(PICKLES) and one.endswith(PICKLE_ENDS) for one in some):
        return "pickled", _tried(_unpickled)
    if all(one.lstrip()[:1] == b"[" and one.rstrip()[-1:] == b"]" for one in some) and _json(some[0]) is not None:
        return "text", _tried(_json)
    for starts, what, read in NAMED:
        if all(one.startswith(starts) for one in some):
            raise UsageError(
                f"Column {column!r} holds values that are {what}, not raw numbers.",
                kept="Nothing was compared.",
                next_step=f"Write them as lists or raw numbers, after {read}; or name another column: --vector COLUMN",
            )
    return None


def _tried(read: Callable[[bytes], Any]) -> Unpack:
    def unpack(value: Any) -> Any:
        if value is None or not len(value):
            return None
        try:
            found = read(bytes(value))
        except Exception:
            # Of one value among many: it has no vector, and is counted so.
            return None
        return _as_vector(found.tolist() if isinstance(found, array.array) else found)

    return unpack


def _as_vector(found: Any) -> Any:
    """Numbers in a row; one row of a matrix, or of a list of lists, is such, too. None of anything else."""
    if isinstance(found, np.ndarray):
        is_row = found.size == max(found.shape, default=0) and found.dtype.kind in "iuf"
        return found.reshape(-1) if is_row else None
    if not isinstance(found, list | tuple):
        return None
    return found[0] if len(found) == 1 and isinstance(found[0], list | tuple | np.ndarray) else found


def _npy(value: bytes) -> Any:
    return np.lib.format.read_array(io.BytesIO(value), allow_pickle=False)


def _json(value: bytes) -> Any:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


def _unpickled(value: bytes) -> Any:
    """Of arrays of numbers and plain values: nothing else is made, and nothing is run."""
    classes: dict[str, Any] = {
        "numpy.ndarray": np.ndarray,
        "numpy.dtype": np.dtype,
        "_codecs.encode": _latin,
        "array.array": array.array,
        "array._array_reconstructor": array.array("f").__reduce_ex__(3)[0],
    }
    for core in ("numpy.core", "numpy._core"):
        classes[f"{core}.multiarray._reconstruct"] = np.empty(1).__reduce__()[0]
        classes[f"{core}.numeric._frombuffer"] = np.empty(1).__reduce_ex__(5)[0]
    return OnlyThese(io.BytesIO(value), classes).load()


def _latin(text: str, encoding: str) -> bytes:
    """Bytes as the second protocol writes them."""
    return text.encode("latin1")
