"""Chooses which columns of a table are read and as which fields: by known names, or as given by the user.

A table's columns are known before its rows, so a missing text column is reported before anything is read.
"""

from __future__ import annotations

from typing import Any

from embaudit.corpora.catalog import CorpusSpec
from embaudit.corpora.fields import (
    FIRST_FIELDS,
    NUMBERED_NEGATIVE,
    QUERY_FIELDS,
    RELATED_FIELDS,
    SECOND_FIELDS,
    TEXT_FIELDS,
    is_known_field,
)
from embaudit.words.errors import CorpusError
from embaudit.words.sentences import listing

LISTED_COLUMNS = 20
PAIR = ("sentence1", "sentence2", "score")


def choose_columns(
    schema: Any, shown: str, spec: CorpusSpec | None = None, named: tuple[str, ...] = (), next_step: str = ""
) -> dict[str, str]:
    """The columns to read, mapped to field names.

    Args:
        schema: the table's pyarrow schema.
        spec: the corpus whose columns are required; None if any known column will do.
        named: the user's columns: the text, or a pair's two sides and its score.
        next_step: what to do if a column is missing.

    Raises:
        CorpusError: if a column is missing or does not contain text.
    """
    known: dict[str, str] = {}
    for name in schema.names:
        field = name.strip().lower()
        if is_known_field(field) and field not in known.values():
            known[name] = field
    if named and spec:
        chosen = _named(schema, shown, spec, named)
        if spec.kind == "texts":
            chosen |= {name: field for name, field in known.items() if field not in TEXT_FIELDS and name not in named}
    else:
        chosen = known
    if lacking := _lacking(set(chosen.values()), spec):
        raise CorpusError(f"{shown} has no {lacking}: it has {_listed(schema)}.", next_step=next_step)
    for name, field in chosen.items():
        if _must_be_text(field, spec) and not _is_text(schema.field(name).type):
            raise CorpusError(
                f"Column {name} of {shown} contains {schema.field(name).type}, not text: it has {_listed(schema)}.",
                next_step=next_step,
            )
    return chosen


def _named(schema: Any, shown: str, spec: CorpusSpec, named: tuple[str, ...]) -> dict[str, str]:
    related = spec.relation.removeprefix("hard_")
    fields = ("text",) if spec.kind == "texts" else PAIR if spec.relation == "sts" else ("query", related)
    needed = 2 if spec.kind == "pairs" else 1
    if not needed <= len(set(named)) == len(named) <= len(fields):
        raise CorpusError(
            f"Corpus {spec.name} needs columns {', '.join(fields)}, but {shown} names {', '.join(named)}.",
            next_step=f"Name {needed}"
            + (f" or {len(fields)}" if len(fields) > needed else "")
            + f" of its columns, in that order: it has {_listed(schema)}.",
        )
    if missing := [name for name in named if name not in schema.names]:
        raise CorpusError(
            f"{shown} has no column {' and no column '.join(missing)}.",
            next_step=f"Name one that exists: it has {_listed(schema)}.",
        )
    return dict(zip(named, fields, strict=False))


def _lacking(fields: set[str], spec: CorpusSpec | None) -> str:
    """What the fields lack for a corpus, in words; "" if nothing."""
    if spec is None:
        return "" if fields else "column with a known name"
    if spec.kind == "texts":
        return "" if fields & set(spec.text_fields or TEXT_FIELDS) else "text column"
    if fields & set(FIRST_FIELDS) and fields & set(SECOND_FIELDS):
        return ""
    has_related = fields & set(RELATED_FIELDS.get(spec.relation, ())) or (
        spec.relation == "hard_negative" and any(field.startswith(NUMBERED_NEGATIVE) for field in fields)
    )
    if fields & set(QUERY_FIELDS) and has_related:
        return ""
    wanted = "sentence1 and sentence2" if spec.relation == "sts" else f"query and {spec.relation.removeprefix('hard_')}"
    return f"columns {wanted}"


def _must_be_text(field: str, spec: CorpusSpec | None) -> bool:
    if spec is None:
        return False
    return field in (TEXT_FIELDS if spec.kind == "texts" else (*FIRST_FIELDS, *SECOND_FIELDS, *QUERY_FIELDS))


def _is_text(type_: Any) -> bool:
    """Null columns count: later batches may have text."""
    import pyarrow.types as types

    if types.is_dictionary(type_):
        type_ = type_.value_type
    return bool(
        types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_) or types.is_null(type_)
    )


def _listed(schema: Any) -> str:
    columns = [f"{field.name} ({str(field.type).removeprefix('large_')})" for field in list(schema)[:LISTED_COLUMNS]]
    return listing(columns, "no column at all") + (", …" if len(schema) > LISTED_COLUMNS else "")
