"""What was embedded: the search for the text, made of a row's fields, of which the stored vectors are a function's.

Programs' defaults are tried first, then fields, orders, labels and joints, greedily, by the cosine to one row's vector.
What fits that row is confirmed on others: a shape is only named if it brings them within what the index rounds, and
twenty times nearer than the text alone. A function that is nearly the right one comes no nearer by any text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embaudit.comparisons.parity.clients import HEADERS
from embaudit.comparisons.parity.readings import PROMPTS
from embaudit.comparisons.stored.encode import encode_rows
from embaudit.comparisons.stored.forms import StoredForm
from embaudit.comparisons.stored.programs import OF_NODES, key, known_shapes
from embaudit.comparisons.stored.shapes import (
    Piece,
    Shape,
    in_other_order,
    joined_otherwise,
    labelled_otherwise,
    plain,
    with_field,
    without_a_field,
    wrapped,
)
from embaudit.finding import Finding
from embaudit.functions.function import EmbeddingFunction
from embaudit.stores.template import Template, is_missing

# Texts that a search may ask for: of a checkpoint, and of a function that may cost money.
MOST_TEXTS, MOST_PAID = 400, 120
MOST_FIELDS = 8
# Rows that confirm a shape; with fewer, all that there are.
CONFIRMED, FEWEST = 12, 8
# A shape is nearer than the text alone by so much: no other function comes nearer by chance.
NEARER = 20
# A step of the search is one if it comes nearer by this share.
STEP = 0.01
USUAL_CUTS = (100, 200, 256, 300, 400, 500, 512, 800, 1_000, 1_024, 1_500, 2_000, 2_048, 4_000, 4_096, 8_000)
FILLINGS = ("", "None", "nan", "null", "none", "N/A", "Unknown", "Untitled")
# Longer texts take longer, and hide what stands before them.
SHORT = 600
Row = Mapping[str, object]


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
        return Finding(
            "look",
            f"{which}{'T' if is_most else 't'}he {kind}'s, if it reads {self.said}{by}: that was embedded, and not the "
            "text column alone.",
            "Texts that are added otherwise get vectors of another kind. White space and case are told apart only as "
            f"far as the {kind} reads them.",
            f"Say so next time: --text '{self.template.written}'",
            "what_was_embedded",
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


class _AskedTexts:
    """Asks for distances of texts to a row's vector, each distinct text once, and no more than are allowed."""

    def __init__(self, function: EmbeddingFunction, form: StoredForm, most: int) -> None:
        self._function, self._form = function, form
        self.left = self.most = most
        self._known: dict[str, np.ndarray] = {}
        self._is_folded = False

    def learn_what_is_read_alike(self) -> None:
        """Whether case and white space make no difference: texts that differ by these are asked for once then."""
        one, other = self.vectors(["The first word\n\nAnd a Second", "the first word and a second"])
        self._is_folded = bool(np.isfinite(one).all() and np.allclose(one, other, rtol=0, atol=1e-7))

    def as_read(self, text: str) -> str:
        return " ".join(text.lower().split()) if self._is_folded else text

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        # A text that is read as another one is asked for as it is written first: special tokens have a case.
        written = {self.as_read(text): text for text in reversed(texts)}
        new = [one for one in dict.fromkeys(map(self.as_read, texts)) if one not in self._known][: self.left]
        if new:
            self.left -= len(new)
            self._known |= zip(new, encode_rows(self._function, [written[one] for one in new]), strict=True)
        width = len(next(iter(self._known.values())))
        return np.array([self._known.get(self.as_read(text), np.full(width, np.nan)) for text in texts])

    def distances(self, texts: Sequence[str | None], vectors: np.ndarray) -> np.ndarray:
        """(n,) 1 − cosine; 2 for a text that there is none of, or that may not be asked for any more."""
        if not texts or (not self._known and self.left <= 0):
            return np.full(len(texts), 2.0)
        found = self._form.distance(self.vectors([text or "" for text in texts]), vectors)
        return np.where([text is None for text in texts], 2.0, np.nan_to_num(found, nan=2.0))


def what_was_embedded(
    function: EmbeddingFunction, form: StoredForm, found: FieldedRows, fields: Sequence[str], text: str
) -> Embedded | None:
    """The template of which these rows' vectors are the function's; None if none was found.

    Args:
        fields: the other columns.
        text: the column of texts.
    """
    fields = _some(fields, found, text)
    asked = _AskedTexts(function, form, MOST_TEXTS if function.checkpoint is not None else MOST_PAID)
    asked.learn_what_is_read_alike()
    probes = _probes(found, fields)
    for number, probe in enumerate(probes):
        # What is left is shared by the rows that are tried, without what confirming takes.
        keep = CONFIRMED + (asked.left // 4 if number == 0 and len(probes) > 1 and function.checkpoint else 0)
        search = _TemplateSearch(asked, found.rows[probe], found.vectors[probe], form, keep)
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


class _TemplateSearch:
    """Looks for the shape that gives one row's vector."""

    def __init__(self, asked: _AskedTexts, row: Row, vector: np.ndarray, form: StoredForm, keep: int) -> None:
        self._asked, self._row, self._form, self._keep = asked, row, form, keep
        self._vector = vector
        self._tried: dict[Shape, float] = {}

    def shapes(self, fields: Sequence[str], text: str, alone: float) -> Iterator[Shape]:
        """Those that fit, the most usual first."""
        length = len(str(self._row.get(text) or ""))
        cut = [Shape((Piece(text, most=most),)) for most in USUAL_CUTS if most < length]
        yield from self._fitting([*cut, *known_shapes(fields, text)], alone)
        # One field in place of the text, or beside it.
        seeds = [Shape((Piece(name),)) for name in fields if isinstance(self._row.get(name), str)]
        seeds += [
            plain(name, text, label=label, last="\n\n" if label else None) for name in fields for label in ("", "K: ")
        ]
        seeds += [plain(text, name) for name in fields]
        yield from self._fitting(seeds, alone)
        behind = [Piece(name, label) for name in fields for label in ("K: ", "Source: ")]
        yield from self._fitting(
            [Shape((Piece(text), piece), joint) for piece in behind for joint in ("\n\n", "\n")], alone
        )
        start = Shape((Piece(text),))
        self._tried[start] = alone
        for shape in sorted(self._tried, key=self._tried.__getitem__)[:2]:
            yield from self._climb(shape, fields, text, alone)

    def _fitting(self, shapes: Iterable[Shape], alone: float) -> list[Shape]:
        found = self._distances(list(shapes))
        return [shape for shape, distance in found.items() if self._fits(distance, alone)]

    def _fits(self, distance: float, alone: float) -> bool:
        return distance <= self._form.ceiling and distance * NEARER <= max(alone, 0.0)

    def _climb(self, shape: Shape, fields: Sequence[str], text: str, alone: float) -> Iterator[Shape]:
        """Changes one thing after the other, while that comes nearer."""
        moves: list[Callable[[Shape], Iterator[Shape]]] = [
            lambda one: (more for name in fields if name not in one.names for more in with_field(one, name)),
            joined_otherwise,
            in_other_order,
            without_a_field,
            lambda one: wrapped(one, PROMPTS),
            labelled_otherwise,
            lambda one: wrapped(one, HEADERS),
            lambda one: self._other_forms(one),
            lambda one: self._cuts(one, text),
        ]
        best = self._tried[shape]
        turn = still = 0
        while still < len(moves) and self._asked.left > self._keep:
            found = self._distances(list(moves[turn % len(moves)](shape)))
            fitting = [one for one, distance in found.items() if self._fits(distance, alone)]
            if fitting:
                yield from fitting
                return
            nearest = min(found, key=found.__getitem__, default=None)
            if nearest is not None and found[nearest] < best * (1 - STEP):
                shape, best, still = nearest, found[nearest], 0
                # The same kind again: another field, after one that came nearer.
                continue
            turn, still = turn + 1, still + 1

    def _distances(self, shapes: Sequence[Shape]) -> dict[Shape, float]:
        room = max(0, self._asked.left - self._keep)
        made = ((shape, shape.template().text(self._row)) for shape in shapes if shape not in self._tried)
        texts = {shape: one for shape, one in made if one is not None}
        allowed = set(list(dict.fromkeys(map(self._asked.as_read, texts.values())))[:room])
        new = {shape: one for shape, one in texts.items() if self._asked.as_read(one) in allowed}
        if new:
            vectors = np.repeat(self._vector[None], len(new), axis=0)
            self._tried |= zip(new, self._asked.distances(list(new.values()), vectors).tolist(), strict=True)
        return {shape: self._tried[shape] for shape in shapes if shape in self._tried}

    def _other_forms(self, shape: Shape) -> Iterator[Shape]:
        for place, piece in enumerate(shape.pieces):
            value = self._row.get(piece.name)
            for form in _forms_of(value):
                if form != piece.form:
                    yield shape.with_piece(place, form=form)

    def _cuts(self, shape: Shape, text: str) -> Iterator[Shape]:
        """Cut at N characters: usual ones, and the one that comes nearest by halving what is left."""
        whole = shape.template().text(self._row) or ""
        own = str(self._row.get(text) or "")
        ways_to_cut: tuple[tuple[int, Callable[[int], Shape]], ...] = (
            (len(whole), lambda most: replace(shape, most=most, program="")),
            (
                len(own),
                lambda most: replace(
                    shape,
                    pieces=tuple(replace(one, most=most) if one.name == text else one for one in shape.pieces),
                    program="",
                ),
            ),
        )
        for length, made in ways_to_cut:
            usual = [made(most) for most in USUAL_CUTS if most < length]
            found = self._distances(usual)
            yield from usual
            low, high = 1, length
            while found and high - low > 2 and self._asked.left > self._keep:
                third = max(1, (high - low) // 3)
                ways = [made(low + third), made(high - third)]
                near = self._distances(ways)
                yield from ways
                if len(near) < len(ways):
                    break
                low, high = (low, high - third) if near[ways[0]] <= near[ways[1]] else (low + third, high)


def _forms_of(value: object) -> tuple[str, ...]:
    if isinstance(value, bool):
        return ("json",)
    if isinstance(value, float):
        return ("whole",)
    if isinstance(value, list | tuple):
        return ("list", "json")
    return ("iso", "date") if hasattr(value, "isoformat") else ()


def _confirmed(asked: _AskedTexts, found: FieldedRows, shape: Shape, form: StoredForm, probe: int) -> Embedded | None:
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
    asked: _AskedTexts, found: FieldedRows, template: Template, form: StoredForm, chosen: Sequence[int]
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


def _filled(asked: _AskedTexts, found: FieldedRows, template: Template, form: StoredForm) -> Template:
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


WORDS = {"\n": "a newline", "\n\n": "two newlines", " ": "a space", "": "", "\t": "a tab"}


def in_words(template: Template) -> str:
    """A template as a person would say it: "`title`, a newline and `text`"."""
    if template.most or any(part.filling is not None or part.form for part in template.parts):
        return f"'{template.written}'"
    said = []
    for place, part in enumerate(template.parts):
        before = WORDS.get(part.before, repr(part.before) if part.before else "")
        said += [before] if before and (place or part.before) else []
        cut = f"the first {part.most:,} characters of " if part.most else ""
        said += [f"{cut}`{part.name}`"] if part.name else []
    said += [WORDS.get(template.after, repr(template.after))] if template.after else []
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
