"""Retrieval by cosine: nDCG@10, MRR@10 and recall@10.

Semantic similarity: Spearman's ρ between cosines and human scores of sentence pairs.

Scores of several data sets are on different scales: ρ is taken within each, and the score is their mean, as in MTEB.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from embaudit.corpora.downstream import Items, Scores, Vectors, in_report, unit_rows, units_of
from embaudit.corpora.downstream.material import GradedPairs, Judgements
from embaudit.statistics import Interval, correlation_interval, mean_interval, mean_spearman

Metric = Literal["ndcg_10", "mrr_10", "recall_10"]
METRICS: tuple[Metric, ...] = get_args(Metric)
CUT = 10
# Names in trec_eval, for a run of the top ten.
TREC_EVAL = {"ndcg_10": f"ndcg_cut_{CUT}", "mrr_10": "recip_rank", "recall_10": f"recall_{CUT}"}
# trec_eval needs integer grades; multiplying all grades of a query leaves nDCG unchanged.
GRADE_STEPS = 1_000
NOT_RANKED = -1
# Documents per block; a block's cosines with all queries are in memory.
BLOCK = 8_192


class Retrieval:
    """One number per query from trec_eval: the gain is the grade, the discount 1/log2(rank + 1).

    Queries that share a relevant document form one unit. An item's length is that of its longest relevant document.

    Args:
        lengths: (documents,) tokens of each document.
    """

    name = "retrieval"

    def __init__(self, judged: Judgements, lengths: np.ndarray, *, seed: int, metric: Metric = "ndcg_10") -> None:
        self.judged, self.metric = judged, metric
        documents, queries = len(judged.documents), len(judged.queries)
        links = [(query, queries + place) for query, relevant in enumerate(judged.relevant) for place in relevant]
        units = units_of(queries + documents, links)
        report = in_report(judged.queries, units[:queries], seed)
        longest = [max(int(lengths[place]) for place in relevant) for relevant in judged.relevant]
        self.items = Items(np.array(longest), units[:queries], report)
        # A document is in the half of the queries that it is relevant to; irrelevant documents are split separately.
        half_of = dict(zip(units[:queries].tolist(), report.tolist(), strict=True))
        own = in_report(judged.documents, np.arange(documents), seed)
        self._chosen = np.array([not half_of.get(int(unit), own[i]) for i, unit in enumerate(units[queries:])])

    @property
    def fitted_on(self) -> Mapping[str, np.ndarray]:
        return {"document": self._chosen}

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        ranking = nearest(vectors["document"], vectors["query"], self.judged.own)
        return evaluate(self.judged.relevant, ranking)[self.metric]

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        return float(outcomes[chosen].mean())

    def interval(
        self, before: np.ndarray, after: np.ndarray, chosen: np.ndarray, resamples: int, seed: int
    ) -> Interval | None:
        return mean_interval((after - before)[chosen], self.items.units[chosen], resamples, seed)


def nearest(documents: np.ndarray, queries: np.ndarray, own: Sequence[Collection[int]] = ()) -> np.ndarray:
    """Indices of the top ten documents by cosine, (queries, ≤ 10) int64; exact, ties in document order.

    Args:
        documents: (n, d) vectors of any length, processed in blocks.
        queries: (q, d)
        own: for each query, the documents that are not ranked for it; where fewer than ten others are left, the row
            ends in −1.
    """
    import torch

    asked = torch.from_numpy(unit_rows(queries))
    mine = np.array([(row, place) for row, of_query in enumerate(own) for place in of_query]).reshape(-1, 2)
    best, places = torch.empty(len(asked), 0, dtype=torch.float64), torch.empty(len(asked), 0, dtype=torch.int64)
    for start in range(0, len(documents), BLOCK):
        cosines = asked @ torch.from_numpy(unit_rows(documents[start : start + BLOCK])).T
        here = mine[(start <= mine[:, 1]) & (mine[:, 1] < start + BLOCK)]
        cosines[here[:, 0], here[:, 1] - start] = -torch.inf
        best = torch.cat([best, cosines], dim=1)
        new = torch.arange(start, start + cosines.shape[1]).expand(len(asked), -1)
        places = torch.cat([places, new], dim=1)
        best, found = best.topk(min(CUT, best.shape[1]), dim=1)
        places = places.gather(1, found)
    by_place = places.argsort(dim=1)
    in_order = best.gather(1, by_place).argsort(dim=1, descending=True, stable=True)
    places = torch.where(best.isfinite(), places, NOT_RANKED)
    found_in_order: np.ndarray = places.gather(1, by_place).gather(1, in_order).numpy()
    return found_in_order


def ranked(similarities: np.ndarray, own: Sequence[Collection[int]] = ()) -> np.ndarray:
    """(q, ≤ 10) places of the highest similarities of each row, ties in order of place; −1 where none is left.

    Args:
        own: of each query, the documents that are the query itself.
    """
    found = np.array(similarities, dtype=np.float64)
    for query, mine in enumerate(own):
        found[query, list(mine)] = -np.inf
    order = np.argsort(-found, axis=1, kind="stable")[:, :CUT]
    return np.where(np.isfinite(np.take_along_axis(found, order, axis=1)), order, NOT_RANKED)


def overlaps(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(q,) share of each row's ranked places that the other row has, too: overlap@10."""
    return np.array([_overlap(one, two) for one, two in zip(first, second, strict=True)])


def _overlap(first: np.ndarray, second: np.ndarray) -> float:
    known = first[first != NOT_RANKED]
    return float(np.isin(known, second).mean()) if len(known) else 1.0


def evaluate(relevant: tuple[Mapping[int, float], ...], ranking: np.ndarray) -> Scores:
    """Each metric for each query, (queries,) float64, by trec_eval.

    Args:
        relevant: for each query, the grades (above 0) by document index.
        ranking: (queries, k) document indices, best first; −1: none.
    """
    import pytrec_eval

    grades = {
        str(query): {str(place): max(1, round(grade * GRADE_STEPS)) for place, grade in of_query.items()}
        for query, of_query in enumerate(relevant)
    }
    # Scores are ranks: trec_eval would break ties by name.
    run = {
        str(query): {str(place): float(-rank) for rank, place in enumerate(row) if place != NOT_RANKED}
        for query, row in enumerate(ranking)
    }
    found = pytrec_eval.RelevanceEvaluator(grades, set(TREC_EVAL.values())).evaluate(run)
    return {
        metric: np.array([found[str(query)][name] for query in range(len(relevant))])
        for metric, name in TREC_EVAL.items()
    }


class Similarity:
    """An outcome is a pair's cosine. Pairs that share a sentence form one unit; a pair's length is its longer side's.

    Args:
        lengths: (2, pairs) tokens of the first and second sentences.
    """

    name = "sts"

    def __init__(self, graded: GradedPairs, lengths: np.ndarray, *, seed: int) -> None:
        self.graded, self.lengths, self.seed = graded, np.asarray(lengths), seed
        self.wanted = np.array(graded.scores, dtype=np.float64)
        self.data_sets = np.array(graded.data_sets or ("",) * len(self.wanted))
        pairs = len(self.wanted)
        sentences: dict[str, int] = {}
        links = [
            (pair, pairs + sentences.setdefault(text, len(sentences)))
            for side in (graded.firsts, graded.seconds)
            for pair, text in enumerate(side)
        ]
        units = units_of(pairs + len(sentences), links)[:pairs]
        texts = [f"{first}\n{second}" for first, second in zip(graded.firsts, graded.seconds, strict=True)]
        self.items = Items(self.lengths.max(axis=0), units, in_report(texts, units, seed))

    @property
    def fitted_on(self) -> Mapping[str, np.ndarray]:
        return dict.fromkeys(("first", "second"), ~self.items.is_report)

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        return np.einsum("nd,nd->n", unit_rows(vectors["first"]), unit_rows(vectors["second"]))

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        return mean_spearman(outcomes[chosen], self.wanted[chosen], self.data_sets[chosen])

    def interval(
        self, before: np.ndarray, after: np.ndarray, chosen: np.ndarray, resamples: int, seed: int
    ) -> Interval | None:
        two, own = (before[chosen], after[chosen]), (self.wanted[chosen], self.items.units[chosen])
        return correlation_interval(*two, *own, resamples, seed, self.data_sets[chosen])

    def by_data_set(self) -> dict[str, tuple[Similarity, np.ndarray]]:
        """The task of each data set, and the places of its pairs in this one; empty if there is only one."""
        places = {name: np.flatnonzero(self.data_sets == name) for name in np.unique(self.data_sets).tolist()}
        if len(places) < 2:
            return {}
        return {
            name: (Similarity(self.graded.of(own.tolist()), self.lengths[:, own], seed=self.seed), own)
            for name, own in places.items()
        }
