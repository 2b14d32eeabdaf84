"""Reads an index by what was embedded, where the text column alone explains too little of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.vectors.against import Progress, SampleComparison, measure_sample
from embaudit.questions.vectors.embedded import Embedded, FieldedRows, what_was_embedded
from embaudit.questions.vectors.encode import encode_rows
from embaudit.questions.vectors.profile import Profile
from embaudit.questions.vectors.reasons import Reason
from embaudit.questions.vectors.sample import SomeRows, joined, rows_of
from embaudit.stores.opened import embedding
from embaudit.stores.store import Store

# Rows that are looked at, of which the search takes a few.
LOOKED_AT = 64


class ReadAs(NamedTuple):
    """How an index is read then: by the template if that explains most rows, else as before; and the other rows."""

    embedded: Embedded
    read: Store
    against: SampleComparison
    ours: np.ndarray
    known: list[Reason]


def read_as_embedded(
    index: Store,
    function: EmbeddingFunction,
    found: SampleComparison,
    ours: np.ndarray,
    profile: Profile,
    progress: Progress,
) -> ReadAs | None:
    """What was embedded, if it is not the text column alone; None if that was not found, or cannot be."""
    if found.form is None or not index.fields or index.template is not None:
        return None
    text = index.columns["text"]
    names = [name for name in (*index.fields, *filter(None, [index.columns.get("id")])) if name != text]
    differ = np.flatnonzero(found.differs)
    progress("what was embedded", 0, None)
    chosen = differ[:LOOKED_AT]
    fields = _fields(index, names, found.rows.numbers[chosen])
    rows = [
        {**fields[int(number)], text: found.rows.texts[place]}
        for place, number in zip(chosen, found.rows.numbers[chosen], strict=True)
    ]
    fielded = FieldedRows(rows, found.rows.vectors[chosen], found.distances[chosen])
    embedded = what_was_embedded(function, found.form, fielded, names, text)
    if embedded is None:
        return None
    read = embedding(index, embedded.template)
    own = int((found.compared & ~found.differs).sum())
    if len(differ) > own:
        sample, population = _read_again(read, found.rows.numbers, profile)
        whole, theirs = measure_sample(function, sample, population, progress, index.rounded)
        if int((whole.compared & ~whole.differs).sum()) > own:
            # The others may be of the text column alone, as it was before.
            left = np.flatnonzero(whole.differs)
            before = {int(number): bool(one) for number, one in zip(found.rows.numbers, found.differs, strict=True)}
            alone = [int(place) for place in left if not before[int(sample.numbers[place])]]
            said = f"are the {function.kind}'s if it reads the column {text!r} alone"
            return ReadAs(embedded, read, whole, theirs, [Reason(said, tuple(alone))] if alone else [])
    other, _ = _read_again(read, found.rows.numbers[differ], profile)
    place_of = {int(number): int(place) for place, number in zip(differ, found.rows.numbers[differ], strict=True)}
    other = other.with_text
    distances = found.form.distance(encode_rows(function, [one or "" for one in other.texts]), other.vectors)
    within = found.form.tolerance(distances)
    places = [place_of[int(number)] for number, one in zip(other.numbers, distances, strict=True) if one <= within]
    reasons = [Reason(f"are the {function.kind}'s if it reads {embedded.said}", tuple(places))] if places else []
    return ReadAs(embedded, index, found, ours, reasons)


def _fields(index: Store, names: list[str], numbers: np.ndarray) -> dict[int, dict[str, object]]:
    """The fields of these rows, by number."""
    wanted = {int(number) for number in numbers}
    found: dict[int, dict[str, object]] = {}
    others = [name for name in names if name in index.fields]
    row_id = index.columns.get("id", "")
    for batch in index.batches(others):
        for number in (one for one in wanted if batch.start <= one < batch.start + batch.rows):
            place = number - batch.start
            found[number] = {name: batch.fields[name][place] for name in others}
            if batch.ids is not None and row_id in names:
                found[number][row_id] = batch.ids[place]
    return found


def _read_again(read: Store, numbers: np.ndarray, profile: Profile) -> tuple[SomeRows, int]:
    """These rows with what is embedded as their texts, in their order; and how many rows of the index have such."""
    parts, population = [], 0
    usable = set(profile.numbers[profile.usable].tolist())
    for batch in read.batches():
        parts.append(rows_of(batch, numbers, profile.dimension))
        texts = batch.texts or ()
        population += sum(text is not None and batch.start + place in usable for place, text in enumerate(texts))
    rows = joined(parts, profile.dimension)
    place_of = {int(number): place for place, number in enumerate(rows.numbers)}
    return rows.at([place_of[int(number)] for number in numbers]).with_text, population
