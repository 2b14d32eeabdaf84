"""Walks the cases of a store: each step is one pass, or one call, for all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from embaudit.corpora.golden import GoldenQuery
from embaudit.embedders.function import EmbeddingFunction
from embaudit.measures.quality.measured import Bm25, words_of
from embaudit.questions.search.curve import DECLARED
from embaudit.questions.vectors.forms import as_rows_were_built
from embaudit.questions.why.above import AboveAmong, RowAbove, kinds_of, near_among, usual_words
from embaudit.questions.why.built import IndexOrigin, how_built, kept_form
from embaudit.questions.why.case import OTHER_QUERIES, Case, ShownResults, StoreAnswer
from embaudit.questions.why.mends import OtherQuery, encoded
from embaudit.questions.why.other_ways import OtherMeans, has_vector, with_other_ways
from embaudit.questions.why.ranked import (
    FIRST,
    WIDE,
    RankedQueries,
    WordWeights,
    answers,
    as_rows_have_it,
    observed,
    ranked,
    with_words,
)
from embaudit.questions.why.rows import NEAR_IDS, ExpectedRow, StoreScan, fields_of, gather, near_ids
from embaudit.stores.search import Settings, StoreSearch
from embaudit.stores.store import Metric, Store

# Stored rows whose neighbours say which rows stand in everybody's results.
OTHERS = 200
Progress = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class SearchTraces:
    """All cases, and what is known of the store beside them.

    Attributes:
        rows: that are ranked: those that the filter keeps, with a vector.
        metric: by which rows are ranked; empty if they cannot be.
        declared: by the function.
        queries: (Q, D) of the cases; None if they have more numbers than the rows.
        means: by which rows were sought.
        encodes: texts that were encoded for what was tried.
    """

    cases: tuple[Case, ...]
    gathered: StoreScan
    built: IndexOrigin | None
    metric: Metric
    declared: Metric
    rows: int = 0
    queries: np.ndarray | None = None
    means: OtherMeans | None = None
    encodes: int = 0


def walk(
    store: Store,
    function: EmbeddingFunction,
    golden: Sequence[GoldenQuery],
    *,
    filtered: Store | None,
    search: StoreSearch | None,
    settings: Settings,
    cut_off: ShownResults,
    severe: Collection[int],
    seed: int,
    progress: Progress,
    numbers: Mapping[str, int] | None = None,
) -> SearchTraces:
    """Every step for every case.

    Args:
        numbers: of rows by ids that the store has not, as ``gather`` takes them.
        severe: ids of tokens that an audit found to be sticky.
    """
    searched = store if filtered is None else filtered
    where = () if filtered is None else filtered.where
    wanted = [one for case in golden for one in case.expected]
    gathered = gather(store, wanted, where, seed, lambda done: progress("rows read", done, store.rows), numbers)
    rows = [row for found in gathered.rows.values() for row in found]
    function = as_rows_were_built(function, gathered.profile.sample, store.rounded)
    built = how_built(store, function, gathered.profile, rows, gathered.texts, progress)
    declared = DECLARED.get(function.similarity or "", "cosine")
    metric: Metric = (search.metric if search is not None else "") or store.metric or declared
    walked = SearchTraces((), gathered, built, metric, declared)
    asked_as = encoded(function, [OtherQuery("", case.query, "query") for case in golden])
    queries = _cut(asked_as, gathered)
    candidates = []
    for asked_for in golden:
        rows = [row for one in asked_for.expected for row in gathered.rows[one] if not _wrong(row, gathered)]
        # What the filter leaves out is ranked as if it were kept.
        candidates.append([row for row in rows if row.passes] or rows)
    if queries is None or not _can_be_ranked(gathered):
        wrong = _longer(asked_as, gathered)
        found_cases = [_unranked(case, gathered, built) for case in golden]
        return replace(walked, cases=tuple(replace(case, vector=case.vector or wrong) for case in found_cases))
    found = _ranked_cases(walked, searched, queries, candidates, cut_off.k, progress)
    cases = []
    asked = None
    if search is not None and (not where or search.takes_where):
        kept = as_rows_have_it(where, gathered.kinds)
        asked = answers(search, settings, kept, cut_off.k, is_alone=len(golden) == 1)
    for place, one in enumerate(golden):
        best = _best(found, metric, place, candidates[place])
        if best is None or not np.isfinite(queries[place]).all():
            cases.append(replace(_unranked(one, gathered, built), query_has_vector=has_vector(queries[place])))
            continue
        number, row = best
        case = _case(walked, one, row, found, place, number)
        if asked is not None and row.id is not None and row.passes:
            is_owed = case.rank is not None and case.rank <= cut_off.k
            answer = asked(queries[place], row, is_owed)
            case = replace(case, answer=replace(answer, copy=_copy(answer, row, gathered)))
            progress("queries asked", 1, len(golden))
        cases.append(case)
    vocabulary: set[str] = set()
    weights = None
    if gathered.texts is not None and any(gathered.texts):
        words = Bm25(gathered.texts, [case.query for case in cases])
        weights = WordWeights(len(gathered.texts), words.having)
        nearest = found.exact.nearest[walked.metric].rows
        cases = [with_words(case, words, gathered, nearest[place]) for place, case in enumerate(cases)]
        if any(word not in words.known for case in cases for word in words_of(case.query)):
            vocabulary = set().union(*map(words_of, gathered.texts))
    vectors: dict[int, np.ndarray] = {}
    lost = [case for case in cases if case.is_lost(cut_off.k)]
    sample = gathered.profile.sample
    means = OtherMeans(
        cut_off,
        vocabulary,
        severe,
        weights,
        fields_of(store, {case.row.number for case in lost if case.row is not None}),
        {} if built is None else built.texts,
        kept_form(sample.vectors, store.rounded),
    )
    above = {one.number for case in lost for one in case.above}
    watched = observed(searched, above, vectors)
    cases, encodes = with_other_ways(watched, function, cases, queries, walked.metric, means, progress)
    near = near_among(np.asarray(sample.vectors[:OTHERS], np.float64))
    usual = usual_words(gathered.texts or ())
    among = AboveAmong(min(OTHERS, len(sample)), found.exact.rows, usual, vectors, near)
    cases = [replace(case, above=kinds_of(case.above, among)) for case in cases]
    return replace(walked, cases=tuple(cases), rows=found.exact.rows, queries=queries, means=means, encodes=encodes)


def _copy(answer: StoreAnswer, row: ExpectedRow, gathered: StoreScan) -> tuple[str, int] | None:
    """The first of the given rows with the text of a row that is not given itself."""
    if answer.rank is not None or gathered.texts is None or gathered.ids is None or not row.text:
        return None
    copies = {gathered.ids[number] for number, text in enumerate(gathered.texts) if text == row.text}
    return next(((one, place) for place, one in enumerate(answer.given, 1) if one in copies), None)


def _can_be_ranked(gathered: StoreScan) -> bool:
    """Bits and bytes have no products with a query's numbers."""
    return gathered.profile.sample.vectors.dtype.kind == "f"


def _longer(queries: np.ndarray, gathered: StoreScan) -> str:
    """What is wrong with rows that have more numbers than the function's queries; empty if they have not."""
    D, own = gathered.profile.dimension, queries.shape[1]
    return f"of {D:,} numbers, {OTHER_QUERIES} {own:,}" if own < D else ""


def _cut(vectors: np.ndarray, gathered: StoreScan) -> np.ndarray | None:
    """Queries of as many numbers as the rows have; None if these have more."""
    D = gathered.profile.dimension
    return vectors[:, :D] if D and vectors.shape[1] >= D else None


def _wrong(row: ExpectedRow, gathered: StoreScan) -> str:
    """What is wrong with a row's vector; empty if it can be searched."""
    if row.vector is None:
        return "missing"
    if len(row.vector) != gathered.profile.dimension:
        return f"of {len(row.vector):,} numbers, those of others of {gathered.profile.dimension:,}"
    if not np.isfinite(np.asarray(row.vector, np.float64)).all():
        return "not finite (NaN or infinity)"
    return "" if np.asarray(row.vector).any() else "zeros only"


def _unranked(one: GoldenQuery, gathered: StoreScan, built: IndexOrigin | None) -> Case:
    """What is known of a case without ranks."""
    for expected in one.expected:
        for row in gathered.rows[expected]:
            case = _of_row(Case(one.query, expected, row), built, gathered)
            return replace(case, vector=_wrong(row, gathered), passes=row.passes)
    expected = one.expected[0]
    near = near_ids(expected, gathered.ids or ())
    named = [] if gathered.ids is None else [gathered.ids[number] for number in gathered.holding(expected)[:NEAR_IDS]]
    return Case(one.query, expected, near_ids=tuple(near), elsewhere=tuple(named))


def _of_row(case: Case, built: IndexOrigin | None, gathered: StoreScan) -> Case:
    row = case.row
    if row is None or built is None:
        return case
    other = built.of_others.get(row.number)
    apart = built.apart.get(row.number)
    return replace(
        case,
        is_own=built.is_own(row),
        apart=apart if apart is not None and np.isfinite(apart) else None,
        of_other=None if other is None or gathered.ids is None else gathered.ids[other],
    )


def _ranked_cases(
    walked: SearchTraces,
    store: Store,
    queries: np.ndarray,
    candidates: Sequence[Sequence[ExpectedRow]],
    k: int,
    progress: Progress,
) -> RankedQueries:
    """Ranks of the expected rows, and the neighbours of other rows, in one pass."""
    sample = walked.gathered.profile.sample
    others = sample.at(np.arange(min(OTHERS, len(sample))))
    asked = np.concatenate([np.nan_to_num(queries), np.asarray(others.vectors, np.float32)])
    vectors = [[np.asarray(row.vector, np.float32) for row in own] for own in candidates]
    metrics = list(dict.fromkeys([walked.metric, walked.declared]))
    return ranked(
        store,
        asked,
        [*vectors, *([] for _ in range(len(others)))],
        metrics,
        lambda done: progress("exact search: rows", done, store.rows),
        kept=max(k, WIDE),
    )


def _best(
    found: RankedQueries, metric: Metric, query: int, rows: Sequence[ExpectedRow]
) -> tuple[int, ExpectedRow] | None:
    """The nearest of the rows that would serve a query."""
    ranks = [found.rank(metric, query, place) or np.inf for place in range(len(rows))]
    return (int(np.argmin(ranks)), rows[int(np.argmin(ranks))]) if rows else None


def _case(
    walked: SearchTraces, one: GoldenQuery, row: ExpectedRow, found: RankedQueries, query: int, place: int
) -> Case:
    metric, declared = walked.metric, walked.declared
    score = float(found.scores[metric][query, place])
    by_cosine = found.scores.get("cosine")
    expected = next(name for name in one.expected if row in walked.gathered.rows[name])
    case = Case(
        one.query,
        expected,
        row,
        passes=row.passes,
        rank=found.rank(metric, query, place),
        score=score,
        cosine=None if by_cosine is None else float(by_cosine[query, place]),
        declared_rank=found.rank(declared, query, place) if declared != metric else None,
        above=_above(walked, found, query, score, row),
        in_results=_share(walked, found, row),
    )
    return _of_row(case, walked.built, walked.gathered)


def _above(
    walked: SearchTraces, found: RankedQueries, query: int, score: float, row: ExpectedRow
) -> tuple[RowAbove, ...]:
    nearest, gathered = found.exact.nearest[walked.metric], walked.gathered
    counts, queries = _in_results(walked, found)
    rows = []
    for number, name, own in zip(nearest.rows[query], nearest.ids[query], nearest.scores[query], strict=True):
        whole = int(number) if gathered.passing is None or number < 0 else int(gathered.passing[number])
        if number < 0 or own <= score + nearest.slack[query] or whole == row.number:
            continue
        text = None if gathered.texts is None else gathered.texts[whole]
        share = counts.get(int(number), 0) / max(queries, 1)
        rows.append(RowAbove(str(name), text, float(own), share, number=int(number)))
    return tuple(rows)


def _share(walked: SearchTraces, found: RankedQueries, row: ExpectedRow) -> float:
    """Of the other rows' first ten, the share that has this one."""
    counts, queries = _in_results(walked, found)
    passing = walked.gathered.passing
    number = row.number if passing is None else int(np.searchsorted(passing, row.number))
    return counts.get(number, 0) / max(queries, 1) if row.passes else 0.0


def _in_results(walked: SearchTraces, found: RankedQueries) -> tuple[Mapping[int, int], int]:
    """In how many of the other rows' first ten each row is, their own left out; and how many there are."""
    sample, nearest = walked.gathered.profile.sample, found.exact.nearest[walked.metric]
    others = min(OTHERS, len(sample))
    passing = walked.gathered.passing
    counts: dict[int, int] = {}
    for place in range(others):
        asked = len(nearest.rows) - others + place
        own = int(sample.numbers[place])
        rows = [int(number) for number in nearest.rows[asked] if number >= 0]
        rows = [number for number in rows if (number if passing is None else int(passing[number])) != own][:FIRST]
        for number in rows:
            counts[number] = counts.get(number, 0) + 1
    return counts, others
