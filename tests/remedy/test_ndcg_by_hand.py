"""nDCG@10 against the definition written out."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest

from embaudit.measures.tempscale.material import Judgements
from embaudit.measures.tempscale.retrieval import Retrieval


def by_hand(cosines: np.ndarray, relevant: dict[int, float]) -> float:
    """Σ grade/log2(rank + 1) over the first ten, over the same of the best ranking."""
    ranking = np.argsort(-cosines)[:10]
    found = sum(relevant.get(int(place), 0.0) / log2(rank + 2) for rank, place in enumerate(ranking))
    ideal = sorted(relevant.values(), reverse=True)[:10]
    return found / sum(grade / log2(rank + 2) for rank, grade in enumerate(ideal))


def test_ndcg_is_the_definition() -> None:
    generator = np.random.default_rng(0)
    documents, queries = generator.normal(size=(40, 8)), generator.normal(size=(12, 8))
    # Graded, more than ten relevant, and one alone.
    relevant: list[dict[int, float]] = [{3: 1.0}, {0: 3.0, 7: 1.0, 9: 2.0}, {i: 1.0 + i % 3 for i in range(15)}]
    relevant += [{int(one): 1.0 for one in generator.choice(40, 4, replace=False)} for _ in range(9)]
    judged = Judgements(tuple(f"d{i}" for i in range(40)), tuple(f"q{i}" for i in range(12)), tuple(relevant))
    found = Retrieval(judged, np.ones(40), seed=0).outcomes({"document": documents * 3, "query": queries})
    unit = documents / np.linalg.norm(documents, axis=1, keepdims=True)
    expected = [by_hand(unit @ query, one) for query, one in zip(queries, relevant, strict=True)]
    assert found == pytest.approx(expected, abs=1e-12)
    assert len({round(one, 6) for one in expected}) > 5


def test_documents_that_tie_share_their_gain() -> None:
    judged = Judgements(("a", "b", "c"), ("q",) * 4, ({0: 1.0},) * 4)
    found = Retrieval(judged, np.ones(3), seed=0).outcomes({"document": np.ones((3, 2)), "query": np.ones((4, 2))})
    assert found == pytest.approx([(1 + 1 / log2(3) + 1 / 2) / 3] * 4)
