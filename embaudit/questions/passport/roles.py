"""What of a passport can be held against another function: queries and documents as such, or texts alone.

What is probable, if some canaries' vectors differ and others do not.

A cause moves the texts that have something (capitals, accents, more tokens than a limit) and no other. It is probable
if every canary that moved has it, and most of those that have it moved; of several, the one of which most moved.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from embaudit.declared.rule import Finding
from embaudit.embedders.function import Answers, AsDocuments, EmbeddingFunction
from embaudit.questions.parity.compare import HALF, ROLES, apart
from embaudit.questions.parity.roles import TOLD_BY, UNTOLD, does_otherwise, told_of_prompt
from embaudit.questions.passport.make import asked_as_well
from embaudit.questions.passport.passport import Canary, Passport, PromptNotPicked
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


# A cause may leave so many of its texts as they are: it can have no effect on some.
MOST = 0.5
# From here on, it is something that every text has.
NEARLY_ALL = 0.9
SPECIAL = re.compile(r"\[[A-Z]{3,}\]|</?s>|<\|\w+\|>|<(mask|pad)>")


def _has_accents(text: str) -> bool:
    """Whether something in it is composed of a letter and a mark, or could be."""
    return unicodedata.normalize("NFD", text) != text or any(unicodedata.combining(letter) for letter in text)


def _has(*categories: str) -> Callable[[str], bool]:
    """Whether a text has characters of Unicode categories, newlines and tabs aside."""
    return lambda text: any(
        unicodedata.category(letter).startswith(categories) for letter in text if letter not in "\n\t"
    )


# Each as the end of "Probably, …", narrow ones first.
CAUSES: Mapping[str, Callable[[str], bool]] = {
    "special tokens in texts are read otherwise, as letters or as such": lambda text: bool(SPECIAL.search(text)),
    "control characters are dropped or replaced": _has("Cc", "Cf"),
    "newlines are replaced, or only the first line is read": lambda text: "\n" in text,
    "white space is stripped or merged": lambda text: text != " ".join(text.split()),
    "HTML or entities are escaped or unescaped on the way": lambda text: bool(re.search("[&<>]", text)),
    "characters outside the basic plane (emoji) are lost": lambda text: any(ord(letter) > 0xFFFF for letter in text),
    "accents are kept or stripped otherwise": _has_accents,
    "another Unicode normalisation is applied": lambda text: unicodedata.normalize("NFKC", text) != text,
    "letters outside ASCII are dropped, or read in another encoding": lambda text: not text.isascii(),
    "lower-casing is lost or added": lambda text: text != text.lower(),
    "punctuation is dropped or replaced": lambda text: bool(re.search(r"[^\w\s]", text)),
    "lower-casing is lost, and accents are kept": lambda text: text != text.lower() or _has_accents(text),
}


def probable_cause(
    canaries: Sequence[Canary], moved: np.ndarray, max_length: int | None, counted_in: str = "tokens"
) -> str:
    """One sentence; empty if the pattern tells nothing.

    Args:
        canaries: those that have a vector on both sides.
        moved: (n,) whether the vectors differ by more than rounding.
        max_length: how many tokens are read of a text; None: all.
        counted_in: what the canaries' lengths are counted in.
    """
    if not moved.any():
        return ""
    if limit := _limit(np.array([canary.tokens for canary in canaries]), moved, max_length, counted_in):
        return limit
    if moved.mean() >= NEARLY_ALL:
        return "Probably pooling, a prompt, special tokens or other weights: texts of every kind differ."
    shares: dict[str, float] = {}
    for cause, is_concerned in CAUSES.items():
        concerned = np.array([is_concerned(canary.text) for canary in canaries])
        if not (moved & ~concerned).any():
            shares[cause] = float(moved[concerned].mean())
    best = max(shares, key=lambda cause: shares[cause], default=None)
    return f"Probably, {best}." if best is not None and shares[best] >= MOST else ""


def _limit(tokens: np.ndarray, moved: np.ndarray, max_length: int | None, counted_in: str) -> str:
    """If every text from some length on moved, and no shorter one did."""
    same, other = tokens[~moved], tokens[moved]
    if not len(same) or same.max() >= other.min():
        return ""
    if max_length is not None and counted_in == "tokens" and other.min() > max_length:
        return (
            f"Probably another limit than the declared {max_length} tokens: only texts beyond it differ. It reads more "
            "of them, their other end, or windows."
        )
    if not (tokens > other.min()).any():
        return ""
    return (
        f"Probably a limit below {other.min():,} {counted_in}: texts of up to {same.max():,} {counted_in} are as they "
        "should be."
    )
