"""How far two functions are apart, by kind of text.

Which differences between two functions count, and which are rounding.

What two functions are asked: texts by kind, each there because something breaks on it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Checkpoint, TextKind
from embaudit.checkpoint.agreement import KINDS, WORDS, long_text
from embaudit.checkpoint.tokenizer import NO_LIMIT
from embaudit.corpora.downstream import unit_rows

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


# 1 − cosine up to here is rounding in float32; up to the second, rounding in half precision.
SAME, HALF = 1e-5, 2e-3
# Of a vector's length, relative to the other's.
SAME_LENGTH = 1e-3
# The same in half precision: a length that bfloat16 divides by is rounded to 8 bits, and so is what comes out.
HALF_LENGTH = 2**-7
# 1 − cosine that an explanation may leave, and what the very reading leaves: one token of a long text leaves more.
LEFT, EXACT = 1e-4, 1e-9
# Half precision moves some kinds of text more than others, and none by so many times what it moves most of them.
UNEVEN = 100
# Of one text, two vectors in half precision may be so many times as far apart as one of them is from float32's.
SPREAD = 10


@dataclass(frozen=True)
class KindDifference:
    """Two functions on the texts of one kind.

    Attributes:
        distances: (n,) 1 − cosine, 0 where both are zeros; NaN where one of them has no vector.
        ratios: (n,) the other's length / the checkpoint's; NaN where one of them has no vector.
        is_known: (n,) whether the checkpoint has one.
        failures: why the other has no vector, by text.
        zeros: the texts of which the other's vector is zeros.
    """

    kind: str
    texts: tuple[str, ...]
    distances: np.ndarray
    ratios: np.ndarray
    is_known: np.ndarray
    failures: Mapping[int, str]
    zeros: frozenset[int] = frozenset()

    def is_zero(self, place: int) -> bool:
        """Whether the other's vector of a text is zeros."""
        return place in self.zeros

    @property
    def worst(self) -> float:
        """The largest 1 − cosine; NaN if no text has a vector on both sides."""
        return float(np.nanmax(self.distances)) if np.isfinite(self.distances).any() else float("nan")

    @property
    def median(self) -> float:
        return float(np.nanmedian(self.distances)) if np.isfinite(self.distances).any() else float("nan")

    @property
    def worst_text(self) -> str:
        """The text whose vectors are farthest apart."""
        return self.texts[int(np.nanargmax(self.distances))] if np.isfinite(self.distances).any() else ""

    def as_json(self) -> dict[str, object]:
        return {
            "kind": self.kind,
            "texts": len(self.texts),
            "median": _number(self.median),
            "worst": _number(self.worst),
            "worst_text": self.worst_text,
            "length_ratio": _number(float(np.nanmedian(self.ratios)) if np.isfinite(self.ratios).any() else np.nan),
            "failures": {self.texts[place]: reason for place, reason in self.failures.items()},
        }


def compare_kind(
    kind: str, texts: Sequence[str], ours: np.ndarray, theirs: np.ndarray, failures: Mapping[int, str]
) -> KindDifference:
    """Compare (n, D) vectors of the same texts; of another dimension, nothing but failures is compared."""
    distances = ratios = np.full(len(texts), np.nan)
    if ours.shape == theirs.shape:
        distances = apart(ours, theirs)
        own, other = (np.linalg.norm(rows, axis=1) for rows in (ours, theirs))
        # A static model gives zeros for a text without a token that it knows: so does the same one elsewhere.
        distances = np.where((own == 0) & (other == 0), 0.0, distances)
        # Zeros where there should be a vector are none: that is said, and no other length.
        ratios = np.where((own > 0) & (other > 0), other / own.clip(min=1e-30), np.nan)
    zeros = frozenset(np.flatnonzero(~theirs.any(axis=1)).tolist()) if theirs.shape[1:] > (0,) else frozenset[int]()
    return KindDifference(kind, tuple(texts), distances, ratios, np.isfinite(ours).all(axis=1), failures, zeros)


def rounds_as_half(largest: np.ndarray) -> bool:
    """Whether differences are those of half precision: no larger, everywhere, and nowhere much larger than elsewhere.

    A defect moves some texts and leaves others as they are in float32; half precision leaves none of them so.

    Args:
        largest: (n,) 1 − cosine of texts, or the largest of several texts of a kind.
    """
    known = largest[np.isfinite(largest)]
    return bool(len(known) and known.max() <= HALF and known.min() > EXACT and known.max() <= UNEVEN * np.median(known))


def rounding_of(kinds: Sequence[KindDifference]) -> float:
    """Up to where two of the other's vectors of one text differ by rounding alone.

    It is told from how far each text alone is from the checkpoint's in float32, not from the other's vectors
    themselves: in half precision, many of them come out bit for bit whatever they are asked beside, and some do not.
    """
    worst = max((kind.worst for kind in kinds if np.isfinite(kind.worst)), default=HALF)
    return float(np.clip(SPREAD * worst, SAME, HALF))


def apart(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(…, N) 1 − cosine of corresponding rows of (…, N, D), in float64; NaN where one has NaN or is zero."""
    one, two = (unit_rows(np.asarray(rows, dtype=np.float64)) for rows in (first, second))
    is_zero = (np.linalg.norm(one, axis=-1) < 0.5) | (np.linalg.norm(two, axis=-1) < 0.5)
    # Half the squared distance of unit vectors keeps its digits where 1 − cosine loses them.
    return np.asarray(np.where(is_zero, np.nan, ((one - two) ** 2).sum(axis=-1) / 2))


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def is_apart(kind: KindDifference) -> bool:
    """Whether some text's vectors differ, in direction or in length."""
    ratios = kind.ratios[np.isfinite(kind.ratios)]
    return bool(kind.worst > SAME) or bool(len(ratios) and np.abs(ratios - 1).max() > SAME_LENGTH)


def is_rounding(kinds: Sequence[KindDifference]) -> bool:
    """Whether differences are small, and on all kinds of about one size: a defect moves some kinds and not others."""
    compared = [kind for kind in kinds if np.isfinite(kind.distances).any()]
    if not compared:
        return False
    ratios = np.concatenate([kind.ratios for kind in compared])
    largest = np.array([kind.worst for kind in compared])
    return bool(np.nanmax(np.abs(ratios - 1)) <= HALF_LENGTH) and rounds_as_half(largest)


def _is_rounding_of_texts(kinds: Sequence[KindDifference]) -> bool:
    """The same; of one kind alone, of its texts, each taken by itself."""
    if len(kinds) > 1:
        return is_rounding(kinds)
    (kind,) = kinds
    ratios = kind.ratios[np.isfinite(kind.ratios)]
    is_long_enough = bool(len(ratios)) and bool(np.abs(ratios - 1).max() <= HALF_LENGTH)
    return is_long_enough and rounds_as_half(kind.distances)


def moved(kinds: Sequence[KindDifference]) -> list[KindDifference]:
    """The kinds that differ by more than rounding; queries, or documents, may be rounded alone."""
    if is_rounding(kinds):
        return []
    plainly = [kind for kind in kinds if kind.kind not in ROLES]
    groups = [plainly, *([kind] for kind in kinds if kind.kind in ROLES)]
    rounded = {kind.kind for some in groups if some and _is_rounding_of_texts(some) for kind in some}
    return [kind for kind in kinds if is_apart(kind) and kind.kind not in rounded]


def farthest(kind: KindDifference) -> float:
    """How far it is, to sort by: a kind without a vector is not."""
    return float(np.nan_to_num(kind.worst))


def number(distance: float) -> str:
    """``.021``; ``3e-05`` for what would be .000."""
    return f"{distance:.3f}".replace("0.", ".", 1) if distance >= 0.0005 else f"{max(distance, 0.0):.0e}"
