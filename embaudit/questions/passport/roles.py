"""What of a passport can be held against another function: queries and documents as such, or texts alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from embaudit.declared.rule import Finding
from embaudit.embedders.function import Answers, AsDocuments, EmbeddingFunction
from embaudit.questions.parity.compare import HALF, apart
from embaudit.questions.parity.named_prompts import TOLD_BY, told_of_prompt
from embaudit.questions.parity.roles import UNTOLD, does_otherwise
from embaudit.questions.parity.texts import ROLES
from embaudit.questions.passport.canaries import asked_as_well
from embaudit.questions.passport.passport import Passport, PromptNotPicked
from embaudit.words.errors import EmbauditError


def roles_of_its_own(function: EmbeddingFunction) -> list[str]:
    """The kinds that a function is asked for in another way than for texts."""
    return [kind for kind, role in ROLES.items() if function.alike(role) != "text"]


def as_named(passport: Passport, other: EmbeddingFunction) -> tuple[Passport, tuple[Finding, ...]]:
    """The passport with those prompts that the other one puts, of those that nothing picks, and what to know of it."""
    # Whoever is asked for texts alone puts nothing.
    if not other.takes_roles:
        return passport, ()
    put = [one for one in passport.not_picked if _puts(one, other)]
    if not put:
        return passport, ()
    of_roles = [kind for kind, role in ROLES.items() if role in [one.role for one in put]]
    rest = [] if passport.has_roles else [kind for kind in ROLES if kind not in of_roles]
    others = asked_as_well(passport, rest).without(of_roles).canaries
    prompted = [canary for one in put for canary in one.canaries if canary.text not in TOLD_BY]
    findings = tuple(told_of_prompt(one.role, one.name, one.prompt, other) for one in put)
    return passport.model_copy(update={"canaries": (*others, *prompted)}), findings


def _puts(prompt: PromptNotPicked, other: EmbeddingFunction) -> bool:
    """Whether the other's vectors of a few texts in a role are those with that prompt."""
    told_by = [canary for canary in prompt.canaries if canary.text in TOLD_BY]
    try:
        theirs = other.encode([canary.text for canary in told_by], prompt.role, most=1).vectors
    except EmbauditError:
        return False
    ours = np.array([canary.numbers for canary in told_by])
    return theirs.shape == ours.shape and bool(np.nan_to_num(apart(theirs, ours), nan=2.0).max() <= HALF)


def comparable(passport: Passport, other: EmbeddingFunction) -> tuple[Passport, EmbeddingFunction]:
    """The passport with those canaries in roles that the other can be asked for, and the other as it is asked.

    A checkpoint that puts nothing before queries gives them its texts' vectors, so that its passport knows these.
    If one of them has no way for texts that are neither query nor document, these are left out.
    """
    if not other.takes_roles:
        return passport.without(ROLES), other
    if not passport.has_roles:
        new = roles_of_its_own(other)
        return (asked_as_well(passport, new) if passport.takes_all_alike else passport), other
    is_of_a_checkpoint = bool(passport.checkpoint.weights_sha256)
    if passport.takes_texts_as_documents:
        # A checkpoint's declaration says so of its texts; of an object, that it has no other way for them.
        is_told_apart = other.takes_plain_texts and other.alike("document") != "text"
        return passport, AsDocuments(other) if is_told_apart and not is_of_a_checkpoint else other
    return passport if other.takes_plain_texts else passport.of_documents(), other


def untold_roles(passport: Passport, other: EmbeddingFunction, theirs: Mapping[str, Answers]) -> Iterator[Finding]:
    """What a comparison of texts alone leaves open.

    Args:
        passport: as it was made.
        theirs: the other's vectors of its canaries, by kind.
    """
    if passport.has_roles:
        if not other.takes_roles:
            yield _not_compared("It is asked for texts alone", "Put the prompts before them that it names.")
        return
    new = roles_of_its_own(other)
    if not new or passport.takes_all_alike:
        return
    if passport.checkpoint.weights_sha256:
        yield _not_compared("The passport holds texts alone", "Make it again: it holds them, too, now.")
        return
    own = {
        canary.text: row
        for kind, some in passport.kinds.items()
        for canary, row in zip(some, theirs[kind].vectors, strict=True)
    }
    yield from does_otherwise(other, new, own, "the passport is of a function that takes all texts alike")


def _not_compared(why: str, advice: str) -> Finding:
    sentence = f"{why}, so what queries and documents get as such was not compared."
    return UNTOLD.finding("not measured", sentence, advice=advice)
