"""Tensors in files: safetensors, and what torch.save wrote, by weights only.

HDF5: data sets of one length, in groups or not.

Pickles: opened only where the user trusts them, since unpickling runs what the file says.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection
from pathlib import Path
from typing import Any

from embaudit.stores.arrays import table_of_arrays, table_of_object
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.store import FETCH, StoreKind, StoreTable, needed, reported
from embaudit.words.errors import CorpusError, UsageError, one_line

TORCH = (".pt", ".pth")


def open_safetensors(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """The tensors of one length; texts are in a file beside them (``--texts``)."""
    from safetensors import SafetensorError, safe_open

    with reported(place.shown):
        try:
            with safe_open(place.path, framework="pt") as file:
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (it is no dictionary)
        except SafetensorError as error:
            raise CorpusError(f"{place.shown} cannot be read: {one_line(error)}", next_step=FETCH) from error
    return table_of_arrays(place.shown, tensors)


def open_torch(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """A tensor, or tensors and lists by name; nothing else is unpickled."""
    import torch

    with reported(place.shown):
        try:
            content: Any = torch.load(place.path, map_location="cpu", weights_only=not asked.allow_pickle)
        except pickle.UnpicklingError as error:
            if "weights_only" in str(error) or "Weights only" in str(error):
                raise UsageError(
                    f"{place.shown} holds more than tensors, numbers and texts: unpickling it may run code.",
                    kept="Nothing was unpickled.",
                    next_step="Save tensors and lists alone, or, if you trust the file: --allow-pickle",
                ) from error
            raise CorpusError(f"{place.shown} cannot be read: {one_line(error)}", next_step=FETCH) from error
        except RuntimeError as error:
            raise CorpusError(f"{place.shown} cannot be read: {one_line(error)}", next_step=FETCH) from error
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
            if isinstance(item, h5py.Dataset) and item.shape:
                arrays[path.replace("/", ".")] = item

        file.visititems(add)
    return table_of_arrays(place.shown, arrays)


PICKLES_SUFFIXES = (".pkl", ".pickle")
CONVERT = (
    "python -c \"import numpy, pandas as pd; x = pd.read_pickle('FILE'); pd.DataFrame(x).to_parquet('FILE.parquet')\""
)


class OnlyThese(pickle.Unpickler):
    """Unpickles plain values and the classes that are named, of which none does anything when it is made.

    Args:
        classes: ``module.Name`` each, with what stands in for it: a class that only keeps what it is given.
    """

    def __init__(self, file: Any, classes: dict[str, type]) -> None:
        super().__init__(file)
        self._classes = classes

    def find_class(self, module: str, name: str) -> Any:
        found = self._classes.get(f"{module}.{name}")
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} is none of the classes that are read")
        return found

    def persistent_load(self, pid: Any) -> Any:
        raise pickle.UnpicklingError("it refers to something outside")


class InertObject:
    """Stands in for a class of another package: keeps its state and does nothing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.__dict__.update(kwargs)

    def __setstate__(self, state: Any) -> None:
        # Pydantic keeps its fields one level down.
        fields = state.get("__dict__", state) if isinstance(state, dict) else {}
        self.__dict__.update(fields if isinstance(fields, dict) else {})


def stand_ins(names: Collection[str]) -> dict[str, type]:
    """A class of its own for each name, so that what was pickled can be told apart."""
    return {name: type(name.rpartition(".")[2], (InertObject,), {}) for name in names}


def open_pickle(place: StorePlace, asked: ReadOptions) -> StoreTable:
    """What a program pickled, if ``--allow-pickle`` says that it is trusted."""
    if not asked.allow_pickle:
        raise UsageError(
            f"{place.shown} is a pickle: opening it runs whatever it holds.",
            kept="Nothing was opened.",
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


KINDS = (
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
        looks=".pkl with --allow-pickle",
        tried="pickled dictionaries and frames",
    ),
)
