"""Tensors in files: safetensors, and what torch.save wrote, by weights only.

HDF5: data sets of one length, in groups or not. Benchmarks' matrices: .fvecs, .fbin.

Pickles: of plain values and arrays; others only where the user trusts them, since unpickling runs what they say.

Bytes that say themselves what they are: numpy.save's, pickled arrays, JSON; and others, by name.

Such bytes are no raw numbers, whatever they look like when they are read as some.
"""

from __future__ import annotations

import array
import io
import json
import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from embaudit.stores.arrays import table_of_arrays, table_of_object
from embaudit.stores.pickled import unpickled_value, unpickled_values
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import FETCH, StoreKind, StoreTable, explained, needed, reported
from embaudit.words.errors import CorpusError, UsageError, one_line

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
        return "numpy.save's", _tried(lambda value: np.lib.format.read_array(io.BytesIO(value), allow_pickle=False))
    if all(one.startswith(PICKLES) and one.endswith(PICKLE_ENDS) for one in some):
        return "pickled", _tried(unpickled_value)
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


def _json(value: bytes) -> Any:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, list) else None


TORCH = (".pt", ".pth")


def open_safetensors(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The tensors of one length; texts are in a file beside them (``--texts``)."""
    from safetensors import SafetensorError, safe_open

    with (
        reported(place.shown),
        explained(place.shown, FETCH, SafetensorError, kept=""),
        safe_open(place.path, framework="pt") as file,
    ):
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (it is no dictionary)
    return table_of_arrays(place.shown, tensors)


def open_torch(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A tensor, or tensors and lists by name; nothing else is unpickled."""
    import torch

    with reported(place.shown), explained(place.shown, FETCH, pickle.UnpicklingError, RuntimeError, kept=""):
        try:
            content: Any = torch.load(place.path, map_location="cpu", weights_only=not asked.allow_pickle)
        except pickle.UnpicklingError as error:
            if "weights_only" in str(error) or "Weights only" in str(error):
                raise UsageError(
                    f"{place.shown} holds more than tensors, numbers and texts: unpickling it may run code.",
                    kept="Nothing was unpickled.",
                    next_step="Save tensors and lists alone, or, if you trust the file: --allow-pickle",
                ) from error
            raise
        except (EOFError, OSError, RuntimeError):
            raise
        except Exception as error:
            # What is no pickle at all ends its reader in any way.
            raise CorpusError(
                f"{place.shown} cannot be read: {type(error).__name__}: {one_line(error)}", next_step=FETCH
            ) from error
    return table_of_object(place.shown, content)


HDF5_SUFFIXES = (".h5", ".hdf5")
MAGIC = b"\x89HDF"


def open_hdf5(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The arrays of a file, by their paths with dots."""
    h5py = needed("h5py", "hdf5", place.shown)
    arrays: dict[str, Any] = {}
    with reported(place.shown):
        file = h5py.File(place.path, "r")

        def add(path: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset) and item.shape is not None:
                arrays[path.replace("/", ".")] = item if item.shape else item[()]

        file.visititems(add)
    return table_of_arrays(place.shown, arrays)


PICKLES_SUFFIXES = (".pkl", ".pickle")
CONVERT = (
    "python -c \"import numpy, pandas as pd; x = pd.read_pickle('FILE'); pd.DataFrame(x).to_parquet('FILE.parquet')\""
)


def open_pickle(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """What a program pickled: plain values and arrays, of which nothing is run; all else by ``--allow-pickle``."""
    if not asked.allow_pickle:
        with reported(place.shown):
            content = unpickled_values(place.path)
        if content is not None:
            return table_of_object(place.shown, content)
        raise UsageError(
            f"{place.shown} is a pickle of more than plain values and arrays: opening it runs whatever it holds.",
            kept="Nothing in it was run.",
            next_step=f"Convert it where it was made: {CONVERT.replace('FILE', _name(place.path))}\n"
            "or, if you trust it: --allow-pickle",
        )
    with reported(place.shown):
        try:
            with place.path.open("rb") as file:
                content = pickle.load(file)
        except Exception as error:
            if isinstance(error, OSError):
                raise
            raise CorpusError(
                f"{place.shown} cannot be read: {type(error).__name__}: {error}.", next_step=FETCH
            ) from error
    return table_of_object(place.shown, content)


def _name(path: Path) -> str:
    return path.name.replace("'", "")


# Files of the benchmarks of nearest neighbours: (numbers, whether each row says how many, and the first line how many
# rows and numbers).
BENCHMARKS = {
    ".fvecs": ("<f4", True),
    ".bvecs": ("u1", True),
    ".fbin": ("<f4", False),
    ".u8bin": ("u1", False),
    ".i8bin": ("i1", False),
}


def open_benchmark(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A matrix whose rows each say how many numbers follow, or whose beginning says it of all."""
    numbers, is_each = BENCHMARKS[place.suffix]
    width = np.dtype(numbers).itemsize
    with reported(place.shown):
        raw = np.fromfile(place.path, np.uint8)
    start = raw[:8].view("<i4") if len(raw) >= 8 else raw[:0]
    dimension = int(start[0 if is_each else 1]) if len(start) else 0
    size = width * dimension + (4 if is_each else 0)
    body = raw if is_each else raw[8:]
    rows = len(body) // size if dimension > 0 else 0
    if not rows or len(body) != rows * size or (not is_each and rows != start[0]):
        raise CorpusError(f"{place.shown} is no whole number of rows as {place.suffix} has them.", next_step=FETCH)
    matrix = np.ascontiguousarray(body.reshape(rows, size)[:, 4 if is_each else 0 :]).view(numbers)
    return table_of_arrays(place.shown, {place.path.name: matrix}, vector=place.path.name)


KINDS = (
    StoreKind(
        name="benchmarks' vectors",
        recognises=lambda place: place.suffix in BENCHMARKS,
        open=open_benchmark,
        looks=".fvecs, .bvecs, .fbin, .u8bin, .i8bin",
        tried="the documented forms",
    ),
    StoreKind(
        name="safetensors",
        recognises=lambda place: place.suffix == ".safetensors",
        open=open_safetensors,
        looks=".safetensors",
        tried="its own files",
    ),
    StoreKind(
        name="PyTorch",
        recognises=lambda place: place.suffix in TORCH,
        open=open_torch,
        looks=".pt",
        tried="torch.save's files",
    ),
    StoreKind(
        name="HDF5",
        recognises=lambda place: place.suffix in HDF5_SUFFIXES or place.head.startswith(MAGIC),
        open=open_hdf5,
        looks=".h5",
        tried="h5py's files",
        extra="hdf5",
    ),
    StoreKind(
        name="a pickle",
        recognises=lambda place: place.suffix in PICKLES_SUFFIXES,
        open=open_pickle,
        looks=".pkl of plain values and arrays; of others, such as frames, with --allow-pickle",
        tried="pickled dictionaries, lists, arrays and frames",
    ),
)
