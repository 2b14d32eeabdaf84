"""What was embedded: the search for the text, made of a row's fields, of which the stored vectors are a function's.

Programs' defaults are tried first, then fields, orders, labels and joints, greedily, by the cosine to one row's vector.
What fits that row is confirmed on others: a shape is only named if it brings them within what the index rounds, and
twenty times nearer than the text alone. A function that is nearly the right one comes no nearer by any text. An index
is read by what was embedded where the text column alone explains too little of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from embaudit.declared.document import count
from embaudit.declared.rule import Finding, Rule
from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.vectors.against import Progress, SampleComparison, measure_sample
from embaudit.questions.vectors.forms import StoredForm, encode_rows
from embaudit.questions.vectors.profile import Profile, SomeRows, joined, rows_of
from embaudit.questions.vectors.reasons import Reason
from embaudit.questions.vectors.shapes import OF_NODES, Shape, key
from embaudit.questions.vectors.template_search import NEARER, AskedTexts, Row, TemplateSearch
from embaudit.stores.opened import embedding
from embaudit.stores.store import Store
from embaudit.stores.template import Template, in_words, is_missing

# Texts that a search may ask for: of a checkpoint, and of a function that may cost money.
MOST_TEXTS, MOST_PAID = 500, 120
MOST_FIELDS = 8
# Rows that confirm a shape; with fewer, all that there are.
CONFIRMED, FEWEST = 12, 8
FILLINGS = ("", "None", "nan", "null", "none", "N/A", "Unknown", "Untitled")
# Longer texts take longer, and hide what stands before them.
SHORT = 600
WHAT_WAS_EMBEDDED = Rule(
    "what_was_embedded",
    look_if="rows have the function's vectors of other fields than the text column alone",
    reason="texts that are added otherwise get vectors of another kind",
)


@dataclass(frozen=True)
class Embedded:
    """What was embedded.

    Attributes:
        template: of the row's fields.
        program: what embeds such by default; empty if nothing known does.
        asked: texts that the search asked for.
        confirmed: rows that it was confirmed on.
    """

    template: Template
    program: str
    asked: int
    confirmed: int

    @property
    def said(self) -> str:
        """As the end of "the function's, if it reads …"."""
        return in_words(self.template)

    def finding(self, kind: str, *, is_most: bool) -> Finding:
        """Says what was embedded; of most rows, or of some."""
        by = f" ({self.program} embeds such by default)" if self.program else ""
        which = "" if is_most else "Some rows: "
        return WHAT_WAS_EMBEDDED.finding(
            "look",
            f"{which}{'T' if is_most else 't'}he {kind}'s, if it reads {self.said}{by}: that was embedded, and not the "
            f"text column alone (confirmed on {count(self.confirmed, 'row')}).",
            "Texts that are added otherwise get vectors of another kind. White space and case are told apart only as "
            f"far as the {kind} reads them.",
            say_so(self.template),
            float(self.confirmed),
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "template": self.template.written,
            "said": self.said,
            "program": self.program,
            "texts_asked": self.asked,
            "rows_confirmed": self.confirmed,
        }


def say_so(template: Template) -> str:
    """What to do where a template was embedded."""
    return f"Say so next time: --text '{template.written}'"


@dataclass(frozen=True)
class FieldedRows:
    """Sampled rows that differ, with their fields.

    Attributes:
        rows: of each, its fields by name.
        vectors: (n, D) as stored.
        distances: (n,) of the text alone.
    """

    rows: Sequence[Row]
    vectors: np.ndarray
    distances: np.ndarray


def what_was_embedded(
    function: EmbeddingFunction, form: StoredForm, found: FieldedRows, fields: Sequence[str], text: str
) -> Embedded | None:
    """The template of which these rows' vectors are the function's; None if none was found.

    Args:
        fields: the other columns.
        text: the column of texts.
    """
    fields = _some(fields, found, text)
    asked = AskedTexts(function, form, MOST_TEXTS if function.checkpoint is not None else MOST_PAID)
    asked.learn_what_is_read_alike()
    probes = _probes(found, fields)
    for number, probe in enumerate(probes):
        # What is left is shared by the rows that are tried, without what confirming takes.
        keep = CONFIRMED + (asked.left // 4 if number == 0 and len(probes) > 1 and function.checkpoint else 0)
        search = TemplateSearch(asked, found.rows[probe], found.vectors[probe], form, keep)
        for shape in search.shapes(fields, text, float(found.distances[probe])):
            if shape.names == (text,) and not shape.most and not any(one.most for one in shape.pieces):
                # A prompt around the text is another use of the function, and no field of the row.
                continue
            told = _confirmed(asked, found, shape, form, probe)
            if told is not None:
                return told
    return None


def _some(fields: Sequence[str], found: FieldedRows, text: str) -> list[str]:
    """Fields that may have been embedded: those that have values, texts first if there are many."""
    own = [
        name
        for name in fields
        if name != text and key(name) not in OF_NODES[:2] and any(not is_missing(row.get(name)) for row in found.rows)
    ]
    if len(own) <= MOST_FIELDS:
        return own
    is_text = {name: any(isinstance(row.get(name), str) for row in found.rows) for name in own}
    kept = set(sorted(own, key=lambda name: not is_text[name])[:MOST_FIELDS])
    return [name for name in own if name in kept]


def _probes(found: FieldedRows, fields: Sequence[str]) -> list[int]:
    """Two rows that the search looks at: with all fields, short, and not the farthest, which may be another's."""
    lacking = [sum(is_missing(row.get(name)) for name in fields) for row in found.rows]
    length = [sum(len(str(value)) for value in row.values() if value is not None) for row in found.rows]
    order = sorted(range(len(found.rows)), key=lambda one: (lacking[one], length[one] > SHORT, found.distances[one]))
    best = [
        one for one in order if (lacking[one], length[one] > SHORT) == (lacking[order[0]], length[order[0]] > SHORT)
    ]
    return list(dict.fromkeys([best[len(best) // 4], best[len(best) // 2]]))


def _confirmed(asked: AskedTexts, found: FieldedRows, shape: Shape, form: StoredForm, probe: int) -> Embedded | None:
    """The shape, if other rows have its vectors, too."""
    template = shape.template()
    order = _varied(found.rows, template, probe)
    chosen = order[: CONFIRMED + 1]
    explained = _explained(asked, found, template, form, chosen)
    if explained.sum() < min(FEWEST, len(chosen)) and explained.sum() >= 2:
        # Part of the rows that differ are another's.
        chosen = order[: 3 * CONFIRMED]
        explained = _explained(asked, found, template, form, chosen)
    if explained.sum() < min(FEWEST, len(found.rows)):
        return None
    template = _filled(asked, found, template, form)
    return Embedded(template, shape.program, asked.most - asked.left, int(explained.sum()))


def _explained(
    asked: AskedTexts, found: FieldedRows, template: Template, form: StoredForm, chosen: Sequence[int]
) -> np.ndarray:
    distances = asked.distances([template.text(found.rows[one]) for one in chosen], found.vectors[list(chosen)])
    within = form.tolerance(distances)
    return np.asarray((distances <= within) & (distances * NEARER <= found.distances[list(chosen)]))


def _varied(rows: Sequence[Row], template: Template, probe: int) -> list[int]:
    """Rows that have every field, those with values that others before have not first; the probe leads."""
    seen: set[tuple[str, str]] = set()
    first: list[int] = [probe]
    later: list[int] = []
    for one, row in enumerate(rows):
        if one == probe or any(is_missing(row.get(name)) for name in template.fields):
            continue
        values = {(name, str(row.get(name))) for name in template.fields}
        (first if len(values - seen) == len(values) else later).append(one)
        seen |= values
    return [*first, *later]


def _filled(asked: AskedTexts, found: FieldedRows, template: Template, form: StoredForm) -> Template:
    """The template with what stands for fields that rows lack, where that is not left out."""
    for place, part in enumerate(template.parts):
        lacking = [one for one, row in enumerate(found.rows) if part.name and is_missing(row.get(part.name))][:2]
        if not lacking:
            continue

        def fit(
            filling: str | None, place: int = place, lacking: list[int] = lacking, template: Template = template
        ) -> float:
            parts = list(template.parts)
            parts[place] = replace(parts[place], filling=filling)
            texts = [replace(template, parts=tuple(parts)).text(found.rows[one]) for one in lacking]
            return float(asked.distances(texts, found.vectors[lacking]).min())

        for filling in (part.filling, None, *FILLINGS):
            if fit(filling) <= form.ceiling:
                parts = list(template.parts)
                parts[place] = replace(part, filling=filling)
                template = replace(template, parts=tuple(parts))
                break
    return template


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
