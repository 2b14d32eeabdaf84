"""Spearman's rho and its p against scipy and against numbers worked out by hand."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from embaudit.corpora.scores import ScoredMeasure, average_over_tasks, correlate, spearman


@pytest.mark.parametrize("n", [3, 5, 7])
@pytest.mark.parametrize("ties", [False, True])
def test_a_small_p_counts_every_pairing(n: int, ties: bool) -> None:
    generator = np.random.default_rng(n)
    x, y = generator.normal(size=(2, n))
    if ties:
        x, y = np.round(x), np.round(y * 2)
        x[0], x[1], y[0], y[2] = 3, 4, -3, 4
    found = spearman(x.tolist(), y.tolist())
    assert found.rho == pytest.approx(stats.spearmanr(x, y).statistic)
    # rho is Pearson's correlation of the ranks.
    orders, ranks = (
        stats.zscore(values, axis=-1) for values in ([*permutations(stats.rankdata(x))], stats.rankdata(y))
    )
    everything = orders @ ranks / n
    tail = min(np.mean(everything >= found.rho - 1e-12), np.mean(everything <= found.rho + 1e-12))
    assert found.p == pytest.approx(min(1.0, 2 * tail))
    assert (found.n, found.method) == (n, "exact")


def test_the_exact_p_is_scipys() -> None:
    x, y = np.arange(8.0), np.array([2.0, 1, 4, 3, 3, 6, 8, 7])
    wanted = stats.permutation_test(
        (x,), lambda x: stats.spearmanr(x, y).statistic, permutation_type="pairings", n_resamples=100, vectorized=False
    )
    exact = stats.permutation_test(
        (stats.rankdata(x),),
        lambda ranks, axis=-1: np.sum(ranks * stats.rankdata(y), axis=axis),
        permutation_type="pairings",
        vectorized=True,
        n_resamples=np.inf,
        batch=10_000,
    )
    found = spearman(x.tolist(), y.tolist())
    assert found.rho == pytest.approx(wanted.statistic)
    assert found.p == pytest.approx(exact.pvalue)


def test_perfect_order_of_three_means_little() -> None:
    """Two of the six pairings are as extreme."""
    assert spearman([1, 2, 3], [10, 20, 30]).p == pytest.approx(2 / 6)


def test_from_ten_on_p_is_students_t() -> None:
    generator = np.random.default_rng(0)
    for n in (10, 12, 40):
        x, y = generator.normal(size=(2, n))
        found, wanted = spearman(x, y), stats.spearmanr(x, y)
        assert (found.rho, found.p, found.method) == (
            pytest.approx(wanted.statistic),
            pytest.approx(wanted.pvalue),
            "t",
        )
    assert spearman(range(9), range(9)).method == "exact"


@pytest.mark.parametrize(
    ("x", "y"), [([], []), ([1], [2]), ([1, 2], [2, 1]), ([1, 1, 1], [1, 2, 3]), ([1, 2, 3], [5, 5, 5])]
)
def test_where_there_is_no_order_there_is_no_rho(x: list[float], y: list[float]) -> None:
    found = spearman(x, y)
    assert (found.n, found.rho, found.p, found.method) == (len(x), None, None, None)


def test_averages_are_over_the_same_tasks() -> None:
    scores = {("a", "T"): 1.0, ("a", "U"): 3.0, ("b", "T"): 2.0, ("b", "U"): 6.0, ("b", "V"): 100.0}
    assert average_over_tasks(scores) == ({"a": 2.0, "b": 4.0}, ["T", "U"])
    assert average_over_tasks(scores, ["V", "T"]) == ({"b": 51.0}, ["T", "V"])
    assert average_over_tasks({("a", "T"): 1.0, ("b", "U"): 1.0}) == ({}, [])


def test_correlations_by_measure_corpus_and_task() -> None:
    values, scores = {"a": 1.0, "b": 2.0, "c": 3.0}, {"T": (9.0, 8.0, 7.0), "U": (1.0, 3.0, 2.0)}
    rows = [
        ScoredMeasure(one, task, score, measure, "wikipedia", value if measure == "socm" else -value)
        for measure in ("socm", "spread")
        for task, all_scores in scores.items()
        for (one, value), score in zip(values.items(), all_scores, strict=True)
    ]
    found = {(one.measure, one.task): one.correlation.rho for one in correlate(rows)}
    # Averages 5, 5.5, 4.5: ranks 2 3 1 against 1 2 3, d = 1 1 2, rho = 1 - 6·6/24.
    assert found == {
        ("socm", "T"): pytest.approx(-1),
        ("socm", "U"): pytest.approx(0.5),
        ("socm", "average of 2 tasks"): pytest.approx(-0.5),
        ("spread", "T"): pytest.approx(1),
        ("spread", "U"): pytest.approx(-0.5),
        ("spread", "average of 2 tasks"): pytest.approx(0.5),
    }
    assert [one.task for one in correlate(rows, only_average=True)] == ["average of 2 tasks"] * 2
