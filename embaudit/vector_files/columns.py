"""Finds the vectors, the texts and the ids of a table, by type and usual names, or as the user named them.

Two columns that may be meant are refused, by name: an index is never measured by the wrong one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from embaudit.corpora.fields import ID_FIELDS
from embaudit.errors import UsageError
from embaudit.suggest import did_you_mean

# In the vocabulary of vector databases and of what people export by hand, in lower case.
TEXTS = (
    "text",
    "chunk",
    "chunk_text",
    "content",
    "contents",
    "page_content",
    "passage",
    "document",
    "sentence",
    "body",
)
IDS = (*ID_FIELDS, "uuid", "chunk_id", "point_id", "pk", "key")
LISTED = 20


@dataclass(frozen=True)
class AskedColumns:
    """The columns that the user named; None for those to be found."""

    vector: str | None = None
    text: str | None = None
    id: str | None = None


def find_columns(schema: Any, asked: AskedColumns, shown: str, first_of: Callable[[str], object]) -> dict[str, str]:
    """The columns to read, by what they are: ``vector``, and ``text`` and ``id`` if there are any.

    Args:
        schema: the table's pyarrow schema.
        first_of: the first value of a column that is not null; None if all are.

    Raises:
        UsageError: if there is no vector column, a named column is not there or is something else, or two may be meant.
    """
    for name in (asked.vector, asked.text, asked.id):
        if name is not None and name not in schema.names:
            raise UsageError(
                f"{shown} has no column {name!r}: it has {listed(schema)}.",
                next_step=f"{did_you_mean(name, schema.names)}Name one of its columns.",
            )
    vector = asked.vector or _vector(schema, shown, first_of)
    if asked.vector and not is_vector(schema, asked.vector, first_of):
        raise UsageError(
            f"Column {asked.vector!r} of {shown} is {schema.field(asked.vector).type}, not a list of numbers"
            f"{_as_found(first_of(asked.vector))}.",
            next_step=f"Name the column of vectors with --vector; there are {listed(schema)}.",
        )
    if asked.text and not is_text(schema.field(asked.text).type):
        raise UsageError(
            f"Column {asked.text!r} of {shown} is {schema.field(asked.text).type}, not text.",
            next_step=f"Name the column of texts with --text; there are {listed(schema)}.",
        )
    text = asked.text or _only(schema, TEXTS, shown, "text", lambda name: is_text(schema.field(name).type), {vector})
    found = {"vector": vector, "text": text, "id": asked.id or _first(schema, IDS, {vector, text})}
    return {what: name for what, name in found.items() if name is not None}


def _vector(schema: Any, shown: str, first_of: Callable[[str], object]) -> str:
    fractions = [name for name in schema.names if _is_list(schema.field(name).type, of_fractions=True)]
    candidates = fractions or [name for name in schema.names if is_vector(schema, name, first_of)]
    if not candidates:
        raise UsageError(
            f"{shown} has no column of vectors: it has {listed(schema)}.",
            next_step="A column of vectors is a list of numbers, or text such as [0.1, 0.2].",
        )
    if len(candidates) > 1:
        raise UsageError(
            f"{shown} has {len(candidates)} columns that may be the vectors: {', '.join(candidates)}.",
            next_step=f"Name the one that is meant: --vector {candidates[0]}",
        )
    return candidates[0]


def _only(
    schema: Any, names: Sequence[str], shown: str, what: str, fits: Callable[[str], bool], but: set[str]
) -> str | None:
    found = [name for name in schema.names if name.strip().lower() in names and name not in but and fits(name)]
    if len(found) > 1:
        raise UsageError(
            f"{shown} has {len(found)} columns that may be the {what}s: {', '.join(found)}.",
            next_step=f"Name the one whose text was embedded: --{what} {found[0]}",
        )
    return found[0] if found else None


def _first(schema: Any, names: Sequence[str], but: set[str | None]) -> str | None:
    return next((name for name in schema.names if name.strip().lower() in names and name not in but), None)


def is_vector(schema: Any, name: str, first_of: Callable[[str], object]) -> bool:
    """Whether a column holds lists of numbers, or text or bytes that may be read as such."""
    import pyarrow.types as types

    kind = schema.field(name).type
    if _is_list(kind, of_fractions=False) or types.is_fixed_size_binary(kind):
        return True
    return is_text(kind) and _is_list_as_text(first_of(name))


def _is_list_as_text(value: object) -> bool:
    return isinstance(value, str) and value.strip()[:1] == "[" and value.strip()[-1:] == "]"


def _is_list(kind: Any, *, of_fractions: bool) -> bool:
    import pyarrow.types as types

    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return False
    value = kind.value_type
    is_fraction = types.is_floating(value) or types.is_decimal(value)
    return bool(is_fraction or (not of_fractions and types.is_integer(value)))


def is_text(kind: Any) -> bool:
    """Whether a column's type is text, dictionary-encoded or not."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def listed(schema: Any) -> str:
    """The columns of a table with their types, for a message."""
    columns = [f"{field.name} ({field.type})" for field in list(schema)[:LISTED]]
    return ", ".join(columns) + (", …" if len(schema) > LISTED else "") if columns else "no column at all"


def _as_found(value: object) -> str:
    return f" (the first is {str(value)[:40]!r})" if isinstance(value, str) else ""
