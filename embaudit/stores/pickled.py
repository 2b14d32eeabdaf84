"""What is read of pickles: plain values, arrays and documents, by classes that do nothing when they are made."""

from __future__ import annotations

import array
import io
import pickle
import re
import zipfile
from collections import OrderedDict
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

# Where LangChain had its docstore and its documents, from 0.0 to today's.
DOCUMENTS = (
    "langchain_community.docstore.in_memory.InMemoryDocstore",
    "langchain_classic.docstore.in_memory.InMemoryDocstore",
    "langchain.docstore.in_memory.InMemoryDocstore",
    "langchain_core.documents.base.Document",
    "langchain.schema.document.Document",
    "langchain.schema.Document",
    "langchain.docstore.document.Document",
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


# NumPy's names of kinds of numbers and texts, and of Python's own values.
SIMPLE, OBJECTS = re.compile(r"[<>=|]?[biufSU]\d+|bool|b1"), ("O", "O8", "object")


class _Kind:
    """Stands in for a ``dtype``: NumPy's own would believe a file that lies about where its pointers are."""

    def __init__(self, name: object, *_: object) -> None:
        if not isinstance(name, str) or not (name in OBJECTS or SIMPLE.fullmatch(name)):
            raise pickle.UnpicklingError(f"{name!r} is no kind of numbers or texts")
        self.of = np.dtype(object if name in OBJECTS else name)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, order, *parts = state
        if any(part is not None for part in parts[:3]):
            raise pickle.UnpicklingError("its rows have parts")
        if order in ("<", ">") and not self.of.hasobject:
            self.of = self.of.newbyteorder(order)


class _Array:
    """Stands in for an array until its values are read."""

    def __init__(self, *_: object) -> None:
        self.values = np.empty(0)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        shape, kind, is_by_columns, held = state[-4:]
        if kind.of.hasobject:
            self.values = np.empty(len(held), dtype=object)
            for place, one in enumerate(held):
                # Each by itself: of lists of one length, NumPy would make rows.
                self.values[place] = plain(one)
            self.values = self.values.reshape(shape, order="F" if is_by_columns else "C")
        else:
            self.values = _from_buffer(held, kind, shape, "F" if is_by_columns else "C")


def _from_buffer(held: Any, kind: _Kind, shape: tuple[int, ...], order: str) -> np.ndarray:
    return np.frombuffer(held, kind.of).reshape(shape, order="F" if order == "F" else "C").copy()


def _scalar(kind: _Kind, held: Any) -> Any:
    return held if kind.of.hasobject else np.frombuffer(held, kind.of)[0]


def _plain_classes() -> dict[str, Any]:
    """Those of arrays of numbers and texts, with stand-ins that read no more than these."""
    classes: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict,
        "collections.defaultdict": lambda *made: {},
        "numpy.ndarray": _Array,
        "numpy.dtype": _Kind,
        "_codecs.encode": _latin,
        "__builtin__.bytes": _no_bytes,
        "array.array": array.array,
        "array._array_reconstructor": array.array("f").__reduce_ex__(3)[0],
    }
    for builtins in ("builtins", "__builtin__"):
        classes |= {f"{builtins}.{kind.__name__}": kind for kind in (list, dict, set, frozenset)}
    for core in ("numpy.core", "numpy._core"):
        classes[f"{core}.multiarray._reconstruct"] = _Array
        classes[f"{core}.multiarray.scalar"] = _scalar
        classes[f"{core}.numeric._frombuffer"] = _from_buffer
    return classes


def unpickled_value(value: bytes) -> Any:
    """What bytes hold of these: nothing else is made, and nothing is run."""
    return plain(OnlyThese(io.BytesIO(value), _plain_classes()).load())


def unpickled_values(path: Path) -> Any:
    """What a file holds of these and of LangChain's documents; None if it holds anything else."""
    try:
        with path.open("rb") as stream:
            return plain(OnlyThese(stream, {**_plain_classes(), **stand_ins(DOCUMENTS)}).load())
    except OSError:
        raise
    except Exception:
        return None


def plain(value: Any) -> Any:
    """The same with arrays in place of their stand-ins, and dictionaries of their fields in place of objects."""
    if isinstance(value, _Array):
        return value.values
    if isinstance(value, InertObject):
        return {str(name): plain(one) for name, one in vars(value).items()}
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return type(value)(map(plain, value)) if type(value) in (list, tuple) else value


def read_array(stream: Any) -> np.ndarray:
    """An array of NumPy's file; of one whose values are pickled, nothing is run.

    Raises:
        pickle.UnpicklingError: if it holds more than plain values and arrays.
    """
    try:
        return np.asarray(np.lib.format.read_array(stream, allow_pickle=False))
    except ValueError:
        stream.seek(0)
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, _ = read(stream)
    return np.asarray(unpickled_value(stream.read()), dtype=object).reshape(shape)


def _no_bytes() -> bytes:
    """As the second protocol writes them if there are none."""
    return b""


def _latin(text: str, encoding: str) -> bytes:
    """Bytes as the second protocol writes them."""
    return text.encode("latin1")


def arrays_with_objects(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a .npz of which some hold Python's texts and numbers; nothing in them is run.

    Raises:
        Exception: of any kind, if one of them holds more.
    """
    arrays = {}
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            with file.open(name) as stream:
                arrays[name.removesuffix(".npy")] = read_array(stream)
    return arrays
