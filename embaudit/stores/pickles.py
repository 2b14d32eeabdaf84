"""Pickles: opened only where the user trusts them, since unpickling runs what the file says."""

from __future__ import annotations

import pickle
from collections.abc import Collection
from pathlib import Path
from typing import Any

from embaudit.stores.arrays import table_of_object
from embaudit.stores.damage import FETCH, reported
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.table import StoreKind, StoreTable
from embaudit.words.errors import CorpusError, UsageError

SUFFIXES = (".pkl", ".pickle")
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
        name="a pickle",
        recognises=lambda place: place.suffix in SUFFIXES,
        open=open_pickle,
        looks=".pkl with --allow-pickle",
        tried="pickled dictionaries and frames",
    ),
)
