"""Clustering as a task of two halves: V-measures of resamples by scikit-learn, and who is clustered with whom."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.metrics import v_measure_score

from embaudit.corpora.downstream.labelled import Clustering, v_measures
from embaudit.corpora.downstream.material import LabelledTexts

TEXTS, LABELS = tuple(f"text {i}" for i in range(60)), tuple("abc"[i % 3] for i in range(60))


def a_task(starts: int = 4, labels: tuple[str, ...] = LABELS) -> Clustering:
    return Clustering(LabelledTexts(TEXTS, labels), np.ones(60), starts=starts, seed=0, in_halves=True)


def vectors(distance: float, seed: int = 0) -> dict[str, np.ndarray]:
    """Of each class around a direction of its own, ``distance`` noises long."""
    noise = np.random.default_rng(seed).normal(size=(60, 8))
    return {"text": noise + distance * np.eye(8)[["abc".index(label) for label in LABELS]]}


@given(seed=st.integers(0, 100), n=st.integers(1, 20), classes=st.integers(1, 4), clusters=st.integers(1, 5))
def test_a_resample_is_the_texts_that_often(seed: int, n: int, classes: int, clusters: int) -> None:
    generator = np.random.default_rng(seed)
    labels, found = generator.integers(0, classes, n), generator.integers(0, clusters, n)
    weights = generator.multinomial(n, np.full(n, 1 / n), size=5)
    expected = [v_measure_score(np.repeat(labels, one), np.repeat(found, one)) for one in weights]
    assert v_measures(labels, found, weights) == pytest.approx(expected, abs=1e-9)


def test_each_half_is_clustered_alone() -> None:
    task, given_ = a_task(), vectors(2.0)
    outcomes = task.outcomes(given_)
    assert [int(task.items.is_report[np.array(LABELS) == one].sum()) for one in "abc"] == [10, 10, 10]
    assert (task.fitted_on["text"] == ~task.items.is_report).all()
    for half in (task.items.is_report, ~task.items.is_report):
        rows = given_["text"][half] / np.linalg.norm(given_["text"][half], axis=1, keepdims=True)
        for start in range(4):
            expected = KMeans(3, n_init=1, random_state=start).fit(rows).labels_
            assert (outcomes[half, start] == expected).all()
        wanted = [v_measure_score(np.array(LABELS)[half], outcomes[half, start]) for start in range(4)]
        assert task.score(outcomes, half) == pytest.approx(np.mean(wanted))


def test_a_real_gain_has_an_interval_above_0_and_other_noise_has_not() -> None:
    task = a_task()
    report = task.items.is_report
    near, far, other = (task.outcomes(vectors(*one)) for one in ((1.0, 0), (9.0, 0), (1.0, 5)))
    gain = task.interval(near, far, report, 300, 0)
    assert gain is not None
    assert 0.1 < gain[0] < (task.score(far, report) or 0) - (task.score(near, report) or 0) < gain[1]
    assert task.interval(near, far, report, 300, 0) == gain
    noise = task.interval(near, other, report, 300, 0)
    assert noise is not None
    assert noise[0] < 0 < noise[1]
    assert task.interval(near, near.copy(), report, 300, 0) is None


def test_starts_are_in_the_interval() -> None:
    """Of the same texts: where starts disagree, the mean of a few of them is not certain."""
    task = a_task(starts=2)
    report = task.items.is_report
    labels = task.labels
    poor = np.zeros_like(labels)
    before, mixed = np.stack([poor, poor], axis=1), np.stack([labels, poor], axis=1)
    assert task.interval(before, mixed, report, 300, 0) == pytest.approx((0, 1), abs=1e-9)
    # With as many starts as agree, nothing is left but 1.
    assert task.score(np.stack([labels, labels], axis=1), report) == 1


def test_too_little_has_no_score_and_no_interval() -> None:
    task = a_task()
    outcomes = task.outcomes(vectors(2.0))
    one_class = np.array(LABELS) == "a"
    assert task.score(outcomes, one_class) is None
    few = np.flatnonzero(task.items.is_report)[:9]
    assert task.interval(outcomes, outcomes[::-1], few, 100, 0) is None
