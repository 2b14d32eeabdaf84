"""Turns records into texts or pairs, by the field names common in public data sets.

Names are tried in order; the first one present is used, also where it is null: another field would be a guess.

A table's columns are known before its rows, so a missing text column is reported before anything is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from embaudit.corpora.catalog import CorpusSpec
from embaudit.corpora.draw import Flaw, Text, TextPair
from embaudit.words.errors import CorpusError
from embaudit.words.sentences import listing

TEXT_FIELDS = ("text", "sentence", "passage", "contents", "content", "document", "body", "query", "question")
ID_FIELDS = ("_id", "id", "docid", "doc_id", "pid", "qid", "query_id", "passage_id")
TITLE_FIELDS = ("title", "headline")
LABEL_FIELDS = ("label_text", "label", "category", "class")
FIRST_FIELDS = ("sentence1", "sentence_a", "text1", "s1", "first")
SECOND_FIELDS = ("sentence2", "sentence_b", "text2", "s2", "second")
SCORE_FIELDS = ("score", "similarity_score", "relatedness_score", "similarity")
DATA_SET_FIELDS = ("dataset", "data_set")
QUERY_FIELDS = ("query", "anchor")
RELATED_FIELDS = {
    "positive": ("positive", "positives", "pos"),
    "hard_negative": ("negative", "negatives", "neg"),
}
NUMBERED_NEGATIVE = "negative_"
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
# Rounded so that float32 Parquet (3.8 is stored as 3.7999999523) and decimal text give the same corpus.
SCORE_DIGITS = 6

_KNOWN = frozenset(
    (*TEXT_FIELDS, *ID_FIELDS, *TITLE_FIELDS, *LABEL_FIELDS, *FIRST_FIELDS, *SECOND_FIELDS, *SCORE_FIELDS)
) | frozenset(
    (*DATA_SET_FIELDS, *QUERY_FIELDS, *RELATED_FIELDS["positive"], *RELATED_FIELDS["hard_negative"], "relation")
)


def is_known_field(name: str) -> bool:
    return name in _KNOWN or name.startswith(NUMBERED_NEGATIVE)


def text_of(record: dict[str, Any], spec: CorpusSpec) -> Text | Flaw:
    """The text of a record; for a passage, title and text, as BEIR encodes it: the title alone if there is no text."""
    name = _present(record, spec.text_fields or TEXT_FIELDS)
    raw = None if name is None else record[name]
    title = _first_of(record, TITLE_FIELDS)
    title = clean(title) if isinstance(title, str) else None
    if raw is None and spec.joins_title and title:
        raw = ""
    if not isinstance(raw, str):
        return _lacking(record, "text") if name is None else _not_text(name, raw)
    text = clean(raw)
    if spec.joins_title and title:
        text = f"{title} {text}".strip()
    if flaw := _unusable(text):
        return flaw
    return Text(
        text=text,
        external_id=_as_name(_first_of(record, ID_FIELDS)),
        title=title or None,
        label=_as_name(_first_of(record, LABEL_FIELDS)),
    )


def pairs_of(record: dict[str, Any], spec: CorpusSpec) -> Iterator[TextPair | Flaw]:
    """The pairs of a record: its two sentences, or its query with each negative (or positive)."""
    relation = spec.relation
    sides = _present(record, FIRST_FIELDS), _present(record, SECOND_FIELDS)
    if sides != (None, None):
        named = record.get("relation")
        pair = _pair(record, sides, _first_of(record, SCORE_FIELDS), named if isinstance(named, str) else relation)
        data_set = _as_name(_first_of(record, DATA_SET_FIELDS))
        yield pair if isinstance(pair, Flaw) else replace(pair, data_set=data_set)
        return
    query, related = _present(record, QUERY_FIELDS), _related(record, relation)
    if query is None or not related:
        yield _lacking(record, "sentence1 and sentence2" if relation == "sts" else f"query and {relation}")
        return
    for other in related:
        # A triple's score, if any, is a teacher's margin and not a similarity.
        yield _pair({query: record[query], relation: other}, (query, relation), None, relation)


def clean(text: str) -> str:
    """The text without surrounding whitespace and byte-order mark."""
    return text.strip().lstrip("\ufeff").strip()


def _related(record: dict[str, Any], relation: str) -> list[Any]:
    found = _first_of(record, RELATED_FIELDS.get(relation, ()))
    related = list(found) if isinstance(found, list | tuple) else [] if found is None else [found]
    if relation == "hard_negative":
        numbered = (name for name in record if name.startswith(NUMBERED_NEGATIVE))
        related += [record[name] for name in numbered if record[name] is not None]
    return related


def number_of(value: Any) -> float:
    """A number, also written with a decimal comma; NaN if it is none."""
    if isinstance(value, str) and DECIMAL_COMMA.fullmatch(value.strip()):
        value = value.replace(",", ".")
    try:
        return math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return math.nan


def _pair(record: dict[str, Any], sides: tuple[str | None, str | None], score: Any, relation: str) -> TextPair | Flaw:
    texts: list[str] = []
    for side in sides:
        if side is None:
            return Flaw("broken", f"a pair with a side that is missing: it has only {sides[0] or sides[1]}")
        if not isinstance(record[side], str):
            return _not_text(side, record[side])
        texts.append(clean(record[side]))
    pair = (texts[0], texts[1])
    if flaw := _unusable(pair[0]) or _unusable(pair[1]):
        return flaw
    if score is None or (isinstance(score, str) and not score.strip()):
        return TextPair(*pair, None, relation)
    value = number_of(score)
    if not math.isfinite(value):
        return Flaw("broken", f"a score that is not a number: {score!r}")
    return TextPair(*pair, round(value, SCORE_DIGITS), relation)


def _unusable(text: str) -> Flaw | None:
    if "\0" in text:
        return Flaw("broken", "NUL characters in the text (a binary or UTF-16 file?)")
    try:
        text.encode()
    except UnicodeEncodeError:
        return Flaw("broken", "half of a surrogate pair in the text")
    return None


def _lacking(record: dict[str, Any], wanted: str) -> Flaw:
    return Flaw("broken", f"no {wanted} among the fields {', '.join(record) or '(none)'}")


def _not_text(name: str, value: Any) -> Flaw:
    kinds = {
        list: "a list",
        tuple: "a list",
        dict: "a struct",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return Flaw(
        "broken", f"{name} is {'null' if value is None else kinds.get(type(value), type(value).__name__)}, not text"
    )


def _present(record: dict[str, Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in record), None)


def _first_of(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if name in record), None)


def _as_name(value: Any) -> str | None:
    """An id or label (string or number) as a string; None for anything else."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, float) and math.isfinite(value):
        # A column of integers that has gaps is a column of floats in pandas.
        return str(int(value)) if value.is_integer() else str(value)
    return str(value) if isinstance(value, int) else None


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
    if lacking := _lacking_of(set(chosen.values()), spec):
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


def _lacking_of(fields: set[str], spec: CorpusSpec | None) -> str:
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
