"""HDF5: data sets of one length, in groups or not."""

from __future__ import annotations

from typing import Any

from embaudit.stores.arrays import table_of_arrays
from embaudit.stores.damage import reported
from embaudit.stores.extras import needed
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.table import StoreKind, StoreTable

SUFFIXES = (".h5", ".hdf5")
MAGIC = b"\x89HDF"


def open_hdf5(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The arrays of a file, by their paths with dots."""
    h5py = needed("h5py", "hdf5", place.shown)
    arrays: dict[str, Any] = {}
    with reported(place.shown):
        file = h5py.File(place.path, "r")

        def add(path: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset) and item.shape:
                arrays[path.replace("/", ".")] = item

        file.visititems(add)
    return table_of_arrays(place.shown, arrays)


KINDS = (
    StoreKind(
        name="HDF5",
        recognises=lambda place: place.suffix in SUFFIXES or place.head.startswith(MAGIC),
        open=open_hdf5,
        looks=".h5",
        tried="h5py's files",
        extra="hdf5",
    ),
)
