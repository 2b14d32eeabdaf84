"""What of a passport can be held against another function: queries and documents as such, or texts alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from embaudit.comparisons.parity.roles import UNTOLD, does_otherwise
from embaudit.comparisons.parity.texts import ROLES
from embaudit.comparisons.passport.canaries import asked_as_well
from embaudit.comparisons.passport.passport import Passport
from embaudit.finding import Finding
from embaudit.functions.function import Answers, EmbeddingFunction


def roles_of_its_own(function: EmbeddingFunction) -> list[str]:
    """The kinds that a function is asked for in another way than for texts."""
    return [kind for kind, role in ROLES.items() if function.alike(role) != "text"]


def comparable(passport: Passport, other: EmbeddingFunction) -> Passport:
    """The passport with those canaries in roles that the other can be asked for.

    A checkpoint that puts nothing before queries gives them its texts' vectors, so that its passport knows these.
    """
    if not other.takes_roles:
        return passport.without(ROLES)
    new = roles_of_its_own(other)
    return passport if passport.has_roles or not passport.takes_all_alike else asked_as_well(passport, new)


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
    return Finding("not measured", sentence, advice=advice, name=UNTOLD)
