"""Where another function would put the rows that this one loses, from some rows of the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.passes import of_all
from embaudit.questions.vectors.encode import encode_rows
from embaudit.questions.why.case import ByAnother, Case
from embaudit.questions.why.gathered import StoreScan
from embaudit.questions.why.readings import OtherQuery, encoded
from embaudit.statistics.intervals import exact_share


@dataclass(frozen=True)
class OtherRows:
    """Rows of a store that another function ranks.

    Attributes:
        rows: that the filter keeps and that have a text.
        texts: of those that were drawn; all of them, where there are no more.
    """

    rows: int
    texts: list[str]


# Rows whose texts are encoded, besides those that stand above an expected one.
MOST = 2_000
ROUNDING = 1e-6


def ranks_by(
    cases: Mapping[int, Case],
    function: EmbeddingFunction,
    gathered: StoreScan,
    seed: int,
    progress: Callable[[int, int], None] = lambda more, total: None,
) -> dict[int, ByAnother]:
    """The rank of the cases' rows by another function, or by this one if it encoded all rows; of those with a text.

    Rows that stand above it are compared one by one, and of the others those that were drawn: with a above among m
    compared, and b among n drawn of N others, the rank is 1 + a + N b/n, with Clopper and Pearson's interval of b/n.
    """
    found: dict[int, ByAnother] = {}
    asked = {place: case.row for place, case in cases.items() if case.row is not None and case.row.text}
    if not asked:
        return found
    drawn = _draw(gathered, seed)
    above = {place: [one.text for one in cases[place].above if one.text] for place in asked}
    texts = [
        *drawn.texts,
        *(str(row.text) for row in asked.values()),
        *(one for some in above.values() for one in some),
    ]
    distinct = list(dict.fromkeys(texts))
    number = {text: place for place, text in enumerate(distinct)}
    vectors = encode_rows(function, distinct, lambda some: progress(some, len(distinct)))
    queries = encoded(function, [OtherQuery("", cases[place].query, "query") for place in asked])
    scores = of_all(queries, vectors, function.similarity or "cosine")
    for (place, row), own in zip(asked.items(), scores, strict=True):
        score = own[number[str(row.text)]]
        if np.isfinite(score):
            known = [own[number[text]] for text in dict.fromkeys(above[place]) if text != row.text]
            others = [own[number[text]] for text in drawn.texts if text != row.text and text not in above[place]]
            # What differs by rounding is no nearer.
            rank = _rank(float(score + ROUNDING * abs(score)), np.array(known), np.array(others), drawn.rows)
            found[place] = replace(rank, name=function.name)
    return found


def _draw(gathered: StoreScan, seed: int) -> OtherRows:
    texts = gathered.texts or []
    kept = range(len(texts)) if gathered.passing is None else gathered.passing.tolist()
    numbers = [number for number in kept if texts[number]]
    if len(numbers) > MOST:
        places = np.random.default_rng(seed).choice(len(numbers), MOST, replace=False)
        return OtherRows(len(numbers), [texts[numbers[place]] for place in sorted(places)])
    return OtherRows(len(numbers), [texts[number] for number in numbers])


def _rank(score: float, known: np.ndarray, others: np.ndarray, rows: int) -> ByAnother:
    """By what stands above it among known rows, and among others drawn of ``rows``. NaN stands above nothing."""
    certain = 1 + int((known > score).sum())
    nearer, rest = int((others > score).sum()), max(0, rows - 1 - len(known))
    if len(others) >= rest:
        return ByAnother("", certain + nearer, None, None, rows, len(others) + len(known))
    low, high = exact_share(nearer, max(1, len(others)))
    about = certain + round(rest * nearer / max(1, len(others)))
    return ByAnother("", about, certain + int(rest * low), certain + round(rest * high), rows, len(others) + len(known))
