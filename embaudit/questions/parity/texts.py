"""What two functions are asked: texts by kind, each there because something breaks on it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np

from embaudit.checkpoint import Checkpoint, TextKind
from embaudit.checkpoint.agreement import KINDS, WORDS, long_text
from embaudit.checkpoint.tokenizer import NO_LIMIT

MORE_KINDS: dict[str, tuple[str, ...]] = {
    # Clients strip texts or replace newlines by spaces.
    "newlines": ("gold\n", "\ngold", "The river is long.\nThe town is old.\n"),
    "forms of letters": ("ＡＢＣ １２３", "ﬁne ½ x² Ⅳ", "ÅNGSTRÖM Ångström"),
    "quotes and entities": ('She said "no" \\ twice', "Tom &amp; Ann &lt;3", "50% off %20 at C:\\temp"),
    "accents in words": ("Crème brûlée für Müller", "São Paulo, Málaga und Zürich"),
}
# Servers cut at these, whatever the checkpoint declares.
USUAL_LIMITS = (128, 256, 384, 512)
# A text beyond the declared limit has this many times as many tokens.
FAR_BEYOND = 2
# Longer texts would take minutes on a processor; without a limit, these are the longest.
LONGEST_TRIED = 1_024
# Where nobody's tokens can be counted: most tokenizers make a token or two of a word, so that texts end on both sides
# of the usual limits.
LENGTHS_IN_WORDS = (20, 50, 80, 100, 120, 150, 200, 260, 340, 420, 520, 700)
# Kinds whose texts are asked for as something, where both functions tell roles apart: some of every other kind, since a
# client may do to queries alone what others do to all texts. Nobody asks for a query without a word.
ROLES: dict[str, TextKind] = {"as queries": "query", "as documents": "document"}
IN_ROLES_PER_KIND = 3
# Kinds to name in a sentence.
NAMED = 4
NOT_IN_ROLES = ("blank", "empty")
# Texts of no kind, by what they are asked for as first: what is remembered of others tells nothing of them.
FRESH: dict[TextKind, tuple[str, ...]] = {
    "text": ("Seven swans crossed the frozen canal.", "Copper bells rang over the valley."),
    "query": ("Who painted the blue gate behind the mill?", "when does the ferry leave from pier nine"),
    "document": ("Grandmother keeps spare buttons in a tin.", "The orchard was sold to a brewer."),
}
FILLERS = ("old", "a", "1", ".")
# Of another length in characters than WORDS: limits in tokens, words and characters are told apart by them.
SHORT_WORDS = ("to", "an", "of", "is", "by", "on", "it", "we", "as", "no")


def texts_by_kind(checkpoint: Checkpoint | None, *, roles: Collection[TextKind] = ()) -> dict[str, tuple[str, ...]]:
    """The texts by kind; long ones are made to the checkpoint's own limit in tokens, in words if there is none to ask.

    Args:
        roles: with some that are asked for as queries, or as documents (``ROLES``).
    """
    long = dict(_long(checkpoint)) if checkpoint is not None else {"lengths": tuple(map(long_text, LENGTHS_IN_WORDS))}
    kinds = {**KINDS, **MORE_KINDS, **long}
    if not roles:
        return kinds
    some = dict.fromkeys(
        texts[place]
        for kind, texts in kinds.items()
        if kind not in NOT_IN_ROLES
        for place in spread(np.arange(len(texts)), IN_ROLES_PER_KIND)
    )
    return {**kinds, **{kind: tuple(some) for kind, role in ROLES.items() if role in roles}}


def spread(places: np.ndarray, most: int) -> np.ndarray:
    """At most so many of them, evenly spread."""
    return places[np.unique(np.linspace(0, len(places) - 1, most).astype(int))] if len(places) else places


def _long(checkpoint: Checkpoint) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Texts of many lengths below the limit, around it, and far beyond."""
    limit = min(checkpoint.max_length, LONGEST_TRIED)
    around = {length + by for length in USUAL_LIMITS for by in (-1, 0, 1, 2)}
    shorter = sorted(length for length in {24, 60, 100, *around} if length < limit)
    known: dict[int, int] = {}
    yield (
        "lengths",
        (
            *(text_of(checkpoint, length, known=known) for length in shorter),
            *(text_of(checkpoint, length, SHORT_WORDS) for length in shorter[-1:]),
        ),
    )
    if checkpoint.max_length >= NO_LIMIT:
        return
    if checkpoint.max_length <= LONGEST_TRIED:
        yield "at the limit", tuple(text_of(checkpoint, limit + by, known=known) for by in (-1, 0))
        beyond = sorted({limit + 1, limit + 2, limit * FAR_BEYOND, *(one for one in around if one > limit)})
        yield (
            "beyond the limit",
            (
                *(text_of(checkpoint, length, known=known) for length in beyond),
                text_of(checkpoint, limit * FAR_BEYOND, SHORT_WORDS),
            ),
        )


def text_of(checkpoint: Checkpoint, tokens: int, of: Sequence[str] = WORDS, known: dict[int, int] | None = None) -> str:
    """A text that would be read as this many tokens, special ones and prompt included, if nothing were cut.

    Every part of it is about something else, so that it matters which part is read.

    Args:
        known: how many tokens the first so many words are, for whoever asks for several texts.
    """
    room = tokens - len(checkpoint.with_special_tokens([]))

    def length(words: list[str]) -> int:
        return len(checkpoint.own_ids([" ".join(words)])[0])

    words, found = _as_many_as_fit(room, of, length, {} if known is None else known)
    # A word may have been several tokens; these are one each for most tokenizers.
    for filler in FILLERS:
        while found < room and (longer := length([*words, filler])) <= room:
            words, found = [*words, filler], longer
    return " ".join(words)


def _as_many_as_fit(
    room: int, of: Sequence[str], length: Callable[[list[str]], int], known: dict[int, int]
) -> tuple[list[str], int]:
    """The most words that are no more tokens than there is room for, and how many tokens they are.

    Most words are about as many tokens as others: a line through two lengths meets the third.
    """

    def count(number: int) -> int:
        if number not in known:
            known[number] = length(_words(number, of))
        return known[number]

    count(0)
    low = max((number for number in known if known[number] <= room), default=0)
    high = min((number for number in known if number > low and known[number] > room), default=None)
    while high is None:
        further = low + max(1, room - count(low))
        low, high = (low, further) if count(further) > room else (further, None)
    for half in itertools.cycle((False, False, True)):
        if high - low <= 1:
            break
        share = 0.5 if half else (room + 0.5 - count(low)) / (count(high) - count(low))
        middle = low + min(max(1, int(share * (high - low))), high - low - 1)
        low, high = (middle, high) if count(middle) <= room else (low, middle)
    return _words(low, of), count(low)


def _words(number: int, of: Sequence[str]) -> list[str]:
    return [f"{of[place % 10]} {place}." if place % 7 == 6 else of[place % 10] for place in range(number)]
