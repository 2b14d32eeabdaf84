"""Tensors in files: safetensors, and what torch.save wrote, by weights only."""

from __future__ import annotations

import pickle
from typing import Any

from embaudit.stores.arrays import table_of_arrays, table_of_object
from embaudit.stores.damage import FETCH, reported
from embaudit.stores.place import ReadOptions, StorePlace
from embaudit.stores.table import StoreKind, StoreTable
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
)
