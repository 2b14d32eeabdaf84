"""Finds the vectors, the texts and the ids of a table, by what columns hold and usual names, or as the user named them.

Two columns that may be meant are refused, by name: a store is never measured by the wrong one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from embaudit.corpora.fields import ID_FIELDS
from embaudit.stores.decode import decoder_of
from embaudit.stores.place import ReadOptions, SeveralFit, SeveralTexts, SeveralVectors
from embaudit.stores.store import StoreColumn, StoreTable, Values
from embaudit.stores.written import text_form
from embaudit.words.errors import EmbauditError, EmptyStore, UsageError, did_you_mean

# In the vocabulary of vector databases and of what people export by hand, in lower case.
TEXTS = (
    "text",
    "texts",
    "chunk",
    "chunks",
    "chunk_text",
    "content",
    "contents",
    "page_content",
    "passage",
    "passages",
    "document",
    "documents",
    "sentence",
    "sentences",
    "body",
)
IDS = (*ID_FIELDS, "ids", "uuid", "chunk_id", "point_id", "pk", "key", "custom_id", "__id__")
LISTED = 20
# Fewer columns with numbers in their names are features, years or the like.
SPREAD = 8
# What columns of numbers are counted from, behind an id and a text.
FIRST = 3
# What a field holds that has nothing in it.
EMPTY = ("", "[]", "{}", "null")
# Numbers of a place or a colour, where another column has more.
A_PLACE = 3
# Numbers that any bytes may be.
WHATEVER = ("int8", "bits")
NUMBERED = re.compile(r"(.*?)(\d+)")


def find_columns(table: StoreTable, asked: ReadOptions) -> dict[str, str]:
    """The columns to read, by what they are: ``vector``, and ``text`` and ``id`` if there are any.

    Raises:
        UsageError: if there is no vector column, a named column is not there or is something else, or two may be meant.
    """
    vector = _named(table, asked.vector, "vector") or table.vector or _vector(table, asked)
    if not is_vector(table.columns[vector]):
        raise UsageError(
            f"Column {vector!r} of {table.shown} is {table.columns[vector].type}, not a list of numbers"
            f"{_as_found(table.columns[vector])}.",
            next_step=f"Name the column of vectors with --vector; there are {listed(table.columns)}.",
        )
    text = _named(table, asked.text, "text") or table.text or _only(table, TEXTS, "text", {vector})
    if asked.text and table.columns[text].what not in ("text", "other"):
        raise UsageError(
            f"Column {text!r} of {table.shown} is {table.columns[text].type}, not text.",
            next_step=f"Name the column of texts with --text; there are {listed(table.columns)}.",
        )
    row_id = _named(table, asked.id, "id") or table.id or _first(table, IDS, {vector, text})
    return {what: name for what, name in {"vector": vector, "text": text, "id": row_id}.items() if name}


def column_named(table: StoreTable, name: str) -> str:
    """The column that a user means: by its whole name, else by the end of its path, in any case.

    Raises:
        UsageError: if there is none, or there are several.
    """
    if name in table.columns:
        return name
    wanted = name.strip().lower()
    found = [one for one in table.columns if one.lower() == wanted]
    found = found or [one for one in table.columns if one.lower().endswith("." + wanted)]
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"{table.shown} has no column {name!r}: it has {listed(table.columns)}."
        if not found
        else f"{table.shown} has {len(found)} columns {name!r}: {', '.join(found)}.",
        next_step=f"{did_you_mean(name, table.columns)}Name one of its columns, with its whole path.",
    )


def _named(table: StoreTable, name: str | None, what: str) -> str:
    return "" if name is None else column_named(table, name)


def _vector(table: StoreTable, asked: ReadOptions) -> str:
    fractions = [name for name, column in table.columns.items() if column.what == "vector"]
    candidates = fractions or [name for name, column in table.columns.items() if is_vector(column)]
    candidates = _different(table, [name for name in candidates if _has_any(table.columns[name])] or candidates)
    if len(candidates) > 1:
        # Hashes and other keys are bytes, too, and no numbers.
        likely = [name for name in candidates if not _may_be_anything(name, table.columns[name])]
        candidates = likely if len(likely) == 1 else candidates
    if len(candidates) > 1:
        longer = [name for name in candidates if max(_dimensions(name, table.columns[name]), default=0) > A_PLACE]
        candidates = longer or candidates
    if len(candidates) > 1 and asked.dimension is not None:
        own = [name for name in candidates if asked.dimension in _dimensions(name, table.columns[name])]
        candidates = own if len(own) == 1 else candidates
    if not candidates and (table.rows == 0 or not table.columns):
        raise EmptyStore(f"{table.shown} has no rows.", next_step="Put some into it, or name another one.")
    if not candidates:
        raise UsageError(
            f"{table.shown} has no column of vectors: it has {listed(table.columns)}.",
            next_step="A column of vectors is a list of numbers, bytes, or text such as [0.1, 0.2].",
        )
    if len(candidates) > 1:
        raise SeveralVectors(
            f"{table.shown} has {len(candidates)} columns that may be the vectors: {', '.join(candidates)}.",
            next_step=f"Name the one that is meant: --vector {candidates[0]}",
            names=candidates,
        )
    return candidates[0]


def _has_any(column: StoreColumn) -> bool:
    """Whether one of its first values is more than an empty list or an empty text."""
    some: Iterator[Any] = (one.strip() if isinstance(one, str) else one for one in column.some)
    return not column.some or any(one not in EMPTY if isinstance(one, str) else bool(np.size(one)) for one in some)


def _different(table: StoreTable, names: Sequence[str]) -> list[str]:
    """Without those whose first values are another's: of these, the one that is nested least."""
    kept: list[str] = []
    for name in sorted(names, key=lambda name: name.count(".")):
        own = table.columns[name].some
        if not own or not any(_is_same(own, table.columns[other].some) for other in kept):
            kept.append(name)
    return [name for name in names if name in kept]


def _is_same(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return len(some) == len(others) and all(
        np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other
        for one, other in zip(some, others, strict=True)
    )


def _only(table: StoreTable, names: Sequence[str], what: str, but: set[str]) -> str:
    found = [name for name in table.columns if _last(name) in names and name not in but]
    found = [name for name in found if table.columns[name].what == "text"]
    found = _different(table, [name for name in found if _has_any(table.columns[name])] or found)
    if len(found) > 1:
        raise SeveralTexts(
            f"{table.shown} has {len(found)} columns that may be the {what}s: {', '.join(found)}.",
            next_step=f"Name the one whose text was embedded: --{what} {found[0]}",
            names=found,
        )
    return found[0] if found else ""


def _first(table: StoreTable, names: Sequence[str], but: set[str]) -> str:
    """The first column with one of these names; the one that is nested least."""
    found = [name for name in table.columns if _last(name) in names and name not in but]
    return min(found, key=lambda name: name.count("."), default="")


def _last(name: str) -> str:
    return name.rpartition(".")[2].strip().lower()


def is_vector(column: StoreColumn) -> bool:
    """Whether a column holds lists of numbers, or text or bytes that may be read as such."""
    if column.what == "text":
        return bool(column.some) and bool(text_form([str(one) for one in column.some]))
    return column.what in ("vector", "whole numbers", "bytes")


def _dimensions(name: str, column: StoreColumn) -> set[int]:
    """How many numbers its vectors may have, by the first one; none if it looks like no vectors."""
    first: Any = next(iter(column.some), None)
    try:
        numbers, decode = decoder_of(name, column, ReadOptions())
    except SeveralFit:
        numbers, decode = "", None
    except EmbauditError:
        return set()
    if isinstance(first, bytes) and (decode is None or numbers in WHATEVER):
        return {len(first), len(first) * 8}
    return set(decode([first])) if decode is not None and first is not None else set()


def _may_be_anything(name: str, column: StoreColumn) -> bool:
    """Whether it holds bytes that look like no vector's numbers: of any bytes, these may be int8 or bits."""
    if column.what != "bytes" or column.numbers or not column.some:
        return False
    try:
        return decoder_of(name, column, ReadOptions())[0] in WHATEVER
    except EmbauditError:
        return True


def with_spread(table: StoreTable) -> StoreTable:
    """The table with the columns that hold one number of a vector each as one column: ``dim_0 … dim_383``."""
    groups: dict[str, dict[int, str]] = {}
    for name, column in table.columns.items():
        found = NUMBERED.fullmatch(name.strip())
        if found and column.what in ("other", "text") and all(map(_is_number, column.some)):
            groups.setdefault(found[1], {})[int(found[2])] = name
    spread = {}
    for numbered in groups.values():
        order = sorted(numbered)
        # An id before a text is a number, too, and no part of what follows.
        gap = max((place for place in range(1, len(order)) if order[place] - order[place - 1] > 1), default=0)
        order = order[gap:]
        if len(order) >= SPREAD and order[0] <= FIRST and order == list(range(order[0], order[0] + len(order))):
            names = [numbered[number] for number in order]
            spread[f"{names[0]} … {names[-1]}"] = names
    if not spread:
        return table
    parts = {name for names in spread.values() for name in names}
    columns = {name: column for name, column in table.columns.items() if name not in parts}
    wide = {
        name: StoreColumn(f"{len(names)} columns", "vector", ([0.0] * len(names),)) for name, names in spread.items()
    }

    def read(names: Sequence[str]) -> Iterator[Mapping[str, Values]]:
        wanted = [part for name in names for part in spread.get(name, [name])]
        for batch in table.read(wanted):
            yield {
                name: _stacked([batch[one] for one in spread[name]]) if name in spread else batch[name]
                for name in names
            }

    return replace(table, columns={**columns, **wide}, read=read)


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)


def _stacked(columns: Sequence[Any]) -> np.ndarray:
    """(n, D) float32 of D columns of numbers; NaN where there is none."""
    return np.stack([_floats(one) for one in columns], axis=1)


def _floats(values: Any) -> np.ndarray:
    if hasattr(values, "to_numpy"):
        values = values.to_numpy(zero_copy_only=False)
    with np.errstate(all="ignore"):
        kept = [None if one in (None, "") else one for one in values] if np.asarray(values).dtype == object else values
        return np.asarray(kept, dtype=np.float64).astype(np.float32)


def listed(columns: Mapping[str, StoreColumn]) -> str:
    """The columns of a table with their types, for a message."""
    shown = [f"{name} ({column.type})" for name, column in islice(columns.items(), LISTED)]
    return ", ".join(shown) + (", …" if len(columns) > LISTED else "") if shown else "no column at all"


def _as_found(column: StoreColumn) -> str:
    first = next(iter(column.some), None)
    return f" (the first is {first[:40]!r})" if isinstance(first, str) else ""
