"""How much of a query's words a text has: rare words count more, those that every row has do not."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import log

from embaudit.measures.quality.baselines import words_of

# Between the words of a name: q3_report-final.pdf, RefundPolicy.
JOINED = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[^\W\d_])(?=\d)|[\W_]+")


@dataclass(frozen=True)
class WordWeights:
    """What a store's rows make of words.

    Attributes:
        rows: that have a text.
        having: of these, those that have a word; words of queries alone.
    """

    rows: int
    having: Mapping[str, int]

    def weight(self, word: str) -> float:
        """0 for a word of a tenth of the rows or more."""
        count = self.having.get(word, 0)
        return 0.0 if 10 * count >= self.rows else log((1 + self.rows) / (1 + count))

    def share(self, query: str, words: Collection[str]) -> float:
        """Of a query's words, by weight, those that are among others; 0 if none counts."""
        weights = {word: self.weight(word) for word in words_of(query)}
        total = sum(weights.values())
        return sum(weight for word, weight in weights.items() if word in words) / total if total else 0.0


def words_in_name(name: str) -> set[str]:
    """The words of a name that are joined by case, digits, dots, dashes or underscores, and the name's own."""
    return {one.lower() for one in JOINED.split(name) if one} | set(words_of(name))
