"""What words say of a search: how rare they are, in which field they stand, where BM25 has a row, and with vectors.

Of a query's words, rare ones count more, and those that every row has do not.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from embaudit.measures.quality.measured import Bm25, words_of
from embaudit.questions.why.asked import WIDE
from embaudit.questions.why.case import Case, InAField
from embaudit.questions.why.gathered import StoreScan

# Of what was asked for, by weight of its words: so much in a field is no chance.
IN_FIELD = 0.4
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


def in_a_field(case: Case, words: WordWeights, fields: Mapping[str, str]) -> InAField | None:
    """The field that has most of what was asked for and the text has not; None if that is little."""
    in_text = set(words_of(case.row.text or "")) if case.row is not None else set()
    best, found = max(IN_FIELD, words.share(case.query, in_text)), None
    for name, value in fields.items():
        own = words_in_name(value) - in_text
        if (share := words.share(case.query, own)) > best:
            named = [one for one in dict.fromkeys(words_of(case.query)) if one in own and words.weight(one)]
            best, found = share, InAField(name, value, tuple(named))
    return found


def with_words(case: Case, index: Bm25, gathered: StoreScan, nearest: np.ndarray) -> Case:
    """The case with its row's rank by BM25, and by that and vectors together, among the rows that the filter keeps.

    Args:
        nearest: (K,) rows by their vectors, nearest first, numbered among those that the filter keeps; −1 for none.
    """
    if case.row is None:
        return case
    scores = index.scores(case.query)
    number, own = case.row.number, scores[case.row.number]
    numbers = np.arange(len(scores)) if gathered.passing is None else gathered.passing
    kept = scores[numbers]
    case = replace(case, words=int((kept > own).sum()) + 1 if own > 0 else None)
    if case.words is None or case.passes is False:
        return case
    by_words = [int(numbers[place]) for place in np.argsort(-kept, kind="stable")[:WIDE] if kept[place] > 0]
    fused = fused_scores([numbers[nearest[nearest >= 0][:WIDE]].tolist(), by_words])
    mine = fused.get(number)
    return replace(case, hybrid=None if mine is None else 1 + sum(one > mine for one in fused.values()))


def fused_scores(lists: Sequence[Sequence[int]]) -> dict[int, float]:
    """Reciprocal rank fusion of lists of rows, nearest first: Σ 1/(60 + rank) (Cormack, Clarke and Büttcher 2009)."""
    found: dict[int, float] = {}
    for rows in lists:
        for rank, row in enumerate(rows, 1):
            found[row] = found.get(row, 0.0) + 1 / (60 + rank)
    return found
