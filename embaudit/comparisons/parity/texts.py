"""What two functions are asked: texts by kind, each there because something breaks on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from embaudit.checkpoint import Checkpoint, TextKind
from embaudit.checkpoint.hard_texts import KINDS, WORDS, long_text
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
# Kinds whose texts are asked for as something, where both functions tell roles apart.
ROLES: dict[str, TextKind] = {"as queries": "query", "as documents": "document"}
IN_ROLES = (*KINDS["plain"], *KINDS["capitals"])
FILLERS = ("old", "a", "1", ".")
# Of another length in characters than WORDS: limits in tokens, words and characters are told apart by them.
SHORT_WORDS = ("to", "an", "of", "is", "by", "on", "it", "we", "as", "no")


def texts_by_kind(checkpoint: Checkpoint | None, *, in_roles: bool = False) -> dict[str, tuple[str, ...]]:
    """The texts by kind; long ones are made to the checkpoint's own limit in tokens, in words if there is none to ask.

    Args:
        in_roles: with some that are asked for as queries and as documents (``ROLES``).
    """
    long = dict(_long(checkpoint)) if checkpoint is not None else {"lengths": tuple(map(long_text, LENGTHS_IN_WORDS))}
    return {**KINDS, **MORE_KINDS, **long, **(dict.fromkeys(ROLES, IN_ROLES) if in_roles else {})}


def _long(checkpoint: Checkpoint) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Texts of many lengths below the limit, around it, and far beyond."""
    limit = min(checkpoint.max_length, LONGEST_TRIED)
    around = {length + by for length in USUAL_LIMITS for by in (-1, 0, 1, 2)}
    shorter = sorted(length for length in {24, 60, 100, *around} if length < limit)
    yield (
        "lengths",
        (
            *(text_of(checkpoint, length) for length in shorter),
            *(text_of(checkpoint, length, SHORT_WORDS) for length in shorter[-1:]),
        ),
    )
    if checkpoint.max_length >= NO_LIMIT:
        return
    if checkpoint.max_length <= LONGEST_TRIED:
        yield "at the limit", tuple(text_of(checkpoint, limit + by) for by in (-1, 0))
        beyond = sorted({limit + 1, limit + 2, limit * FAR_BEYOND, *(one for one in around if one > limit)})
        yield (
            "beyond the limit",
            (
                *(text_of(checkpoint, length) for length in beyond),
                text_of(checkpoint, limit * FAR_BEYOND, SHORT_WORDS),
            ),
        )


def text_of(checkpoint: Checkpoint, tokens: int, of: Sequence[str] = WORDS) -> str:
    """A text that would be read as this many tokens, special ones and prompt included, if nothing were cut.

    Every part of it is about something else, so that it matters which part is read.
    """
    room = tokens - len(checkpoint.with_special_tokens([]))
    words: list[str] = []

    def length(words: list[str]) -> int:
        return len(checkpoint.own_ids([" ".join(words)])[0])

    while (missing := room - length(words)) > 0:
        for place in range(len(words), len(words) + max(1, missing // 3)):
            words.append(f"{of[place % 10]} {place}." if place % 7 == 6 else of[place % 10])
    while words and length(words) > room:
        words.pop()
    # A word may have been several tokens; these are one each for most tokenizers.
    for filler in FILLERS:
        while length([*words, filler]) <= room:
            words.append(filler)
    return " ".join(words)
