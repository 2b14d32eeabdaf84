"""Who built an index, as its vectors alone tell: in words."""

from __future__ import annotations

import numpy as np

from embaudit.declared.finding import Finding
from embaudit.declared.rule import Rule, percent
from embaudit.questions.vectors.alone import VectorProfile, different_places
from embaudit.questions.vectors.fingerprint import (
    HARDLY_ANY,
    NEARLY_ALL,
    SPREAD_ROWS,
    Fingerprint,
    Likeness,
    Origin,
    known_fingerprints,
    origin_of,
)
from embaudit.statistics.intervals import score_share

# Rows of the sample that are looked at: more tell no more.
MOST_ROWS = 2_000
BUILDER = Rule(
    "builder",
    "what a model's vectors have in common: dimensions that stay zero, mean direction, spread by dimension",
    look_if=f"{percent(HARDLY_ANY)} to {percent(NEARLY_ALL)} of the rows are a known model's, and the others are not",
    reason="`ok`: whose nearly all rows are, or that they are no known model's; `not measured` if that cannot be told",
)


def builder_finding(alone: VectorProfile, *, is_named_only: bool = False) -> Finding | None:
    """Whose vectors they are; None if no known model gives so many numbers.

    Args:
        is_named_only: None, too, if nobody is named.
    """
    places = different_places(alone.profile)[:MOST_ROWS]
    if not len(places):
        return None
    origin = origin_of(alone.profile.sample.vectors[places], known_fingerprints())
    if origin is None or (is_named_only and origin.best is None):
        return None
    return _told(origin, alone.profile.sample.numbers[places])


def _told(origin: Origin, numbers: np.ndarray) -> Finding:
    """In words.

    Args:
        numbers: (n,) of the rows that were looked at, from 0.
    """
    rows = len(numbers)
    best, dimension = origin.best, origin.tried[0].fingerprint.dimension
    models = ", ".join(one.fingerprint.model for one in origin.tried)
    if best is None and origin.told == "nobody known":
        return BUILDER.finding(
            "ok",
            f"The vectors are those of no model of {dimension:,} numbers that can be told by them: {models}.",
            note="Vectors that were quantised coarsely, centred or rotated behind the model are not known again.",
        )
    if best is None:
        return BUILDER.finding(
            "not measured",
            f"Cannot tell who built the index from its vectors alone: {_why_not(origin, rows)}.",
            "It may be a model that is known here, or another.",
            "Name the function that may have built it: embaudit vectors STORE FUNCTION",
        )
    model, share = best.fingerprint.model, best.share or 0.0
    what = f"{_or_who_else(best.fingerprint)}, {_by_what(best)}"
    if origin.told == "named":
        whose = "The vectors" if share == 1 else f"{share:.0%} of {rows:,} different vectors"
        return BUILDER.finding(
            "ok", f"{whose} are those of {model}{what}.", value=best.value, note=_how_sure(best.fingerprint)
        )
    first = "" if best.is_own is None else f", row {int(numbers[~best.is_own].min()) + 1:,} first"
    return BUILDER.finding(
        "look",
        f"{share:.0%} of {rows:,} different vectors are those of {model}{what}. The others are not{first}.",
        f"Two models share the index, or rows were changed behind the model. {_how_sure(best.fingerprint)}",
        f"Encode the other rows again by {model}, or keep them in an index of their own.",
        value=share,
    )


def _or_who_else(fingerprint: Fingerprint) -> str:
    return f" (or of {fingerprint.not_told_from})" if fingerprint.not_told_from else ""


def _by_what(best: Likeness) -> str:
    one = best.fingerprint
    others = f"other models of {one.dimension:,} numbers at most {_two(one.highest_other)}"
    if one.measure == "still":
        return f"by the dimensions that this model leaves at zero: {', '.join(map(str, one.still))} (from 0)"
    if one.measure == "direction":
        return f"by the mean direction of that model ({_two(best.value)} at the median; {others})"
    return f"by how much each dimension varies in all rows together (correlation {_two(best.value)}; {others})"


def _two(value: float) -> str:
    """.80, −.02."""
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", "−")


def _how_sure(fingerprint: Fingerprint) -> str:
    counted = fingerprint.held_out
    if counted is None:
        return ""
    low, high = score_share(counted.named, counted.own)[0], score_share(counted.wrongly, counted.others)[1]
    return (
        f"Of public stores held out, {counted.named} of {counted.own} of this model were named so (at least {low:.0%}) "
        f"and {counted.wrongly} of {counted.others} of other models of as many numbers (at most {high:.0%})."
    )


def _why_not(origin: Origin, rows: int) -> str:
    unsaid = [one for one in origin.tried if one.share is None]
    if not unsaid:
        named = " and ".join(one.fingerprint.model for one in origin.tried if one.share)
        return f"rows are like those of {named}, and too few or of both"
    one = unsaid[0]
    if one.fingerprint.measure == "still":
        return f"too many of its numbers are zero to see which are always zero, as with {one.fingerprint.model}"
    if rows < SPREAD_ROWS:
        fewest = f"{one.fingerprint.model} is told from {SPREAD_ROWS} different rows on"
        return f"{fewest}, and there {'is' if rows == 1 else 'are'} {rows}"
    return f"it is somewhat like {one.fingerprint.model} (correlation {_two(one.value)}, which is neither)"
