"""Whether a query finds its documents: nDCG@10 of the ranking by cosine."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from embaudit.intervals import Interval, mean_interval
from embaudit.measures.tempscale.material import Judgements
from embaudit.measures.tempscale.split import in_report, units_of
from embaudit.measures.tempscale.task import Items, Vectors, unit_rows

CUT = 10


class Retrieval:
    """nDCG@10 with the grade as gain and 1/log2(rank + 1) as discount, as trec_eval has it; ties share their gain.

    Queries that share a relevant document are one unit. An item's length is that of its longest relevant document.

    Args:
        lengths: (documents,) tokens of each document.
    """

    name = "retrieval"

    def __init__(self, judged: Judgements, lengths: np.ndarray, *, seed: int) -> None:
        self.judged = judged
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
        from sklearn.metrics import ndcg_score

        documents, queries = unit_rows(vectors["document"]), unit_rows(vectors["query"])
        found = np.zeros(len(queries))
        for query, relevant in enumerate(self.judged.relevant):
            gains = np.zeros((1, len(documents)))
            gains[0, list(relevant)] = list(relevant.values())
            found[query] = ndcg_score(gains, (documents @ queries[query])[None], k=CUT)
        return found

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        return float(outcomes[chosen].mean())

    def interval(
        self, before: np.ndarray, after: np.ndarray, chosen: np.ndarray, resamples: int, seed: int
    ) -> Interval | None:
        return mean_interval((after - before)[chosen], self.items.units[chosen], resamples, seed)
