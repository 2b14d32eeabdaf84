"""Whether a served model gives every text a vector that can be used, and different texts different ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from embaudit.checkpoint.agreement import KINDS
from embaudit.declared.rule import Finding, Rule
from embaudit.embedders.function import Answers
from embaudit.measures.integrity.function import distinct_finding, texts_that_differ
from embaudit.questions.parity.without_vector import ZEROS

# Many servers refuse them, and nobody stores a vector of a text with nothing in it.
ZERO = "its vector is zero"
MAY_HAVE_NONE = {*KINDS["empty"], *KINDS["blank"]}
NOT_FINITE = Rule(
    "not_finite",
    problem_if="a hard text other than those gets no vector, NaN, infinity or zeros",
    reason="such texts cannot be stored or asked for",
)
NO_VECTOR = Rule(
    "no_vector", look_if="texts with nothing in them get no vector", reason="many servers refuse them, and say so"
)


def _advice(reason: str, kind: str) -> str:
    """What to do about a text without a usable vector."""
    if reason == ZERO:
        return ZEROS
    return "Look at the server's log for that text." if kind == "endpoint" else "Call it with that text alone."


def hard_texts() -> list[str]:
    """Texts of every kind that something breaks on."""
    return [text for some in KINDS.values() for text in some]


def number_findings(texts: Sequence[str], answers: Answers, kind: str = "endpoint") -> Iterator[Finding]:
    """What is wrong with the vectors of ``hard_texts``, each asked alone.

    Args:
        kind: what gave them: an endpoint has a log, an object of the user's program has none.
    """
    yield from _without_a_vector(texts, answers, kind)
    has_vector = np.isfinite(answers.vectors).all(axis=1) & (np.linalg.norm(answers.vectors, axis=1) > 0)
    if not has_vector.any():
        return
    differ = set(texts_that_differ())
    places = [place for place, text in enumerate(texts) if has_vector[place] and text in differ]
    yield distinct_finding([texts[place] for place in places], answers.vectors[places])


def _without_a_vector(texts: Sequence[str], answers: Answers, kind: str) -> Iterator[Finding]:
    """Texts that are refused, that fail, and whose vector is NaN or zeros."""
    is_finite = np.isfinite(answers.vectors).all(axis=1)
    reasons = dict(answers.failures)
    for place in np.flatnonzero(~is_finite):
        reasons.setdefault(int(place), "its vector has NaN or infinity")
    for place in np.flatnonzero(is_finite):
        if not np.linalg.norm(answers.vectors[place]) > 0:
            reasons[int(place)] = ZERO
    tolerable = [place for place in sorted(reasons) if texts[place] in MAY_HAVE_NONE]
    others = [place for place in sorted(reasons) if texts[place] not in MAY_HAVE_NONE]

    def lacking(places: Sequence[int]) -> str:
        first = places[0]
        return (
            f"{len(places)} of {len(texts)} hard texts get no vector that can be used, {texts[first]!r} first: "
            f"{reasons[first]}."
        )

    if others:
        yield NOT_FINITE.finding(
            "problem",
            lacking(others),
            "Such texts cannot be stored or asked for.",
            _advice(reasons[others[0]], kind),
            float(len(others)),
        )
    if tolerable:
        meaning, advice = "There is nothing in them.", "Leave such texts out before it is asked."
        yield NO_VECTOR.finding("look", lacking(tolerable), meaning, advice, float(len(tolerable)))
