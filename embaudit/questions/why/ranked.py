"""Ranks of a row for its query: exact, by the store's own search, by words, by words with vectors, by another function.

Of a query's words, rare ones count more, and those that every row has do not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.measured import Bm25, words_of
from embaudit.measures.quality.passes import of_all
from embaudit.questions.search.curve import wider_settings
from embaudit.questions.search.exact import Exact, Progress, exact_search, scores_of
from embaudit.questions.search.recall import MARGIN
from embaudit.questions.vectors.forms import encode_rows
from embaudit.questions.why.case import JUST_BEHIND, ByAnother, Case, InAField, OfAnotherType, StoreAnswer
from embaudit.questions.why.mends import OtherQuery, encoded
from embaudit.questions.why.rows import ExpectedRow, StoreScan
from embaudit.statistics import exact_share
from embaudit.stores.search import Settings, StoreSearch, Where
from embaudit.stores.store import Metric, RowBatch, Store
from embaudit.words.errors import CorpusError

FIRST = 10


@dataclass(frozen=True)
class RankedQueries:
    """Ranks of vectors among a store's rows, each for its query.

    Attributes:
        exact: the pass.
        scores: by metric, (Q, M) of each query with each vector that is ranked for it; NaN for none.
    """

    exact: Exact
    scores: Mapping[Metric, np.ndarray]

    def rank(self, metric: Metric, query: int, place: int) -> int | None:
        """1 + the rows that are nearer, by more than rounding; None for none."""
        if not np.isfinite(self.scores[metric][query, place]):
            return None
        return int(self.exact.above[metric][query, place]) + 1


def ranked(
    store: Store,
    queries: np.ndarray,
    vectors: Sequence[Sequence[np.ndarray]],
    metrics: Sequence[Metric],
    progress: Progress,
    kept: int = 0,
) -> RankedQueries:
    """One pass over a store.

    Args:
        queries: (Q, D).
        vectors: of each query, those that are ranked for it, (D,) each.
        metrics: by which; the nearest rows are kept by the first.
        kept: how many nearest rows, at least.
    """
    most = max(map(len, vectors), default=0)
    scores = {metric: np.full((len(queries), most), np.nan) for metric in metrics}
    for query, own in enumerate(vectors):
        if len(own):
            for metric in metrics:
                scores[metric][query, : len(own)] = scores_of(metric, queries[[query]], np.stack(own))[0]
    bounds = {metric: np.where(np.isfinite(found), found, np.inf) for metric, found in scores.items()}
    k = {metrics[0]: max(kept, FIRST) + MARGIN} if kept else {}
    return RankedQueries(exact_search(store, queries, k, bounds, progress), scores)


def observed(store: Store, numbers: Collection[int], into: dict[int, np.ndarray]) -> Store:
    """The store, of which a pass keeps the vectors of these rows."""

    def batches(fields: Sequence[str] = ()) -> Iterator[RowBatch]:
        for batch in store.batches(fields):
            for number in numbers:
                if batch.start <= number < batch.start + batch.rows:
                    for places, vectors in batch.vectors.values():
                        for at in np.flatnonzero(places == number - batch.start):
                            into[number] = np.asarray(vectors[at], np.float64)
            yield batch

    return replace(store, batches=batches)


# Results that are asked for where a row is not among the first k, and among which ranks are fused.
WIDE = 100


def as_rows_have_it(where: Where, kinds: Mapping[str, Mapping[type, object]]) -> Where:
    """The filter with values of a type that rows have: on a command line, a number is text."""
    return [
        (name, next(iter(own.values()))) if (own := kinds.get(name)) and type(value) not in own else (name, value)
        for name, value in where
    ]


def answers(
    search: StoreSearch, settings: Settings, where: Where, k: int, *, is_alone: bool
) -> Callable[[np.ndarray, ExpectedRow, bool], StoreAnswer]:
    """Asks for a row by a query; wider, or with the row's own values, where it should be found and is not.

    Args:
        is_alone: whether this is the only query: the least setting that finds its row is enough.
    """
    shown = ", ".join(f"{name} {value:,}" for name, value in settings.items())

    def rank(
        query: np.ndarray, row: str, most: int, own: Settings, kept: Where = where
    ) -> tuple[int | None, tuple[str, ...]]:
        ids = tuple(map(str, search.find(query, most, own, kept).ids))
        return (ids.index(row) + 1 if row in ids else None), ids

    def asked(query: np.ndarray, expected: ExpectedRow, is_owed: bool) -> StoreAnswer:
        row = str(expected.id)
        try:
            here, given = rank(query, row, k, settings)
            wide = here if here is not None else rank(query, row, max(WIDE, JUST_BEHIND * k), settings)[0]
            typed = None
            finds = []
            if here is None and is_owed:
                others = [
                    pair
                    for pair in zip(where, expected.where, strict=False)
                    if type(pair[0][1]) is not type(pair[1][1])
                ]
                if others and (found := rank(query, row, k, settings, expected.where)[0]) is not None:
                    (name, wanted), (_, has) = others[0]
                    typed = OfAnotherType(name, wanted, has, found)
                for one, said in () if typed else wider_settings(search, settings):
                    found, _ = rank(query, row, k, one)
                    if found is not None:
                        finds.append((said, found))
                        # Of many queries, one that finds more of them may be better.
                        if is_alone:
                            break
            return StoreAnswer(here, wide, tuple(finds), search.index, shown, given, typed=typed)
        except CorpusError as error:
            return StoreAnswer(index=search.index, settings=shown, failed=error.happened)

    return asked


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
