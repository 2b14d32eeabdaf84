"""NumPy's files: a matrix in .npy, several arrays in .npz."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np

from embaudit.stores.arrays import table_of_arrays
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import FETCH, StoreKind, StoreTable, reported
from embaudit.words.errors import CorpusError, UsageError

NPY, ZIP = b"\x93NUMPY", b"PK\x03\x04"


class _Slices:
    """The matrix of a .npy file, read in slices: pages of a mapped file would count as this program's memory."""

    def __init__(self, mapped: np.memmap[Any, Any]) -> None:
        self._mapped = mapped
        self._file = str(mapped.filename)
        self.shape, self.dtype = mapped.shape, mapped.dtype

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> np.ndarray:
        if not self._mapped.flags.c_contiguous:
            return np.array(self._mapped[rows])
        start, end, _ = rows.indices(len(self))
        width = int(self.shape[1])
        offset = self._mapped.offset + start * width * self.dtype.itemsize
        return np.fromfile(self._file, self.dtype, (end - start) * width, offset=offset).reshape(-1, width)


def open_npy(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A matrix; its texts are in a file beside it (``--texts``)."""
    with reported(place.shown):
        try:
            vectors = np.load(place.path, mmap_mode="r", allow_pickle=False)
        except (EOFError, ValueError) as error:
            if "allow_pickle" in str(error):
                raise _of_objects(place) from error
            raise _unreadable(place, error) from error
    if not isinstance(vectors, np.ndarray) or vectors.ndim != 2 or vectors.dtype.kind not in "iuf":
        raise UsageError(
            f"{place.shown} holds {getattr(vectors, 'dtype', 'no array')} of shape {getattr(vectors, 'shape', '?')}, "
            "not one row of numbers for each text.",
            next_step="Save a matrix (rows, dimensions): numpy.save(FILE, vectors)",
        )
    matrix = _Slices(vectors) if isinstance(vectors, np.memmap) else vectors
    return table_of_arrays(place.shown, {place.path.name: matrix}, vector=place.path.name)


def open_npz(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The arrays of one length: a matrix, and texts and ids if they are arrays of text."""
    arrays: dict[str, Any] = {}
    with reported(place.shown):
        try:
            with np.load(place.path, allow_pickle=False) as found:
                for name in found.files:
                    arrays[name] = found[name]
        except (EOFError, zipfile.BadZipFile) as error:
            raise _unreadable(place, error) from error
        except ValueError as error:
            if "allow_pickle" not in str(error):
                raise _unreadable(place, error) from error
            raise _of_objects(place) from error
    return table_of_arrays(place.shown, arrays)


def _of_objects(place: StorePlace) -> UsageError:
    return UsageError(
        f"{place.shown} holds an array of Python objects, which only unpickling reads, and that may run code.",
        kept="Nothing was opened.",
        next_step="Save a matrix of numbers and texts as text: numpy.savez(FILE, vectors=numpy.stack(vectors), "
        "texts=numpy.array(texts, dtype=str))",
    )


def _unreadable(place: StorePlace, error: Exception) -> CorpusError:
    return CorpusError(f"{place.shown} cannot be read: {error}.", next_step=FETCH)


KINDS = (
    StoreKind(
        name="NumPy",
        recognises=lambda place: place.suffix == ".npy" or place.head.startswith(NPY),
        open=open_npy,
        looks=".npy",
        tried="numpy's files",
    ),
    StoreKind(
        name="NumPy",
        recognises=lambda place: place.suffix == ".npz",
        open=open_npz,
        looks=".npz",
        tried="numpy's files",
    ),
)
