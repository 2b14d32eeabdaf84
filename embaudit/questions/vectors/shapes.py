"""Ways to make one text of a row's fields, as programs do it: fields in an order, labels, what joins them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from embaudit.stores.template import Part, Template

# What stands before a value: K is the field's name as it is, L in capital letters at words' starts.
LABELS = ("", "K: ", "L: ", "K:", "K=", "**L**: ", "[K] ", "# ", "- K: ")
LINES = LABELS[1:6]
# What joins two fields, and what joins them to the text.
JOINTS = ("\n", " ", ". ", "\n\n", ": ", " - ", ", ", " | ", "; ", "", " [SEP] ", "\n---\n", "\n-----\n", " / ", "] ")
BRACKETS = (("[", "]"), ("(", ")"), ("<", ">"), ("# ", ""), ("## ", ""), ("**", "**"), ('"', '"'))


@dataclass(frozen=True)
class Piece:
    """A field as it is written: its label's form, and what stands around its value."""

    name: str
    label: str = ""
    form: str = ""
    filling: str | None = None
    before: str = ""
    after: str = ""
    most: int = 0

    @property
    def shown_label(self) -> str:
        key = self.name.rpartition(".")[2]
        words = key.replace("_", " ").replace("-", " ")
        return self.label.replace("K", key).replace("L", words[:1].upper() + words[1:]) + self.before


@dataclass(frozen=True)
class Shape:
    """What is embedded of a row.

    Attributes:
        pieces: fields in order.
        between: what joins two of them.
        last: what joins those before the last one to it; None for ``between``.
        prefix, suffix: what stands around all of it, in every row.
        most: characters that are read of it; 0 for all.
        program: what makes such texts by default.
    """

    pieces: tuple[Piece, ...]
    between: str = "\n"
    last: str | None = None
    prefix: str = ""
    suffix: str = ""
    most: int = 0
    program: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(piece.name for piece in self.pieces)

    def template(self) -> Template:
        parts: list[Part] = [Part(self.prefix)] if self.prefix else []
        behind = ""
        for place, piece in enumerate(self.pieces):
            is_last = place == len(self.pieces) - 1
            joint = "" if not place else self.last if is_last and self.last is not None else self.between
            before = behind + joint + piece.shown_label
            parts.append(Part(before, piece.name, piece.form, piece.most, piece.filling))
            behind = piece.after
        return Template(tuple(parts), behind + self.suffix, self.most)

    def with_piece(self, place: int, **changes: object) -> Shape:
        pieces = list(self.pieces)
        pieces[place] = replace(pieces[place], **changes)  # type: ignore[arg-type]
        return replace(self, pieces=tuple(pieces), program="")


def plain(*names: str, between: str = "\n", last: str | None = None, label: str = "", program: str = "") -> Shape:
    """Fields of which all but the last one have a label of this form."""
    pieces = (*(Piece(name, label) for name in names[:-1]), Piece(names[-1]))
    return Shape(pieces, between, last, program=program)


def with_field(shape: Shape, name: str) -> Iterator[Shape]:
    """A shape with one field more, at any place, as its others are written and as a line."""
    styles = dict.fromkeys([*(piece.label for piece in shape.pieces[:-1]), "", "K: "])
    for label in styles:
        # Most programs put it before the text, behind what is there.
        for place in sorted(range(len(shape.pieces) + 1), key=lambda one: abs(one - (len(shape.pieces) - 1))):
            pieces = (*shape.pieces[:place], Piece(name, label), *shape.pieces[place:])
            yield replace(shape, pieces=pieces, program="")


def in_other_order(shape: Shape) -> Iterator[Shape]:
    count = len(shape.pieces)
    if count <= 3:
        orders: Iterator[Sequence[int]] = iter(permutations(range(count)))
    else:
        orders = (_moved(count, one, other) for one in range(count) for other in range(count) if one != other)
    for order in orders:
        if tuple(order) != tuple(range(count)):
            yield replace(shape, pieces=tuple(shape.pieces[one] for one in order), program="")


def _moved(count: int, one: int, to: int) -> list[int]:
    order = [place for place in range(count) if place != one]
    order.insert(to, one)
    return order


def without_a_field(shape: Shape) -> Iterator[Shape]:
    if len(shape.pieces) > 1:
        for place in range(len(shape.pieces)):
            yield replace(shape, pieces=(*shape.pieces[:place], *shape.pieces[place + 1 :]), program="")


def joined_otherwise(shape: Shape) -> Iterator[Shape]:
    if len(shape.pieces) < 2:
        return
    for joint in JOINTS:
        if len(shape.pieces) > 2 and joint != shape.between:
            yield replace(shape, between=joint, last=shape.between if shape.last is None else shape.last, program="")
            yield replace(shape, between=joint, last=None, program="")
        if joint != (shape.between if shape.last is None else shape.last):
            yield (
                replace(shape, last=joint, program="")
                if len(shape.pieces) > 2
                else replace(shape, between=joint, last=None, program="")
            )


def labelled_otherwise(shape: Shape) -> Iterator[Shape]:
    for label in LABELS:
        if len(shape.pieces) > 1:
            yield replace(
                shape,
                pieces=(*(replace(piece, label=label) for piece in shape.pieces[:-1]), shape.pieces[-1]),
                program="",
            )
            yield replace(shape, pieces=tuple(replace(piece, label=label) for piece in shape.pieces), program="")
    for place, piece in enumerate(shape.pieces):
        for label in LABELS:
            if label != piece.label:
                yield shape.with_piece(place, label=label)
        for before, after in BRACKETS:
            if not piece.before:
                yield shape.with_piece(place, before=before, after=after)


# What people put around all of it; prompts of well-known families come from where those are known.
SUFFIXES = ("\n", ".", " ", "</s>", "\n\n")


def wrapped(shape: Shape, prefixes: Sequence[str]) -> Iterator[Shape]:
    for prefix in prefixes:
        if prefix != shape.prefix:
            yield replace(shape, prefix=prefix, program="")
    for suffix in SUFFIXES:
        if suffix != shape.suffix:
            yield replace(shape, suffix=suffix, program="")
