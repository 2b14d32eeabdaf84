"""The search for the shape whose text gives one row's vector: known ones first, then one change after the other.

A function is asked for each distinct text once, and for no more than are allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from embaudit.embedders.function import EmbeddingFunction
from embaudit.questions.parity.clients import HEADERS
from embaudit.questions.parity.readings import PROMPTS
from embaudit.questions.vectors.forms import StoredForm, encode_rows
from embaudit.questions.vectors.shapes import (
    Piece,
    Shape,
    in_other_order,
    joined_otherwise,
    known_shapes,
    labelled_otherwise,
    plain,
    with_field,
    without_a_field,
    wrapped,
)


class AskedTexts:
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


# A shape is nearer than the text alone by so much: no other function comes nearer by chance.
NEARER = 20
# A step of the search is one if it comes nearer by this share.
STEP = 0.01
USUAL_CUTS = (100, 200, 256, 300, 400, 500, 512, 800, 1_000, 1_024, 1_500, 2_000, 2_048, 4_000, 4_096, 8_000)
# Sets of fields that are tried as lines.
MOST_LINES = 60
Row = Mapping[str, object]


class TemplateSearch:
    """Looks for the shape that gives one row's vector."""

    def __init__(self, asked: AskedTexts, row: Row, vector: np.ndarray, form: StoredForm, keep: int) -> None:
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
        nearest = sorted(self._tried, key=self._tried.__getitem__)[:2]
        yield from self._fitting(_lines(fields, text), alone)
        for shape in nearest:
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


def _lines(fields: Sequence[str], text: str) -> list[Shape]:
    """Lines of some of the fields before the text: programs leave out what they know to say nothing."""
    some = [names for size in range(2, len(fields)) for names in combinations(fields, size)]
    return [plain(*names, text, last="\n\n", label="K: ") for names in some[:MOST_LINES]]


def _forms_of(value: object) -> tuple[str, ...]:
    if isinstance(value, bool):
        return ("json",)
    if isinstance(value, float):
        return ("whole",)
    if isinstance(value, list | tuple):
        return ("list", "json")
    return ("iso", "date") if hasattr(value, "isoformat") else ()
