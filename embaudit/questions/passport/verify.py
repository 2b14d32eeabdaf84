"""Is another the function of a passport? It is asked for the canaries alone and, an endpoint, in a batch and as base64.

Needs no torch for an endpoint. What follows from differences is what ``parity`` says of them.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from embaudit.declared.document import Page
from embaudit.declared.rule import Finding
from embaudit.embedders.function import Answers, EmbeddingFunction
from embaudit.questions.parity.asking import (
    AGAIN,
    BatchingCheck,
    ask_for_base64,
    ask_in_a_batch,
    confirmed,
    held_to_alone,
    still_the_same,
)
from embaudit.questions.parity.compare import (
    HALF,
    LEFT,
    ROLES,
    SAME,
    SAME_LENGTH,
    KindDifference,
    apart,
    compare_kind,
    is_apart,
    is_rounding,
    moved,
    rounding_of,
)
from embaudit.questions.parity.findings import ANOTHER, findings_of
from embaudit.questions.parity.parity import ParityReport, asked_alone
from embaudit.questions.parity.requested import NOT_NORMALISED, forms_of, ignored_dimensions
from embaudit.questions.parity.without_vector import SteadyControl, requests_of
from embaudit.questions.passport.page import passport_page
from embaudit.questions.passport.passport import Passport
from embaudit.questions.passport.roles import as_named, comparable, probable_cause, untold_roles

# Longer canaries would make a batch slow; beside a text of so many tokens, shorter ones show what padding does.
LONGEST_IN_BATCH = 32
# Requests for one text each that an endpoint gets at a time.
AT_ONCE = 4
TOGETHER = f"while {AT_ONCE - 1} others are"
# Texts that are asked for again in that encoding.
IN_BASE64 = 3


@dataclass(frozen=True, kw_only=True)
class PassportReport(ParityReport):
    """What came of a verification; of a comparison's fields, explanations and ``corpora`` stay empty.

    Attributes:
        passport: what the other was held against.
        differing: the kinds of which some canary gets another vector, or none though nobody would refuse it.
        probable: what the pattern of differences tells, as a sentence; empty if nothing.
    """

    passport: Passport
    differing: tuple[str, ...]
    probable: str

    def page(self) -> Page:
        return passport_page(self)

    def content(self) -> dict[str, Any]:
        content = super().content()
        for name in ("explanation", "in_roles", "corpora"):
            del content[name]
        return content | {"differing": list(self.differing), "probable": self.probable}


def verify_with(passport: Passport, other: EmbeddingFunction) -> PassportReport:
    """Hold another function against a passport.

    Raises:
        EmbauditError: if it gives no vectors at all.
    """
    start = time.monotonic()
    made = passport
    if other.asked_dimensions is not None:
        passport = passport.cut_to(other.asked_dimensions)
    passport, by_name = as_named(passport, other)
    passport, other = comparable(passport, other)
    theirs, asked = _asked(passport, other)
    kinds = _compared(passport, theirs)
    dimensions = passport.reading.dimension, next(iter(theirs.values())).vectors.shape[1]
    # What is another vector the next time has no cause that a pattern could tell.
    is_steady = not any(one.how in (TOGETHER, AGAIN) and one.difference.worst > HALF for one in asked)
    is_cut = passport.reading.dimension < made.reading.dimension
    probable = _probable(passport, kinds, theirs, is_cut=is_cut) if is_steady else ""
    return PassportReport(
        checkpoint=passport.checkpoint.source,
        checkpoint_id=passport.checkpoint.id,
        other=other.name,
        kinds=tuple(kinds),
        asked=tuple(asked),
        dimensions=dimensions,
        seconds=time.monotonic() - start,
        requests=other.requests,
        findings=(
            *ignored_dimensions(other, dimensions[1]),
            *(
                _told(finding, probable, _command(passport, other.typed))
                for finding in findings_of(kinds, dimensions, None, asked, "passport")
            ),
            *untold_roles(made, other, theirs),
            *by_name,
        ),
        passport=passport,
        differing=tuple(_differing(kinds, dimensions)),
        reach=_reach(passport, theirs),
        probable=probable,
    )


def _asked(passport: Passport, other: EmbeddingFunction) -> tuple[dict[str, Answers], list[BatchingCheck]]:
    """The other's vectors of each canary alone, and whether an endpoint's depend on how it is asked.

    An endpoint gets some requests at a time, which is faster; if a vector is not the passport's, one after the other.
    """
    texts = {kind: [canary.text for canary in some] for kind, some in passport.kinds.items()}
    if not other.may_depend_on_asking:
        return asked_alone(other, texts), []
    asked: list[BatchingCheck] = []
    theirs = asked_alone(other, texts, at_once=AT_ONCE)
    kinds = _compared(passport, theirs)
    log = requests_of(texts, theirs, 0, -1)
    if any(_is_off(kind) for kind in kinds) and not is_rounding(kinds):
        first = other.requests
        together, theirs = _every(theirs), asked_alone(other, texts)
        every, kinds = [canary.text for some in passport.kinds.values() for canary in some], _compared(passport, theirs)
        log = requests_of(texts, theirs, first + 1, other.requests - first)
        # What is asked one after the other was asked a second time.
        how = TOGETHER if other.takes_many_at_once else AGAIN
        held = BatchingCheck(how, _held(every, _every(theirs), together), rounding=rounding_of(kinds))
        moved = still_the_same(other, log) if held.is_off else None
        if moved is not None:
            return theirs, [moved]
        if held.is_off and other.takes_many_at_once:
            # What was asked for together is asked so once more: it may have been another model then.
            beside = asked_alone(other, texts, at_once=AT_ONCE)
            if not _held(every, _every(theirs), _every(beside)).worst > HALF:
                held = replace(held, how=AGAIN, cause="after the first requests")
        asked.append(held)
        if not held.is_repeatable:
            return theirs, asked
    batch = _batch(passport, theirs)
    if batch:
        some, alone, rounding = list(batch), np.array(list(batch.values())), rounding_of(kinds)
        control = SteadyControl(other, log, rounding)
        for way in (
            lambda: ask_in_a_batch(other, some, alone, rounding=rounding),
            lambda: next(ask_for_base64(other, some[:IN_BASE64], alone[:IN_BASE64], rounding), None),
        ):
            found = confirmed(way, control)
            asked += [] if found is None else [found]
    moved = still_the_same(other, log)
    return theirs, [moved] if moved is not None else asked


def _held(texts: Sequence[str], alone: Answers, together: Answers) -> KindDifference:
    """The difference to each text's vector alone, of the texts that have one."""
    known = np.flatnonzero(np.isfinite(alone.vectors).all(axis=1)).tolist()
    failures = {place: together.failures[kept] for place, kept in enumerate(known) if kept in together.failures}
    return held_to_alone(
        [texts[place] for place in known], alone.vectors[known], Answers(together.vectors[known], failures)
    )


def _every(answers: Mapping[str, Answers]) -> Answers:
    """Those of all kinds, one after the other."""
    failures: dict[int, str] = {}
    start = 0
    for some in answers.values():
        failures |= {start + place: reason for place, reason in some.failures.items()}
        start += len(some.vectors)
    return Answers(np.concatenate([some.vectors for some in answers.values()]), failures)


def _compared(passport: Passport, theirs: Mapping[str, Answers]) -> list[KindDifference]:
    return [
        compare_kind(
            kind,
            [canary.text for canary in some],
            np.array([canary.numbers for canary in some]),
            theirs[kind].vectors,
            theirs[kind].failures,
        )
        for kind, some in passport.kinds.items()
    ]


def _is_off(kind: KindDifference) -> bool:
    """Whether some text has another vector, NaN, or a failure that is no refusal."""
    lacking = set(np.flatnonzero(np.isnan(kind.distances)).tolist())
    return (
        is_apart(kind) or lacking > kind.failures.keys() or any("status 4" not in why for why in kind.failures.values())
    )


def _batch(passport: Passport, theirs: Mapping[str, Answers]) -> dict[str, np.ndarray]:
    """Of each kind the longest of the short canaries that have a vector alone, and that."""
    chosen: dict[str, np.ndarray] = {}
    for kind, some in passport.without(ROLES).kinds.items():
        vectors = theirs[kind].vectors
        short = [
            place
            for place, canary in enumerate(some)
            if canary.tokens <= LONGEST_IN_BATCH and vectors.size and np.isfinite(vectors[place]).all()
        ]
        if short:
            longest = max(short, key=lambda place: some[place].tokens)
            chosen[some[longest].text] = vectors[longest]
    return chosen


def _reach(passport: Passport, theirs: Mapping[str, Answers]) -> str:
    """Up to where it was tried, as the end of "the same function"; empty if that is all that is declared.

    Args:
        theirs: the other's vectors of the canaries, by kind; of what it refuses, nothing was tried.
    """
    tried = [
        canary.tokens
        for kind, some in passport.kinds.items()
        for place, canary in enumerate(some)
        if place not in theirs[kind].failures
    ]
    declared, longest = passport.reading.max_length, max(tried, default=0)
    is_known = bool(passport.checkpoint.weights_sha256)
    is_all = declared is not None and longest >= declared
    return "" if is_all or not is_known else f" for texts of up to {longest:,} tokens, the longest that were tried"


def _differing(kinds: Sequence[KindDifference], dimensions: tuple[int, int]) -> list[str]:
    has_moved = {kind.kind for kind in (kinds if dimensions[0] != dimensions[1] else moved(kinds))}
    found = []
    for kind in kinds:
        problems = {one.name for one in findings_of([kind], dimensions, None, ()) if one.level == "problem"}
        if kind.kind in has_moved or problems - {ANOTHER.name}:
            found.append(kind.kind)
    return found


def _probable(
    passport: Passport, kinds: Sequence[KindDifference], theirs: Mapping[str, Answers], *, is_cut: bool = False
) -> str:
    """What the differences have in common, as a sentence; empty if nothing.

    Args:
        is_cut: whether it was asked for fewer dimensions than the checkpoint has.
    """
    differ = [kind.kind for kind in moved(kinds)]
    if differ and ROLES.keys() >= set(differ):
        if all(kind.worst <= SAME for kind in kinds if kind.kind in differ):
            return f"Only the length of what is asked for {' and '.join(differ)} differs: it is normalised otherwise."
        return f"Only what is asked for {' and '.join(differ)} differs: probably a prompt, or a step of the client."
    passport, kinds = passport.without(ROLES), [kind for kind in kinds if kind.kind not in ROLES]
    theirs = {kind.kind: theirs[kind.kind] for kind in kinds}
    canaries = [canary for some in passport.kinds.values() for canary in some]
    ours, given = np.array([canary.numbers for canary in canaries]), _every(theirs).vectors
    width = given.shape[1]
    form = forms_of({"every": given}, passport.reading.dimension)[0]
    if form.said:
        return f"It {form.said}."
    if width != ours.shape[1]:
        distances = apart(ours[:, :width], given) if 0 < width < ours.shape[1] else np.array([np.nan])
        is_cut = np.isfinite(distances).any() and np.nanmax(distances) <= LEFT
        return f"It gives the first {width} of {ours.shape[1]} dimensions." if is_cut else ""
    if is_rounding(kinds):
        return ""
    distances, ratios = (np.concatenate([getattr(kind, name) for kind in kinds]) for name in ("distances", "ratios"))
    known = np.isfinite(distances)
    turned = known & (distances > SAME)
    stretched = known & (np.abs(ratios - 1) > SAME_LENGTH)
    if stretched.any() and not turned.any():
        lengths = np.linalg.norm(given[known], axis=1)
        if is_cut and passport.reading.is_normalised and np.ptp(lengths) > SAME_LENGTH:
            return f"It {NOT_NORMALISED}."
        return _length_cause(passport, lengths)
    compared = [canary for canary, is_known in zip(canaries, known, strict=True) if is_known]
    return probable_cause(
        compared, (turned | stretched)[known], passport.reading.max_length, passport.reading.counted_in
    )


def _length_cause(passport: Passport, lengths: np.ndarray) -> str:
    """Of vectors that point where they should and are longer or shorter."""
    if passport.reading.is_normalised:
        return "Probably Normalize is left out, or vectors are scaled."
    is_unit = np.abs(lengths - 1).max() <= SAME_LENGTH
    return "Probably its vectors are normalised." if is_unit else ""


def _command(passport: Passport, other: str) -> str:
    """What searches the reason of a difference."""
    asked = passport.settings
    options = {"--pooling": asked.pooling, "--max-length": asked.max_length, "--prompt": asked.prompt}
    given = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    return shlex.join(["embaudit", "parity", passport.checkpoint.source, "--with", other, *given])


def _told(finding: Finding, probable: str, command: str) -> Finding:
    """The finding that it is another function, with what is probable, and how to be sure."""
    if finding.name != ANOTHER.name:
        return finding
    return replace(
        finding,
        sentence=f"{finding.sentence} {probable}".rstrip(),
        meaning="What the passport's checkpoint has indexed cannot be searched with it.",
        advice=f"For the reason: {command}",
    )
