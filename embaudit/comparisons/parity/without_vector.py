"""Texts of which one of two functions gives no vector, or one that cannot be used."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from embaudit.comparisons.parity.compare import KindDifference, compare_kind
from embaudit.comparisons.parity.texts import ROLES
from embaudit.finding import Finding
from embaudit.shown import quoted

if TYPE_CHECKING:
    from embaudit.functions.function import Answers

# Many servers refuse these; nobody stores a vector of a text with nothing in it.
OFTEN_REFUSED = ("empty", "blank", "lengths", "at the limit", "beyond the limit")


def not_finite(kind: KindDifference) -> Finding | None:
    """Texts whose vector is NaN or zeros where the checkpoint's is not."""
    places = [place for place in np.flatnonzero(np.isnan(kind.distances)) if place not in kind.failures]
    if not places or not kind.is_known[places].any():
        return None
    return Finding(
        "problem",
        f"{len(places)} of {len(kind.texts)} texts of the kind “{kind.kind}” get NaN or a vector of zeros, "
        f"{quoted(kind.texts[places[0]])} first.",
        "No search finds them, and some indexes refuse them.",
        "Ask for that text in float32: half precision overflows so.",
        name="not_finite",
        value=float(len(places)),
    )


def no_vector(kind: KindDifference, known: str, said: Collection[str]) -> Finding | None:
    """Texts that the other refuses or fails on. Many servers refuse texts that are empty or too long, and say so.

    None if there are none to which the checkpoint itself gives a vector, besides those of which it is said.
    """
    failures = {
        place: reason
        for place, reason in kind.failures.items()
        if kind.is_known[place] and kind.texts[place] not in said
    }
    if not failures:
        return None
    place, reason = next(iter(failures.items()))
    is_refusal = "status 4" in reason and kind.kind in OFTEN_REFUSED
    return Finding(
        "look" if is_refusal else "problem",
        f"{len(failures)} of {len(kind.texts)} texts of the kind “{kind.kind}” get no vector, "
        f"{quoted(kind.texts[place])} first: {reason}.",
        "Many servers refuse such texts." if is_refusal else f"The {known} gives each of them one.",
        "Leave such texts out before it is asked."
        if is_refusal
        else "Ask for that text alone; what serves it logs why.",
        name="no_vector",
        value=float(len(failures)),
    )


def no_vector_of_first(
    kinds: Sequence[KindDifference], ours: Mapping[str, Answers], theirs: Mapping[str, Answers], name: str
) -> Iterator[Finding]:
    """The same of a first function whose inside is not known: texts of which it gives none and the other one.

    Args:
        name: the first one's.
    """
    said: set[str] = set()
    # What is asked for as nothing in particular comes first.
    for kind in sorted(kinds, key=lambda kind: kind.kind in ROLES):
        own, other = ours[kind.kind], theirs[kind.kind]
        turned = compare_kind(kind.kind, kind.texts, other.vectors, own.vectors, own.failures)
        found = no_vector(turned, "other", said if kind.kind in ROLES else frozenset())
        said |= {kind.texts[place] for place in own.failures}
        if found is not None:
            yield replace(found, sentence=f"By {name}, {found.sentence}", name="no_vector_of_first")
