"""What follows from how far two functions are apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from embaudit.declared.document import count
from embaudit.declared.rule import Finding, Level, Rule, number
from embaudit.questions.parity.asking import AGAIN, BatchingCheck
from embaudit.questions.parity.compare import (
    HALF,
    LEFT,
    NAMED,
    ROLES,
    SAME,
    KindDifference,
    farthest,
    is_apart,
    moved,
    rounds_as_half,
)
from embaudit.questions.parity.without_vector import no_vector, not_finite
from embaudit.words.sentences import first_of, quoted, within

if TYPE_CHECKING:
    from embaudit.questions.parity.explain import Explanation

SAME_VECTORS = Rule("same_vectors", reason=f"`ok`: 1 − cosine at most {number(SAME)} for texts of every kind")
ROUNDED = Rule(
    "precision",
    look_if=f"1 − cosine above {number(SAME)}, and no more than half precision rounds ({number(HALF)})",
    reason="scores move in the third digit at most; neighbours that are nearly tied may change places",
)
ANOTHER = Rule(
    "another_function",
    problem_if="1 − cosine above what half precision rounds, for a kind of text; another length of vectors, or "
    "another number of dimensions",
    reason="what one of them indexed cannot be searched with the other",
)
ASKED = Rule(
    "asked_{how}",
    look_if=f"1 − cosine above {number(SAME)} between a text alone and asked in another way (a batch, again, base64 "
    "…), up to what the function rounds",
    problem_if="beyond that, or no vector so",
    reason="what is stored depends on what else is asked at the time. `not measured` if none has a vector that can be "
    "compared",
)
# The rule of what was not measured of a function that changes while it is asked.
UNSTEADY = Rule(
    "unsteady",
    problem_if="the same texts get other vectors, alone, later on; with when",
    reason="what was asked in between rests on it and is `not measured`",
)
# What another function means, and what to do.
OF_A_CHECKPOINT = (
    "What was audited is not what is served: scores and cut-offs of the audit do not hold for it.",
    "Correct the server, or audit the checkpoint as it is served.",
)
OF_OTHERS = (
    "What one of them indexed cannot be searched with the other.",
    "For the reason, name the folder of the checkpoint that one of them should be: embaudit parity FOLDER --with OTHER",
)
# No search finds these: every text has its own.
HEADERS_THAT_DIFFER = "See what the client sends: what it puts before each text (a title, a source) cannot be guessed."


def findings_of(
    kinds: Sequence[KindDifference],
    dimensions: tuple[int, int],
    explanation: Explanation | None,
    asked: Sequence[BatchingCheck],
    known: str = "checkpoint",
    in_roles: Mapping[str, Explanation] | None = None,
    declared: str = "",
) -> Iterator[Finding]:
    """Problems where the other is another function, and what else to know before it is relied on.

    Args:
        kinds: each text alone, by kind.
        dimensions: the checkpoint's, the other's.
        explanation: None if nothing was to be explained.
        asked: the other asked in other ways.
        known: what it is held against: a checkpoint, an endpoint …
        in_roles: what explains texts that are asked for as queries, or as documents.
        declared: what the config.json of two checkpoints says otherwise, in words; empty if nothing.
    """
    # Where the same text gets another vector the next time, nothing else can be explained.
    yield from (finding_of_asking(one) for one in asked if not one.is_repeatable)
    if any(not one.is_repeatable and one.how == AGAIN for one in asked):
        yield UNSTEADY.finding(
            "not measured",
            f"Whether it is the same function was not measured: {len(kinds)} kinds of text, batches and all else rest "
            "on vectors that do not stay.",
            advice="Look first at why the same text gets another vector.",
        )
        yield from no_vector(kinds, known)
        return
    yield from _difference(kinds, dimensions, explanation, known, in_roles or {}, declared)
    if dimensions[0] == dimensions[1]:
        yield from not_finite(kinds)
    yield from no_vector(kinds, known)
    yield from (finding_of_asking(one) for one in asked if one.is_repeatable)


def _difference(
    kinds: Sequence[KindDifference],
    dimensions: tuple[int, int],
    explanation: Explanation | None,
    known: str,
    in_roles: Mapping[str, Explanation],
    declared: str = "",
) -> Iterator[Finding]:
    """How far the vectors of texts asked alone are apart, and why."""
    apart = moved(kinds) if dimensions[0] == dimensions[1] else []
    rounded = [kind for kind in kinds if is_apart(kind) and kind not in apart]
    compared = [kind for kind in kinds if np.isfinite(kind.distances).any()]
    worst = max((kind.worst for kind in compared), default=float("nan"))
    has_one_dimension = dimensions[0] == dimensions[1]
    if has_one_dimension and not compared:
        return
    if has_one_dimension and not apart and not rounded:
        sentence = f"Texts of {len(compared)} kinds get the same vectors (1 − cosine at most {worst:.1e})."
        yield SAME_VECTORS.finding("ok", sentence, value=worst)
    elif has_one_dimension and not apart:
        in_one_role = [asked_for(kind.kind) for kind in rounded if kind.kind in ROLES]
        is_all = len(in_one_role) < len(rounded)
        of = "Texts of all kinds" if is_all else f"What is asked for as {' and '.join(in_one_role)}"
        differ = "differ" if is_all else "differs"
        yield ROUNDED.finding(
            "look",
            f"{of} {differ} by no more than half precision rounds (1 − cosine at most {worst:.1e}, median "
            f"{float(np.median([kind.median for kind in (compared if is_all else rounded)])):.1e}).",
            "Scores move in the third digit at most; neighbours that are nearly tied may change places.",
            "Store and query with the same precision.",
            worst,
        )
    else:
        meaning, advice = OF_A_CHECKPOINT if known == "checkpoint" else OF_OTHERS
        plainly = None if explanation is None else explanation.sentences
        alone = {role: one for role, one in in_roles.items() if one.sentences != plainly}
        because = "".join(_because(one, f"Asked for {asked_for(role)}, ") for role, one in alone.items())
        right = [asked_for(kind.kind) for kind in compared if kind.kind in ROLES and kind not in apart]
        if explanation is not None and right and has_one_dimension:
            because += f". Asked for {' or '.join(right)}, it gives what the {known} gives"
        why = _because(explanation, is_all=not because, declared=declared)
        not_tried = dict.fromkeys(filter(None, map(_not_tried, (explanation, *alone.values()))))
        yield ANOTHER.finding(
            "problem",
            f"{_how_apart(apart, compared, dimensions, known)}{why}{because}.",
            meaning,
            f"{advice}{''.join(not_tried)}",
            worst if has_one_dimension and worst > SAME else None,
        )


def _how_apart(
    apart: Sequence[KindDifference], compared: Sequence[KindDifference], dimensions: tuple[int, int], known: str
) -> str:
    if dimensions[0] != dimensions[1]:
        return f"Its vectors have {dimensions[1]} dimensions, the {known}'s {dimensions[0]}"
    if all(kind.worst <= SAME for kind in apart):
        return "Its vectors point the same way and have another length"
    most = max(apart, key=farthest)
    where = "texts of every kind"
    if len(apart) < len(compared):
        names = [f"“{kind.kind}”" for kind in sorted(apart, key=farthest, reverse=True)]
        where = f"{len(apart)} of {len(compared)} kinds of text, {', '.join(names[:NAMED])}"
        where += " and others" if len(names) > NAMED else ""
    return f"Other vectors for {where} (1 − cosine up to {most.worst:.2g}, for {quoted(most.worst_text)})"


def asked_for(role: str) -> str:
    """Queries, or documents."""
    return role.removeprefix("as ")


def _because(explanation: Explanation | None, where: str = "", *, is_all: bool = False, declared: str = "") -> str:
    """The explanation as further sentences, without the last full stop; empty if none was looked for.

    Args:
        where: of which texts it is, as the beginning of a sentence; empty for all but those that are asked for as such.
        is_all: whether it explains every text.
        declared: what config.json says otherwise, which no other use of the checkpoint makes up for.
    """
    if declared and (explanation is None or not explanation.is_complete):
        return f". Its config.json says otherwise how the network computes: {declared}"
    if explanation is None:
        return ""
    # Vectors of more numbers than the checkpoint's are held against nothing: what was found closest is close to none.
    is_near = explanation.is_complete or explanation.is_near
    if not explanation.sentences or np.isnan(explanation.worst) or not is_near:
        return f". {where}{'no' if where else 'No'} way to use the checkpoint that was tried gives such vectors"
    it = f"{where}it" if where else "It"
    because = "; it ".join(explanation.sentences)
    if explanation.is_complete:
        rounded = ", no more than half precision rounds" if explanation.is_rounded else ""
        whose = "its" if is_all else "those"
        return (
            f". {it} {because}: so used, the checkpoint gives {whose} vectors (1 − cosine at most "
            f"{explanation.worst:.1e}{rounded})"
        )
    rest = {kind: value for kind, value in explanation.left.items() if value > LEFT}
    kinds = sorted(rest, key=lambda kind: -rest[kind])
    left = f"leaves 1 − cosine up to {max(rest.values()):.2g} on {first_of(kinds, NAMED)}" if rest else ""
    return f". Closest: {within(it)} {because}, which {left}"


def _not_tried(explanation: Explanation | None) -> str:
    """What may explain a difference that nothing else does, as further sentences.

    Titles, sources and ids of another vocabulary are what clients send: a server that is asked here gets texts alone.
    """
    if explanation is None or explanation.is_complete:
        return ""
    header = f" {HEADERS_THAT_DIFFER}" if explanation.has_headers and not explanation.sentences else ""
    return header + (f" {explanation.untried}" if explanation.has_other_ids and explanation.untried else "")


def finding_of_asking(asked: BatchingCheck) -> Finding:
    """Whether a text asked in some way gets the vector that it gets alone."""
    difference = asked.difference
    how = asked.how.split()[-1]
    if asked.how == AGAIN and asked.cause and not asked.is_repeatable:
        return ASKED.finding(
            "problem",
            f"The same texts get other vectors {asked.cause} (1 − cosine up to {difference.worst:.2g}, for "
            f"{quoted(difference.worst_text)}, asked a second time).",
            "What is stored depends on when it was asked for.",
            asked.advice,
            value=difference.worst,
            how=how,
        )
    because = f" It {asked.cause}." if asked.cause else ""
    if difference.failures:
        place, reason = next(iter(difference.failures.items()))
        amount = len(difference.failures)
        get = "does not get the vector that it gets" if amount == 1 else "do not get the vectors that they get"
        return ASKED.finding(
            "problem",
            f"{amount} of {count(len(difference.texts), 'text')} asked {asked.how} {get} alone: "
            f"{quoted(difference.texts[place])}: {reason}.{because}",
            "Whether a text gets a vector depends on what else is asked.",
            asked.advice,
            value=float(amount),
            how=how,
        )
    if np.isnan(difference.worst) and asked.cause:
        return ASKED.finding(
            "not measured",
            f"Asked {asked.how}, {asked.cause}: what it would give so was not compared.",
            "OpenAI's client asks for base64, and takes lists as well; others may not.",
            asked.advice,
            how=how,
        )
    if np.isnan(difference.worst):
        return ASKED.finding(
            "not measured",
            f"Cannot tell whether a text asked {asked.how} gets the vector that it gets alone: none has a vector "
            "that can be compared.",
            advice="Look first at what is said of texts that are asked alone.",
            how=how,
        )
    is_rounding = difference.worst <= asked.rounding or rounds_as_half(difference.distances)
    level: Level = "ok" if difference.worst <= SAME else "look" if is_rounding else "problem"
    if level == "ok":
        return ASKED.finding(
            "ok",
            f"A text asked {asked.how} gets the vector that it gets alone (1 − cosine at most {difference.worst:.1e}).",
            value=difference.worst,
            how=how,
        )
    return ASKED.finding(
        level,
        f"A text asked {asked.how} gets another vector than alone (1 − cosine up to {difference.worst:.2g}, on "
        f"{quoted(difference.worst_text)}).{because}",
        "What is stored depends on what else is asked at the time.",
        asked.advice,
        value=difference.worst,
        how=how,
    )
