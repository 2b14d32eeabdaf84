"""Which texts a task takes, and what it says where there is no task to do."""

from __future__ import annotations

import pytest

from embaudit.corpora.downstream.material import pick_graded, pick_judged, pick_labelled
from embaudit.words.errors import NotMeasurable

LABELLED = [(f"text {i}", "ab"[i % 2]) for i in range(60)]


def test_one_class_is_no_classification() -> None:
    with pytest.raises(NotMeasurable, match="1 class among 30"):
        pick_labelled([(text, "a") for text, _ in LABELLED[:30]], 1_000, 5, 0)


def test_texts_without_labels_are_no_classification() -> None:
    with pytest.raises(NotMeasurable, match="none of its texts has a label"):
        pick_labelled([("a text", None)], 1_000, 5, 0)


def test_a_class_with_fewer_members_than_folds_is_left_out_and_named() -> None:
    found = pick_labelled([*LABELLED, *((f"rare {i}", "c") for i in range(9))], 1_000, 5, 0)
    assert found.left_out == ("c",)
    assert set(found.labels) == {"a", "b"}
    with pytest.raises(NotMeasurable, match="1 of them with at least 10"):
        pick_labelled([*LABELLED[::2], *((f"rare {i}", "c") for i in range(9))], 1_000, 5, 0)


def test_texts_are_drawn_by_content_and_seed() -> None:
    found = pick_labelled(LABELLED, 40, 5, 0)
    assert pick_labelled(LABELLED[::-1], 40, 5, 0) == found
    assert set(pick_labelled(LABELLED, 40, 5, 1).texts) != set(found.texts)
    assert len(found.texts) == 40
    assert dict(LABELLED)[found.texts[7]] == found.labels[7]


def test_relevant_documents_come_first_and_keep_their_queries() -> None:
    documents = [f"d{i}" for i in range(50)]
    queries = [(f"q{i}", {i: 1.0, 49 - i: 2.0}) for i in range(10)]
    judged = pick_judged(documents, queries, 14, 5, 0)
    assert len(judged.queries) == 5
    assert len(judged.documents) == 14
    for query, relevant in zip(judged.queries, judged.relevant, strict=True):
        number = int(query[1:])
        assert {judged.documents[place]: grade for place, grade in relevant.items()} == {
            f"d{number}": 1.0,
            f"d{49 - number}": 2.0,
        }
    # The relevant ones stay even where they are more than asked for.
    assert len(pick_judged(documents, queries, 2, 10, 0).documents) == 20


def test_a_handful_of_queries_is_no_retrieval() -> None:
    with pytest.raises(NotMeasurable, match="too few"):
        pick_judged(["d", "e"], [("q", {0: 1.0})] * 3, 10, 10, 0)
    with pytest.raises(NotMeasurable, match="too few"):
        pick_judged(["d"], [(f"q{i}", {0: 1.0}) for i in range(9)], 10, 10, 0)


def test_pairs_without_scores_or_with_one_score_are_no_sts() -> None:
    pairs = [(f"a{i}", f"b{i}", float(i)) for i in range(8)]
    assert len(pick_graded([*pairs, ("x", "y", None)], 100, 0).scores) == 8
    with pytest.raises(NotMeasurable):
        pick_graded([(first, second, None) for first, second, _ in pairs], 100, 0)
    with pytest.raises(NotMeasurable, match="all have the same score"):
        pick_graded([(first, second, 3.0) for first, second, _ in pairs], 100, 0)
