"""Whether a query finds its documents: nDCG, reciprocal rank and recall of the first ten by cosine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from embaudit.downstream.material import Judgements
from embaudit.downstream.split import in_report, units_of
from embaudit.downstream.task import Items, Scores, Vectors, unit_rows
from embaudit.intervals import Interval, mean_interval

Metric = Literal["ndcg_10", "mrr_10", "recall_10"]
METRICS: tuple[Metric, ...] = get_args(Metric)
CUT = 10
# What trec_eval calls them, of a run of the first ten.
TREC_EVAL = {"ndcg_10": f"ndcg_cut_{CUT}", "mrr_10": "recip_rank", "recall_10": f"recall_{CUT}"}
# It takes whole grades. nDCG does not change when all grades of a query are multiplied.
GRADE_STEPS = 1_000
# Documents whose cosines with all queries are in memory at a time.
BLOCK = 8_192


class Retrieval:
    """One number for each query from trec_eval: the grade is the gain, 1/log2(rank + 1) the discount.

    Queries that share a relevant document are one unit. An item's length is that of its longest relevant document.

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
        # A document is of the half of the queries that it is relevant to; the others are halved among themselves.
        half_of = dict(zip(units[:queries].tolist(), report.tolist(), strict=True))
        own = in_report(judged.documents, np.arange(documents), seed)
        self._chosen = np.array([not half_of.get(int(unit), own[i]) for i, unit in enumerate(units[queries:])])

    @property
    def fitted_on(self) -> Mapping[str, np.ndarray]:
        return {"document": self._chosen}

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        return evaluate(self.judged.relevant, nearest(vectors["document"], vectors["query"]))[self.metric]

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        return float(outcomes[chosen].mean())

    def interval(
        self, before: np.ndarray, after: np.ndarray, chosen: np.ndarray, resamples: int, seed: int
    ) -> Interval | None:
        return mean_interval((after - before)[chosen], self.items.units[chosen], resamples, seed)


def nearest(documents: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """The places of the first ten documents by cosine, (queries, ≤ 10) int64, of equal ones the first; exact.

    Args:
        documents: (n, d) vectors of any length, block by block in memory.
        queries: (q, d)
    """
    import torch

    asked = torch.from_numpy(unit_rows(queries))
    best, places = torch.empty(len(asked), 0, dtype=torch.float64), torch.empty(len(asked), 0, dtype=torch.int64)
    for start in range(0, len(documents), BLOCK):
        cosines = asked @ torch.from_numpy(unit_rows(documents[start : start + BLOCK])).T
        best = torch.cat([best, cosines], dim=1)
        new = torch.arange(start, start + cosines.shape[1]).expand(len(asked), -1)
        places = torch.cat([places, new], dim=1)
        best, found = best.topk(min(CUT, best.shape[1]), dim=1)
        places = places.gather(1, found)
    by_place = places.argsort(dim=1)
    in_order = best.gather(1, by_place).argsort(dim=1, descending=True, stable=True)
    found_in_order: np.ndarray = places.gather(1, by_place).gather(1, in_order).numpy()
    return found_in_order


def evaluate(relevant: tuple[Mapping[int, float], ...], ranking: np.ndarray) -> Scores:
    """Each metric of each query, (queries,) float64, by trec_eval.

    Args:
        relevant: of each query the grades (above 0) by place.
        ranking: (queries, k) places, the best first.
    """
    import pytrec_eval

    grades = {
        str(query): {str(place): max(1, round(grade * GRADE_STEPS)) for place, grade in of_query.items()}
        for query, of_query in enumerate(relevant)
    }
    # By rank, so that trec_eval, which orders equal scores by name, has none.
    run = {
        str(query): {str(place): float(-rank) for rank, place in enumerate(row)} for query, row in enumerate(ranking)
    }
    found = pytrec_eval.RelevanceEvaluator(grades, set(TREC_EVAL.values())).evaluate(run)
    return {
        metric: np.array([found[str(query)][name] for query in range(len(relevant))])
        for metric, name in TREC_EVAL.items()
    }
