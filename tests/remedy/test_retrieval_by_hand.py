"""nDCG@10, reciprocal rank and recall against the definitions written out."""

from __future__ import annotations

import json
from math import log2
from pathlib import Path

import numpy as np
import pytest

from embaudit.corpora.downstream.material import Judgements, pick_judged
from embaudit.corpora.downstream.retrieval import BLOCK, CUT, Retrieval, evaluate, nearest
from embaudit.corpora.judged import load_judged, own_of, relevant_of


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


def test_reciprocal_rank_and_recall_are_the_definitions() -> None:
    ranking = np.array([[4, 0, 2], [1, 3, 4], [2, 1, 0]])
    found = evaluate(({0: 1.0, 2: 0.5, 9: 1.0}, {4: 2.0}, {7: 1.0}), ranking)
    assert found["mrr_10"].tolist() == pytest.approx([1 / 2, 1 / 3, 0])
    assert found["recall_10"].tolist() == pytest.approx([2 / 3, 1, 0])
    # A grade below 1 counts, by as much as it says.
    gains = [1 / log2(3) + 0.5 / log2(4), 2 / log2(4)]
    best = [1 + 1 / log2(3) + 0.5 / log2(4), 2.0]
    assert found["ndcg_10"].tolist() == pytest.approx([gains[0] / best[0], gains[1] / best[1], 0])


def test_the_search_is_exact_across_blocks() -> None:
    generator = np.random.default_rng(1)
    documents, queries = generator.normal(size=(2 * BLOCK + 5, 6)).astype(np.float32), generator.normal(size=(4, 6))
    unit = documents.astype(np.float64) / np.linalg.norm(documents.astype(np.float64), axis=1, keepdims=True)
    expected = [np.argsort(-(unit @ query), kind="stable")[:CUT].tolist() for query in queries]
    assert nearest(documents, queries).tolist() == expected


def test_of_documents_that_tie_the_first_comes_first() -> None:
    assert nearest(np.ones((3, 2)), np.ones((2, 2))).tolist() == [[0, 1, 2]] * 2


def ranked_by_hand(documents: dict[str, np.ndarray], query: tuple[str, np.ndarray], relevant: set[str]) -> list[str]:
    """BEIR's rule on ids, document by document: the query's own is left out; but never what is judged relevant."""
    name, vector = query
    cosines = {
        other: float(vector @ row / np.linalg.norm(vector) / np.linalg.norm(row)) for other, row in documents.items()
    }
    others = [other for other in documents if other != name or other in relevant]
    return sorted(others, key=lambda other: -cosines[other])[:CUT]


@pytest.mark.parametrize("count", [3, 14, 2 * BLOCK + 1])
def test_a_querys_own_document_is_not_ranked(count: int, tmp_path: Path) -> None:
    """Queries that are documents (ArguAna): at first place each would find itself. Ids travel from the files."""
    generator = np.random.default_rng(5)
    names = [f"a{i}" for i in range(count)]
    vectors = {name: generator.normal(size=4) for name in names}
    asked = [*names[:2], names[-1], "q-of-its-own"]
    at = {**{name: vectors[name] + generator.normal(0, 0.01, 4) for name in asked[:3]}, asked[3]: np.ones(4)}
    # The last document is judged relevant to the query of its id: both are merely numbered alike.
    grades = {asked[0]: {names[1]: 2.0, names[0]: 0.0}, asked[1]: {names[0]: 1.0}, asked[2]: {names[-1]: 1.0}}
    grades[asked[3]] = {names[2]: 3.0}
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps({"_id": n, "text": f"text {n}"}) + "\n" for n in names))
    (tmp_path / "queries.jsonl").write_text("".join(json.dumps({"_id": n, "text": f"ask {n}"}) + "\n" for n in asked))
    lines = [f"{query}\t{other}\t{grade}\n" for query, of_query in grades.items() for other, grade in of_query.items()]
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    found = load_judged(str(tmp_path))
    labels = [text.label or "" for text in found.queries.texts]
    judged = pick_judged(
        [text.text for text in found.documents.texts],
        [(text.text, relevant_of(text.label or "")) for text in found.queries.texts],
        *(count, 10, 0),
        [own_of(label) for label in labels],
    )
    given = {
        "document": np.stack([vectors[text.removeprefix("text ")] for text in judged.documents]),
        "query": np.stack([at[text.removeprefix("ask ")] for text in judged.queries]),
    }
    scores = Retrieval(judged, np.ones(count), seed=0).outcomes(given)
    for text, score in zip(judged.queries, scores, strict=True):
        name = text.removeprefix("ask ")
        relevant = {other: grade for other, grade in grades[name].items() if grade > 0}
        ranking = ranked_by_hand(vectors, (name, at[name]), set(relevant))
        gain = sum(relevant.get(other, 0.0) / log2(rank + 2) for rank, other in enumerate(ranking))
        best = sum(grade / log2(rank + 2) for rank, grade in enumerate(sorted(relevant.values(), reverse=True)))
        assert score == pytest.approx(gain / best), name
    if count == 3:
        ranking = nearest(given["document"], given["query"], judged.own)
        assert sorted((ranking == -1).sum(axis=1).tolist()) == [0, 0, 1, 1]


def test_queries_that_share_a_document_are_one_observation() -> None:
    """Asked twice, a question adds nothing: the interval of a gain is that of the questions asked once."""

    def gain(repeats: int) -> tuple[Retrieval, np.ndarray, np.ndarray]:
        documents, queries = (tuple(f"{kind}{i}" for i in range(24)) for kind in "dq")
        asked = [(query, {i: 1.0}) for i, query in enumerate(queries) for _ in range(repeats)]
        judged = Judgements(documents, tuple(query for query, _ in asked), tuple(one for _, one in asked))
        before, after = np.random.default_rng(2).random((2, 24)).repeat(repeats, axis=1)
        return Retrieval(judged, np.ones(24), seed=0), before, after + 0.5

    task, before, after = gain(1)
    everything = np.ones(24, dtype=bool)
    once = task.interval(before, after, everything, 500, 0)
    assert once is not None
    assert once[0] < task.score(after, everything) - task.score(before, everything) < once[1]  # type: ignore[operator]
    few = np.arange(24) < 9
    assert task.interval(before, after, few, 500, 0) is None
    assert task.interval(before, after, ~few, 500, 0) != pytest.approx(once)
    task, before, after = gain(3)
    assert task.interval(before, after, np.ones(72, dtype=bool), 500, 0) == pytest.approx(once)
