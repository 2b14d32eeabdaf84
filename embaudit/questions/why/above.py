"""Who stands above a row, and what makes each of them odd: copies, nearly copies, headings, hubs, nothing to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from embaudit.measures.quality.measured import words_of

Kind = Literal["", "copy", "near copy", "no content", "few words", "hub"]
COPIES: tuple[Kind, ...] = ("copy", "near copy")
ODD: tuple[Kind, ...] = (*COPIES, "no content", "few words", "hub")
# What one of a kind is, and several are.
CALLED: Mapping[Kind, tuple[str, str]] = {
    "copy": ("copy of another", "copies of others"),
    "near copy": ("near copy of another", "near copies of others"),
    "no content": ("without content",) * 2,
    "few words": ("of a few words",) * 2,
    "hub": ("in everybody's results",) * 2,
}
# Of everybody's results: a row that stands in so many is a hub, if chance would put it into a fifth of these at most.
HUB, CHANCE = 0.05, 5.0
# Revisions of one document: their vectors are so near to each other, or so many of their words are the same.
NEAR, SAME_WORDS, FEWEST_WORDS = 0.95, 0.75, 8
# A heading among texts: so few words, where the store's texts have so many times as many.
FEW_WORDS, TIMES = 5, 4


@dataclass(frozen=True)
class RowAbove:
    """A row that exact search ranks above the expected one.

    Attributes:
        in_results: of other queries, the share that has it among its first ten.
        kind: what makes it odd: ``copy`` and ``near copy`` are of one that stands above it, ``few words`` is a heading
            among texts; empty for nothing.
        number: of the row among those that are ranked; −1 if that is not known.
    """

    id: str
    text: str | None
    score: float
    in_results: float
    kind: Kind = ""
    number: int = -1


@dataclass(frozen=True)
class AboveAmong:
    """What rows above are compared with.

    Attributes:
        queries: of other rows, whose results are known.
        rows: that are ranked.
        words: of a usual text in the store; 0 if that is not known.
        vectors: of rows above, by number, as far as they are known.
        near: the cosine from which on two of them are revisions of one document.
    """

    queries: int
    rows: int
    words: float = 0.0
    vectors: Mapping[int, np.ndarray] | None = None
    near: float = NEAR


def kinds_of(above: Sequence[RowAbove], among: AboveAmong) -> tuple[RowAbove, ...]:
    """The rows above with what makes each of them odd, if anything does."""
    seen: set[str] = set()
    firsts: list[tuple[RowAbove, set[str]]] = []
    found = []
    # By chance, a row is among the first ten of 10/N of the queries.
    hub = max(HUB, CHANCE * 10 / max(among.rows, 1))
    for one in above:
        text = " ".join((one.text or "").split()).lower()
        words = set(words_of(text))
        kind: Kind = ""
        if text and text in seen:
            kind = "copy"
        elif one.text is not None and not has_content(text):
            kind = "no content"
        elif any(_have_same_words(words, others) for _, others in firsts):
            kind = "near copy"
        elif text and among.words >= TIMES * FEW_WORDS and len(text.split()) <= FEW_WORDS and len(text) <= 60:
            kind = "few words"
        elif among.queries and one.in_results >= hub:
            kind = "hub"
        elif any(_are_near(one, other, among) for other, _ in firsts):
            kind = "near copy"
        seen.add(text)
        if kind not in COPIES:
            firsts.append((one, words))
        found.append(replace(one, kind=kind))
    return tuple(found)


def counted_kinds(above: Sequence[RowAbove]) -> str:
    """The odd ones among rows above: "2 copies of others, 1 without content"."""
    counted = [(names, sum(one.kind == kind for one in above)) for kind, names in CALLED.items()]
    return ", ".join(f"{count:,} {names[count > 1]}" for names, count in counted if count)


def _have_same_words(own: set[str], others: set[str]) -> bool:
    return min(len(own), len(others)) >= FEWEST_WORDS and len(own & others) >= SAME_WORDS * len(own | others)


def _are_near(one: RowAbove, other: RowAbove, among: AboveAmong) -> bool:
    """By their vectors."""
    vectors = [None if among.vectors is None else among.vectors.get(row.number) for row in (one, other)]
    if vectors[0] is None or vectors[1] is None or len(vectors[0]) != len(vectors[1]):
        return False
    lengths = float(np.linalg.norm(vectors[0]) * np.linalg.norm(vectors[1]))
    return bool(lengths) and float(vectors[0] @ vectors[1]) >= among.near * lengths


def has_content(text: str) -> bool:
    """Whether a text says anything: two words, or four characters of a script that has no spaces."""
    letters = [one for one in text if one.isalpha()]
    words = [word for word in text.split() if any(one.isalpha() for one in word)]
    return len(words) >= 2 or sum(ord(one) > 0x2E7F for one in letters) >= 4


def near_among(vectors: np.ndarray) -> float:
    """From which cosine on rows are near copies: .95, or a quarter of what usual pairs of (N, D) rows leave up to 1.

    Of some functions, any two texts have a cosine of .95.
    """
    lengths = np.linalg.norm(vectors, axis=1)
    units = vectors[lengths > 0] / lengths[lengths > 0, None]
    if len(units) < 3:
        return NEAR
    usual = float(np.median((units @ units.T)[np.triu_indices(len(units), 1)]))
    return max(NEAR, 1 - (1 - usual) / 4)


def usual_words(texts: Sequence[str]) -> float:
    """Words of a usual text: the median of the first 2,000 that have any."""
    counts = [len(text.split()) for text in texts[:2_000] if text.strip()]
    return float(np.median(counts)) if counts else 0.0
