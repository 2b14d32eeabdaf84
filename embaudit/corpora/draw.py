"""Which rows of a source are read: a random draw, determined by a seed and the rows' content, or the first ones.

The first rows of a source are not a random sample. Sentences follow one another in an article, passages are grouped by
query and labelled texts by class, so an estimate from the first rows is biased and its interval too narrow.

Whether a row is drawn depends only on the seed and its own text. So every checkpoint reads the same texts, a smaller
draw is a subset of a larger one, the order of a file does not matter, and a stream can be drawn from, with only the
drawn rows in memory. Every reader of this package feeds :func:`keep_rows`, so duplicates, blanks and limits are treated
the same for every source, and what is not kept is counted.
"""

from __future__ import annotations

import hashlib
import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Literal

from pydantic import BaseModel, ConfigDict

from embaudit.system.installed import KEY_DIGITS

How = Literal["random", "first"]


class Draw(BaseModel):
    """How many rows of a corpus are read, and how they are chosen.

    Attributes:
        seed: of the random draw; None: the first rows, in source order.
    """

    model_config = ConfigDict(frozen=True)

    rows: int
    seed: int | None = None

    @classmethod
    def of(cls, wanted: int, rows: int, how: How, seed: int) -> Draw:
        """A draw of ``wanted`` out of ``rows`` rows; no seed if that is all of them, so that no value depends on it."""
        return cls(rows=min(wanted, rows), seed=seed if how == "random" and wanted < rows else None)

    def places(self, texts: Sequence[str]) -> list[int]:
        """Indices of the drawn rows, ascending.

        Args:
            texts: the text of each row of the corpus.
        """
        if self.seed is None:
            return list(range(min(self.rows, len(texts))))
        return sorted(content_order(texts, self.seed)[: self.rows])


def content_order(texts: Sequence[str], seed: int) -> list[int]:
    """Indices of the texts in a random order that depends only on the seed and the texts."""
    keys = [rank(text, seed) for text in texts]
    return sorted(range(len(texts)), key=lambda place: (keys[place], place))


def rank(text: str, seed: int) -> str:
    """A text's rank in the order given by a seed, as 16 hex digits; the lowest ranks are drawn first."""
    # Equals ``content_key(seed=seed, text=text)`` but is three times as fast: there may be millions of rows.
    return sha256(f'{{"seed":{seed},"text":{encode_basestring(text)}}}'.encode()).hexdigest()[:KEY_DIGITS]


def pair_text(first: str, second: str) -> str:
    """The text by which a pair is ranked."""
    return f"{first}\n{second}"


Kind = Literal["texts", "pairs"]


@dataclass(frozen=True)
class Text:
    """One text, without surrounding whitespace.

    ``title`` is kept as read even if it is joined to the text (see ``CorpusSpec``).
    """

    text: str
    external_id: str | None = None
    title: str | None = None
    label: str | None = None


@dataclass(frozen=True)
class TextPair:
    """An ordered pair; ``relation`` is ``sts``, ``hard_negative`` or ``positive``.

    ``score`` is on the scale of its own data set (STS Benchmark 0-5, SICK 1-5, STS 2022 1-4) and None if the pair has
    no score. ``data_set`` names it where a corpus has several, so that scores of different scales are never compared.
    """

    first: str
    second: str
    score: float | None = None
    relation: str = "sts"
    data_set: str | None = None


@dataclass(frozen=True)
class IngestCounts:
    """Counts of rows: ``read`` is the sum of the other six.

    ``undecodable`` rows contain bytes that are not UTF-8; ``broken`` ones lack a field, cannot be parsed, contain NUL
    characters or have a score that is not a number; ``undrawn`` ones are valid but were not drawn. If only random
    pieces of a large hub source are read, ``share_read`` is their share of its bytes, otherwise 1. ``first_broken``
    says what is wrong with the first broken row.
    """

    read: int
    kept: int
    duplicate: int
    blank: int
    broken: int
    undecodable: int
    undrawn: int = 0
    share_read: float = 1.0
    first_broken: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        reason = f" (the first: {self.first_broken})" if self.first_broken else ""
        pieces = f" in random pieces, {self.share_read:.1%} of the source" if self.share_read < 1 else ""
        return (
            f"{self.read} rows read{pieces}: {self.kept} kept, {self.duplicate} duplicate, {self.blank} blank, "
            f"{self.broken} broken{reason}, {self.undecodable} not UTF-8"
            + (f", {self.undrawn} not drawn" if self.undrawn else "")
        )


@dataclass(frozen=True)
class Corpus:
    """The kept rows of one corpus, in order.

    ``revision`` is the commit of a hub repository (joined by ``+`` for a pool of several) or None.
    """

    corpus_id: str
    name: str
    kind: Kind
    source: str
    revision: str | None
    counts: IngestCounts
    texts: tuple[Text, ...] = field(repr=False)
    pairs: tuple[TextPair, ...] = field(repr=False)


def content_id(kind: Kind, rows: Sequence[Text | TextPair]) -> str:
    """16 hex digits of everything a measure uses: texts and labels, or pairs, scores, relations and data sets.

    External ids and unjoined titles are left out: no measure reads them, and most formats do not have them.
    """
    digest = hashlib.sha256(f"{kind}\n".encode())
    for row in rows:
        if isinstance(row, Text):
            seen: list[object] = [row.text, row.label]
        else:
            seen = [row.first, row.second, row.score, row.relation, row.data_set]
        digest.update(json.dumps(seen, ensure_ascii=False, separators=(",", ":")).encode())
        digest.update(b"\n")
    return digest.hexdigest()[:16]


@dataclass
class _Candidate:
    row: Text | TextPair
    number: int
    copies: int = 0


class Reservoir:
    """The distinct rows of lowest rank, as a draw from the whole source would give.

    Identical rows have the same rank, so duplicates of kept rows are found without remembering the others. The first
    one is kept.

    Attributes:
        left_out: number of rows that were not drawn, including their duplicates.
    """

    # Any later row may be drawn.
    is_full = False

    def __init__(self, rows: int, seed: int) -> None:
        self._rows, self._seed = rows, seed
        self._drawn: dict[tuple[int, str], _Candidate] = {}
        # A heap, highest rank first.
        self._heap: list[tuple[int, str]] = []
        self._seen = 0
        self.left_out = 0

    def add(self, row: Text | TextPair) -> None:
        """Process a row."""
        self._seen += 1
        if isinstance(row, Text):
            said, relation = row.text, ""
        else:
            said, relation = pair_text(row.first, row.second), f"{row.relation} {row.data_set or ''}"
        place = int(rank(said, self._seed), 16)
        key = (place, relation)
        if key in self._drawn:
            self._drawn[key].copies += 1
            return
        if len(self._heap) < self._rows:
            heapq.heappush(self._heap, (-place, relation))
        elif -place > self._heap[0][0]:
            highest, other = heapq.heapreplace(self._heap, (-place, relation))
            self.left_out += 1 + self._drawn.pop((-highest, other)).copies
        else:
            self.left_out += 1
            return
        self._drawn[key] = _Candidate(row, self._seen)

    def drawn(self) -> Iterator[Text | TextPair]:
        """The drawn rows, in source order."""
        for one in sorted(self._drawn.values(), key=lambda one: one.number):
            yield one.row

    @property
    def duplicates(self) -> int:
        """How often a kept row was repeated."""
        return sum(one.copies for one in self._drawn.values())


@dataclass(frozen=True)
class Flaw:
    """A dropped row: which count it belongs to, and a reason for error messages."""

    counted_as: Literal["blank", "broken", "undecodable"]
    reason: str = ""


LONGEST_REASON = 200
BLANK = Flaw("blank")
UNDECODABLE = Flaw("undecodable", "bytes that are not UTF-8")


@dataclass(frozen=True)
class KeptRows:
    """The result: rows in order, and counts."""

    rows: tuple[Text | TextPair, ...]
    counts: IngestCounts


def keep_rows(rows: Iterable[Text | TextPair | Flaw], draw: Draw | None = None) -> KeptRows:
    """Drop blanks and exact duplicates (keeping the first), and keep the drawn rows.

    Args:
        draw: with a seed, reads all rows and keeps the drawn ones; for the first rows, reads no more than those; None
            keeps all rows.
    """
    kept = _First(draw.rows if draw else None) if draw is None or draw.seed is None else Reservoir(draw.rows, draw.seed)
    dropped: Counter[str] = Counter()
    first_broken = ""
    for row in rows:
        if isinstance(row, Flaw):
            dropped[row.counted_as] += 1
            if row.counted_as == "broken":
                first_broken = first_broken or row.reason
        elif not (row.text if isinstance(row, Text) else row.first and row.second):
            dropped["blank"] += 1
        else:
            kept.add(row)
            if kept.is_full:
                break
    drawn = tuple(kept.drawn())
    counts = IngestCounts(
        read=len(drawn) + kept.duplicates + kept.left_out + dropped.total(),
        kept=len(drawn),
        duplicate=kept.duplicates,
        blank=dropped["blank"],
        broken=dropped["broken"],
        undecodable=dropped["undecodable"],
        undrawn=kept.left_out,
        first_broken=first_broken[:LONGEST_REASON] or None,
    )
    return KeptRows(drawn, counts)


class _First:
    """The first distinct rows; all of them without a limit."""

    left_out = 0

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._rows: dict[str | tuple[str, ...], Text | TextPair] = {}
        self.duplicates = 0

    @property
    def is_full(self) -> bool:
        return len(self._rows) == self._limit

    def add(self, row: Text | TextPair) -> None:
        # Data sets share pairs (STS Benchmark is made of STS 2012 to 2017), and each keeps its own.
        key = row.text if isinstance(row, Text) else (row.first, row.second, row.relation, row.data_set or "")
        if key in self._rows:
            self.duplicates += 1
        else:
            self._rows[key] = row

    def drawn(self) -> Iterable[Text | TextPair]:
        return self._rows.values()
