"""What a Python object gives for some texts, as one vector a text: arrays, tensors, tables, lists and generators."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from typing import Any

import numpy as np

from embaudit.embedders.parts import Unanswered

PER_TOKEN = "one vector a token, where there should be one a text"


class NotRows(Unanswered):
    """What an object gives is not one vector a text; the message says what it is, as the end of "it gives …"."""

    def __init__(self, given: str, *, is_a_count: bool = False) -> None:
        super().__init__(f"it gives {given}")
        self._is_a_count = is_a_count

    @property
    def may_be_one_text(self) -> bool:
        return not self._is_a_count


def rows_of(given: Any, texts: int) -> list[np.ndarray]:
    """(texts,) vectors, each (D,) float64 and a copy: some objects reuse what they gave.

    Raises:
        NotRows: if it is anything else.
    """
    rows = _listed(given, texts)
    if len(rows) != texts:
        more = "more than " if len(rows) > texts and not isinstance(given, Sequence | np.ndarray) else ""
        count = texts if more else len(rows)
        raise NotRows(
            f"{more}{count} vector{'' if count == 1 else 's'} for {texts} text{'' if texts == 1 else 's'}",
            is_a_count=True,
        )
    return [_vector(row) for row in rows]


def _listed(given: Any, texts: int) -> Sequence[Any]:
    """The rows in what was given, of no more than one more than there are texts."""
    _refuse(given)
    plain = _as_array(given)
    if isinstance(plain, np.ndarray):
        if plain.ndim == 1 and plain.dtype != object:
            raise NotRows(f"one list of {len(plain)} numbers for {texts} texts, where there should be a vector each")
        if plain.ndim > 2:
            raise NotRows(f"an array of shape {plain.shape}: {PER_TOKEN}")
        if plain.ndim == 0:
            raise NotRows(f"a {type(given).__name__}, no vectors")
        return list(plain)
    if not isinstance(plain, Iterable):
        raise NotRows(f"a {type(given).__name__}, no vectors")
    rows = list(plain) if isinstance(plain, Sequence) else list(islice(plain, texts + 1))
    if rows and all(isinstance(row, int | float | np.number) for row in rows):
        raise NotRows(f"one list of {len(rows)} numbers for {texts} texts, where there should be a vector each")
    return rows


def _refuse(given: Any) -> None:
    """What could be iterated over, or looks like rows, and is none."""
    if inspect.iscoroutine(given):
        given.close()
    if inspect.isawaitable(given) or hasattr(given, "__aiter__"):
        raise NotRows(
            "a coroutine: it is async, and embaudit asks what is not (lambda texts: asyncio.run(NAME(texts)))"
        )
    if given is None:
        raise NotRows("None")
    if isinstance(given, str | bytes):
        raise NotRows("a text, no vectors")
    if isinstance(given, Mapping):
        keys = ", ".join(repr(key) for key in islice(given, 5))
        raise NotRows(f"a {type(given).__name__} with {keys or 'nothing in it'}, no vectors")
    if isinstance(given, Set):
        raise NotRows("a set, which has no order")
    if callable(getattr(given, "toarray", None)) or getattr(given, "is_sparse", False) is True:
        raise NotRows("a sparse matrix, no dense vector a text")


def _as_array(given: Any) -> Any:
    """Tensors of torch and TensorFlow, and tables of pandas, polars and Arrow, as arrays; anything else as it is."""
    if isinstance(given, np.ma.MaskedArray):
        return np.ma.filled(given.astype(np.float64), np.nan)
    if isinstance(given, np.ndarray):
        return given
    if callable(getattr(given, "detach", None)):
        given = given.detach().cpu()
        # numpy has no bfloat16.
        return np.asarray((given.float() if given.is_floating_point() else given).numpy())
    for method in ("to_numpy", "numpy"):
        if callable(getattr(given, method, None)):
            return np.asarray(getattr(given, method)())
    return np.asarray(given) if hasattr(given, "__array__") and np.ndim(given) else given


def _vector(row: Any) -> np.ndarray:
    _refuse(row)
    if not (isinstance(row, Iterable) or hasattr(row, "__array__")):
        raise NotRows(f"a list of {type(row).__name__}, not of vectors")
    plain = _as_array(row)
    if not isinstance(plain, np.ndarray):
        plain = list(plain)
        if any(isinstance(value, str | bytes) for value in plain):
            raise NotRows("texts in place of numbers")
        if any(_has_length(value) for value in plain):
            raise NotRows(PER_TOKEN)
        plain = np.array([np.nan if value is None else value for value in plain])
    if plain.ndim != 1:
        raise NotRows(PER_TOKEN if plain.ndim > 1 else f"a list of {type(row).__name__}, not of vectors")
    if not len(plain):
        raise NotRows("an empty vector")
    if plain.dtype.kind in "USmMc":
        raise NotRows(f"numbers of type {plain.dtype}, no real ones")
    try:
        return np.array(plain, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise NotRows("something that is no number in a vector") from error


def _has_length(value: Any) -> bool:
    """Whether this is a list of its own; a number in an array can be iterated over, too, until one tries."""
    return isinstance(value, Iterable) and np.ndim(value) > 0  # type: ignore[arg-type]
