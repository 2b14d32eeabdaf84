"""A corpus after reading: texts or pairs, counts of dropped rows, and a content id.

Used by every measure and by staging; independent of where a corpus came from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

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
