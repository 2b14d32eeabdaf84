"""Texts of which one of two functions gives no vector, or one that cannot be used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from embaudit.declared.rule import Finding, Level, Rule
from embaudit.questions.parity.compare import KindDifference, compare_kind
from embaudit.questions.parity.texts import NAMED, ROLES
from embaudit.words.sentences import first_of, quoted

if TYPE_CHECKING:
    from embaudit.embedders.function import Answers

# A kind, and the places of its texts.
Lacking = tuple[KindDifference, list[int]]
# What to do about numbers that cannot be used. Half precision overflows to infinity and NaN, never to zeros.
NOT_FINITE = "Ask for that text in float32: half precision overflows so."
ZEROS = (
    "Look at the vector before a client changes it: zeros come of whole numbers rounded in another range, of base64 "
    "that is read as something else, and of a static model that knows no word of the text."
)
# Many servers refuse these; nobody stores a vector of a text with nothing in it.
OFTEN_REFUSED = ("empty", "blank", "lengths", "at the limit", "beyond the limit")
LEAVE_OUT = "Leave such texts out before it is asked."
# Whatever is given in place of a vector of these: a status, None, NaN, zeros.
NOTHING_IN_THEM = ("empty", "blank")
UNUSABLE = Rule(
    "not_finite",
    problem_if="NaN or zeros, of a kind of text other than those",
    reason="no search finds them, and some indexes refuse them",
)
NO_VECTOR = Rule(
    "no_vector",
    look_if="none of texts with nothing in them; a refusal (status 4…) of those that are too long",
    problem_if="none of a text that the other function encodes",
    reason="many servers refuse texts that are empty or too long, and say so",
)
NO_VECTOR_OF_FIRST = Rule(
    "no_vector_of_first",
    look_if=NO_VECTOR.look_if,
    problem_if=NO_VECTOR.problem_if,
    reason="the same of the first function, if it is no checkpoint",
)


def not_finite(kinds: Sequence[KindDifference]) -> Iterator[Finding]:
    """Texts whose vector by the other is NaN or zeros, of kinds of which the first function gives vectors."""
    broken = [(kind, places) for kind in kinds if (places := _broken(kind))]
    zeros = [(kind, some) for kind, places in broken if (some := [one for one in places if kind.is_zero(one)])]
    others = [(kind, some) for kind, places in broken if (some := [one for one in places if not kind.is_zero(one)])]
    for found, what, advice in ((others, "NaN", NOT_FINITE), (zeros, "a vector of zeros", ZEROS)):
        lacking = [one for one in found if one[0].kind not in NOTHING_IN_THEM]
        empty = [one for one in found if one[0].kind in NOTHING_IN_THEM]
        if lacking:
            yield UNUSABLE.finding(
                "problem",
                f"{_which(lacking)} get {what}, {_first(lacking)} first.",
                "No search finds them, and some indexes refuse them.",
                advice,
                _count(lacking),
            )
        if empty:
            sentence = f"{_which(empty)} get {what}, {_first(empty)} first."
            yield NO_VECTOR.finding("look", sentence, "There is nothing in them.", LEAVE_OUT, _count(empty))


def no_vector(kinds: Sequence[KindDifference], known: str) -> Iterator[Finding]:
    """Texts that the other refuses or fails on, and the first function does not.

    Many servers refuse texts that are empty or too long, and say so: that is worth a look.

    Args:
        known: what the first one is: a checkpoint, an endpoint …
    """
    # What is refused anyway is refused as a query, too, and said once.
    said = {kind.texts[place] for kind in kinds if kind.kind not in ROLES for place in kind.failures}
    lacking: dict[Level, list[Lacking]] = {"problem": [], "look": []}
    for kind in kinds:
        places = [place for place in kind.failures if kind.is_known[place]]
        if kind.kind in ROLES:
            places = [place for place in places if kind.texts[place] not in said]
        if places:
            is_refusal = kind.kind in OFTEN_REFUSED and "status 4" in kind.failures[places[0]]
            is_refusal |= kind.kind in NOTHING_IN_THEM
            lacking["look" if is_refusal else "problem"].append((kind, places))
    words = {
        "problem": (f"The {known} gives each of them one.", "Ask for that text alone, and see what is answered."),
        "look": ("Many servers refuse such texts.", LEAVE_OUT),
    }
    for level, some in lacking.items():
        if some:
            kind, places = some[0]
            sentence = f"{_which(some)} get no vector, {_first(some)} first: {kind.failures[places[0]]}."
            yield NO_VECTOR.finding(level, sentence, *words[level], _count(some))


def no_vector_of_first(
    kinds: Sequence[KindDifference], ours: Mapping[str, Answers], theirs: Mapping[str, Answers], name: str
) -> Iterator[Finding]:
    """The same of a first function whose inside is not known: texts of which it gives none and the other one.

    Args:
        name: the first one's.
    """
    turned = [
        compare_kind(kind.kind, kind.texts, other.vectors, own.vectors, own.failures)
        for kind in kinds
        for own, other in ((ours[kind.kind], theirs[kind.kind]),)
    ]
    for found in no_vector(turned, "other"):
        yield replace(found, sentence=f"By {name}, {found.sentence}", name=NO_VECTOR_OF_FIRST.name)


def _broken(kind: KindDifference) -> list[int]:
    """Places of texts whose vector is none, without having failed; empty if the first function has none either."""
    places = [int(place) for place in np.flatnonzero(np.isnan(kind.distances)) if place not in kind.failures]
    return places if kind.is_known[places].any() else []


def _which(lacking: Sequence[Lacking]) -> str:
    names = [f"“{kind.kind}”" for kind, _ in lacking]
    kinds = f"{len(names)} kinds ({first_of(names, NAMED)})" if len(names) > 1 else f"the kind {names[0]}"
    return f"{_count(lacking):,.0f} of {sum(len(kind.texts) for kind, _ in lacking):,} texts of {kinds}"


def _first(lacking: Sequence[Lacking]) -> str:
    kind, places = lacking[0]
    return quoted(kind.texts[places[0]])


def _count(lacking: Sequence[Lacking]) -> float:
    return float(sum(len(places) for _, places in lacking))
