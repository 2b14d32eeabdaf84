"""Changes and their intervals, by hand; clusters against the definition of the V-measure."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from sklearn.metrics import v_measure_score

from embaudit.corpora.downstream.labelled import Clustering
from embaudit.corpora.downstream.material import LabelledTexts
from embaudit.corpora.downstream.task import Items, Vectors
from embaudit.measures.impact.arms import Cell, clean_and_poisoned


class Mean:
    """A task whose score is the mean of the outcomes; undefined for a negative one."""

    def __init__(self, units: np.ndarray) -> None:
        self.items = Items(np.ones(len(units)), units, np.ones(len(units), dtype=bool))

    def outcomes(self, vectors: Vectors) -> np.ndarray:
        return vectors["item"]

    def score(self, outcomes: np.ndarray, chosen: np.ndarray) -> float | None:
        return None if (outcomes[chosen] < 0).any() else float(outcomes[chosen].mean())


def outcomes(count: int = 400) -> tuple[np.ndarray, dict[Cell, list[np.ndarray]]]:
    generator = np.random.default_rng(0)
    clean = generator.random(count)
    worse = [clean * scale for scale in (0.5, 0.7)]
    ordinary = [clean * 0.98 + 0.01 * generator.random(count) for _ in range(3)]
    return clean, {("ordinary", "all"): ordinary, ("retention", "all"): worse}


def test_changes_are_from_clean_texts_and_beyond_ordinary_tokens() -> None:
    clean, poisoned = outcomes()
    score, effects = clean_and_poisoned(Mean(np.arange(400)), clean, poisoned, 2_000, 0)
    arm, tokens = effects["retention", "all"].arm, effects["retention", "all"].tokens
    assert score == pytest.approx(clean.mean())
    assert arm.score == pytest.approx(0.6 * clean.mean())
    assert [one.score for one in tokens] == pytest.approx([0.5 * clean.mean(), 0.7 * clean.mean()])
    ordinary = np.mean(poisoned["ordinary", "all"], axis=0)
    differences = {"change": 0.6 * clean - clean, "beyond": 0.6 * clean - ordinary}
    for name, by_item in differences.items():
        found = getattr(arm, name)
        assert found.value == pytest.approx(by_item.mean())
        # Of a mean the bootstrap's deviation is that of Student's interval.
        half = 1.96 * by_item.std() / np.sqrt(len(by_item))
        assert (found.high - found.low) / 2 == pytest.approx(half, rel=0.06)
        assert found.high + found.low == pytest.approx(2 * found.value)
    assert effects["ordinary", "all"].arm.beyond is None
    assert effects["ordinary", "all"].tokens[0].beyond is None


def test_items_of_one_unit_are_drawn_together() -> None:
    clean, poisoned = outcomes(40)
    repeated = {cell: [np.repeat(one, 10) for one in tokens] for cell, tokens in poisoned.items()}
    alone, together = (
        clean_and_poisoned(Mean(units), np.repeat(clean, 10), repeated, 2_000, 0)[1]["retention", "all"].arm.change
        for units in (np.arange(400), np.repeat(np.arange(40), 10))
    )
    assert together.value == alone.value
    widths = [one.high - one.low for one in (together, alone) if one.high is not None and one.low is not None]
    assert widths[0] / widths[1] == pytest.approx(np.sqrt(10), rel=0.1)


def test_what_has_no_interval() -> None:
    clean, poisoned = outcomes(9)
    few = clean_and_poisoned(Mean(np.arange(9)), clean, poisoned, 100, 0)[1]["retention", "all"].arm
    assert few.change.value is not None
    assert (few.change.low, few.beyond and few.beyond.low) == (None, None)
    same = {("given", "half"): [clean_of := np.full(30, 0.5)]}
    _, effects = clean_and_poisoned(Mean(np.arange(30)), clean_of, same, 100, 0)
    assert (effects["given", "half"].arm.change.value, effects["given", "half"].arm.change.low) == (0.0, None)
    assert effects["given", "half"].arm.beyond is None, "there are no ordinary tokens to compare with"
    undefined = {("given", "half"): [np.full(30, -1.0)]}
    _, effects = clean_and_poisoned(Mean(np.arange(30)), clean_of, undefined, 100, 0)
    assert (effects["given", "half"].arm.score, effects["given", "half"].arm.change.value) == (None, None)


def v_measure(classes: list[str], clusters: list[int]) -> float:
    """2·h·c/(h + c), homogeneity h = 1 − H(C|K)/H(C) and completeness c = 1 − H(K|C)/H(K)."""

    def entropy(of: list, given: list) -> float:
        total = 0.0
        for one in set(given):
            inside = [a for a, b in zip(of, given, strict=True) if b == one]
            total -= sum(inside.count(a) / len(of) * log(inside.count(a) / len(inside)) for a in set(inside))
        return total

    whole = [0] * len(classes)
    homogeneity = 1 - entropy(classes, clusters) / entropy(classes, whole)
    completeness = 1 - entropy(clusters, classes) / entropy(clusters, whole)
    return 2 * homogeneity * completeness / (homogeneity + completeness)


def test_clusters_are_scored_by_the_v_measure() -> None:
    generator = np.random.default_rng(0)
    labels = [label for label in "abc" for _ in range(20)]
    centres = {label: generator.normal(size=4) for label in "abc"}
    vectors = np.array([centres[label] + 0.6 * generator.normal(size=4) for label in labels])
    task = Clustering(LabelledTexts(tuple(map(str, range(60))), tuple(labels)), np.ones(60), starts=2, seed=0)
    found = task.outcomes({"text": vectors})
    assert found.shape == (60, 2)
    expected = np.mean([v_measure(labels, found[:, start].tolist()) for start in range(2)])
    assert 0.2 < expected < 1
    assert task.score(found, np.arange(60)) == pytest.approx(expected)
    # Drawn with repetition, as a bootstrap does.
    drawn = generator.integers(60, size=60)
    again = np.mean([v_measure_score(np.array(labels)[drawn], found[drawn, start]) for start in range(2)])
    assert task.score(found, drawn) == pytest.approx(again)
    assert np.array_equal(task.outcomes({"text": 7 * vectors}), found), "by direction"
