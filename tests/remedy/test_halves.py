"""Halves by content: stable, disjoint, and nothing that is shared lies on both sides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embaudit.corpora.downstream.labelled import Classification
from embaudit.corpora.downstream.material import GradedPairs, Judgements, LabelledTexts
from embaudit.corpora.downstream.retrieval import Retrieval, Similarity
from embaudit.corpora.downstream.task import in_report, units_of
from embaudit.corpora.draw import content_order

TEXTS = [f"text {i}" for i in range(41)]


def test_an_order_hangs_on_the_texts_and_the_seed_alone() -> None:
    forward = [TEXTS[place] for place in content_order(TEXTS, 0)]
    backward = TEXTS[::-1]
    assert [backward[place] for place in content_order(backward, 0)] == forward
    assert [TEXTS[place] for place in content_order(TEXTS, 1)] != forward


def test_units_are_connected_items() -> None:
    units = units_of(6, [(0, 3), (3, 1), (4, 5)])
    assert units[0] == units[1] == units[3]
    assert units[4] == units[5]
    assert len({units[0], units[2], units[4]}) == 3


@given(st.lists(st.integers(0, 12), min_size=2, max_size=60), st.integers(0, 5))
def test_halves_keep_units_whole_and_are_as_even_as_units_allow(of_unit: list[int], seed: int) -> None:
    units = np.array(of_unit)
    report = in_report([f"text {i}" for i in range(len(units))], units, seed)
    for unit in set(of_unit):
        assert len(set(report[units == unit])) == 1
    assert abs(int(report.sum()) - int((~report).sum())) <= np.bincount(units).max()


def test_halves_do_not_hang_on_the_order_of_a_file() -> None:
    units = np.arange(len(TEXTS))
    forward = in_report(TEXTS, units, 3)
    assert (in_report(TEXTS[::-1], units, 3)[::-1] == forward).all()
    assert (in_report(TEXTS, units, 4) != forward).any()


def test_every_class_is_halved() -> None:
    labels = ["a"] * 30 + ["b"] * 11
    report = in_report(TEXTS, np.arange(41), 0, labels)
    assert [int(report[:30].sum()), int(report[30:].sum())] == [15, 5]


def test_what_queries_share_is_on_one_side_and_fits_on_that_side_only() -> None:
    relevant = tuple({i // 3: 1.0} for i in range(30))
    judged = Judgements(tuple(f"d{i}" for i in range(25)), tuple(f"q{i}" for i in range(30)), relevant)
    task = Retrieval(judged, np.arange(25), seed=0)
    assert len(np.unique(task.items.units)) == 10
    report = task.items.is_report
    sides = [{place for q in np.flatnonzero(half) for place in relevant[q]} for half in (report, ~report)]
    assert not sides[0] & sides[1]
    fitted = set(np.flatnonzero(task.fitted_on["document"]).tolist())
    assert sides[1] <= fitted
    assert not sides[0] & fitted
    assert task.items.lengths.tolist() == [i // 3 for i in range(30)]


def test_pairs_with_a_common_sentence_are_one_unit() -> None:
    graded = GradedPairs(("a", "b", "c", "d"), ("x", "y", "a", "e"), (1.0, 2.0, 3.0, 4.0))
    items = Similarity(graded, np.array([[1, 2, 3, 4], [4, 3, 2, 1]]), seed=0).items
    assert items.units[0] == items.units[2]
    assert len(np.unique(items.units)) == 3
    assert items.lengths.tolist() == [4, 3, 3, 4]


@pytest.mark.parametrize("method", ["classification_knn", "classification_logistic"])
def test_classes_of_separated_clusters_are_found_and_random_ones_are_not(method: str) -> None:
    labels = tuple("ab"[i % 2] for i in range(80))
    labelled = LabelledTexts(tuple(f"text {i}" for i in range(80)), labels)
    task = Classification(method, labelled, np.arange(80), folds=4, neighbours=3, seed=0)  # type: ignore[arg-type]
    noise = np.random.default_rng(0).normal(size=(80, 6))
    told = noise * 0.05 + np.array([[1.0, 0, 0, 0, 0, 0] if label == "a" else [0, 1.0, 0, 0, 0, 0] for label in labels])
    assert task.outcomes({"text": told}).mean() == 1
    assert 0.3 < task.outcomes({"text": noise}).mean() < 0.7


def test_no_document_of_one_half_is_learned_from_for_the_other() -> None:
    """In the report half the labels are swapped: learned across the halves they would all be wrong."""
    labelled = LabelledTexts(tuple(f"text {i}" for i in range(80)), tuple("ab"[i % 2] for i in range(80)))
    task = Classification("classification_knn", labelled, np.arange(80), folds=4, neighbours=5, seed=0)
    is_first = (task.labels == "a") ^ task.items.is_report
    spread = np.random.default_rng(0).normal(size=(80, 4)) * 0.01
    vectors = spread + np.where(is_first[:, None], [1.0, 0, 0, 0], [0, 1.0, 0, 0])
    assert task.outcomes({"text": vectors}).mean() == 1
