"""What a cut-off becomes: a slow implementation beside it, known scales, and how often its interval holds."""

from __future__ import annotations

from itertools import pairwise
from math import comb

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis.extra.numpy import arrays
from some_rows import mostly_slow

from embaudit.corpora.downstream.material import best_f1, lets_other_share_through, share_of, transferred
from embaudit.questions.switch.material import OldAndNew, search_of_vectors
from embaudit.questions.switch.quality import LAMBDAS, fit_least_squares, fit_orthogonal
from embaudit.questions.switch.search import MIXED, NEW, measure_search
from embaudit.statistics import MIN_UNITS

# Few different values, so that there are ties.
VALUES = st.integers(-20, 20).map(lambda number: number / 20)


def slow_interval(x: list[float], y: list[float], units: list[int], t: float) -> tuple[float | None, float | None]:
    """Every gap between the second similarities, tried by counting."""
    order = sorted(range(len(y)), key=lambda place: y[place])
    possible = []
    for failing in range(len(y) + 1):
        fails = set(order[:failing])
        signs = []
        for unit in set(units):
            own = [place for place in range(len(x)) if units[place] == unit]
            come = sum(x[place] <= t and place not in fails for place in own)
            cease = sum(x[place] > t and place in fails for place in own)
            signs.append((come > cease) - (come < cease))
        ups, downs = signs.count(1), signs.count(-1)
        total, least = ups + downs, min(ups, downs)
        tail = sum(comb(total, k) for k in range(least)) + comb(total, least) / 2
        if ups == downs or 2 * tail / 2**total > 0.05:
            possible.append(failing)
    ranked = [y[place] for place in order]
    low, high = possible[0], possible[-1]
    return (ranked[low - 1] if low else None), (ranked[high] if high < len(y) else None)


@given(st.data(), st.integers(12, 40))
def test_the_interval_is_that_of_counting(data: st.DataObject, n: int) -> None:
    x, y = (data.draw(arrays(np.float64, n, elements=VALUES)) for _ in range(2))
    units = data.draw(arrays(np.int64, n, elements=st.integers(0, n)))
    t = data.draw(VALUES)
    found = transferred(x, y, units, t, (-2.0, 2.0))
    if not 0 < (x > t).sum() < n:
        assert found.value is None
        return
    if len(set(units.tolist())) < MIN_UNITS:
        assert (found.low, found.high) == (None, None)
        return
    low, high = slow_interval(x.tolist(), y.tolist(), units.tolist(), t)
    expected = -2.0 if low is None else low, 2.0 if high is None else high
    if expected[0] >= expected[1]:
        assert found.low is None
        return
    assert found.value is not None
    assert (found.low, found.high) == (min(expected[0], found.value), max(expected[1], found.value))


@given(st.integers(0, 10_000), st.floats(0.05, 0.95), st.floats(0.1, 3), st.floats(-1, 1))
def test_on_a_stretched_scale_the_cut_off_is_stretched(seed: int, share: float, by: float, shift: float) -> None:
    x = np.random.default_rng(seed).normal(size=60)
    t = float(np.quantile(x, share))
    found = transferred(x, by * x + shift, np.arange(60), t)
    assert found.value == pytest.approx(by * t + shift)


def test_a_cut_off_that_lets_all_or_none_through_becomes_nothing() -> None:
    x = np.linspace(0, 1, 50)
    assert transferred(x, x, np.arange(50), 1.0).value is None
    assert transferred(x, x, np.arange(50), -0.1).value is None


def test_too_few_pairs_above_it_bound_it_from_below_only() -> None:
    x = np.linspace(0, 1, 100)
    few = transferred(x, x, np.arange(100), 0.97, (-1.0, 1.5))
    assert few.high == 1.5
    assert few.low is not None
    assert few.low > 0.8
    # Without an end of the scale, there is no interval rather than half of one.
    assert transferred(x, x, np.arange(100), 0.97).low is None


@pytest.mark.parametrize("dependence", [0.0, 0.7, 0.99])
@pytest.mark.parametrize("n", mostly_slow([150, 600], 1))
def test_the_interval_holds_the_number_of_the_whole_population(dependence: float, n: int) -> None:
    """Two normal scales: P(x > t) = P(y > t′) for t′ = 0.5 + t / 2, whatever binds them."""
    generator, t, held, rounds = np.random.default_rng(1), 1.3, 0, 200
    for _ in range(rounds):
        x = generator.normal(size=n)
        y = 0.5 + (dependence * x + np.sqrt(1 - dependence**2) * generator.normal(size=n)) / 2
        found = transferred(x, y, np.arange(n), t, (-9.0, 9.0))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.5 + t / 2 <= found.high
    assert held / rounds >= 0.92


@pytest.mark.slow
@given(st.data(), st.integers(12, 30))
def test_another_share_is_told_where_the_interval_is_clear_of_the_number(data: st.DataObject, n: int) -> None:
    """The test at one number, and the numbers that it does not reject."""
    x, y = (data.draw(arrays(np.float64, n, elements=VALUES, unique=True)) for _ in range(2))
    t = data.draw(VALUES) + 0.025
    found = transferred(x, y, np.arange(n), t, (-2.0, 2.0))
    if found.low is not None and found.high is not None:
        assert lets_other_share_through(x, y, np.arange(n), t) == (not found.low <= t < found.high)


@given(st.lists(VALUES, min_size=2, max_size=15), st.lists(VALUES, min_size=1, max_size=15))
def test_the_best_f1_is_that_of_trying_all(matching: list[float], unrelated: list[float]) -> None:
    def f1(t: float) -> float:
        right, wrong = sum(one > t for one in matching), sum(one > t for one in unrelated)
        return 2 * right / (right + wrong + len(matching))

    values = sorted([*matching, *unrelated])
    middles = [(one + two) / 2 for one, two in pairwise(values)]
    assert f1(best_f1(np.array(matching), np.array(unrelated))) == pytest.approx(max(map(f1, middles)))


def test_a_share_of_none_is_not_certain() -> None:
    found = share_of(np.zeros(50, dtype=bool), np.arange(50))
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(1 - 0.025 ** (1 / 50))
    assert share_of(np.zeros(50, dtype=bool), np.zeros(50)).high is None


# ---- linear maps between two spaces: what they recover, beside slow versions, and that they are held out ----


GENERATOR = np.random.default_rng(0)


def rotation(size: int) -> np.ndarray:
    return np.linalg.qr(GENERATOR.normal(size=(size, size)))[0]


@pytest.mark.parametrize(("wide", "narrow"), [(6, 6), (9, 6), (6, 9)])
def test_a_rotation_is_recovered(wide: int, narrow: int) -> None:
    """Also from more dimensions, if the others are empty, and into more."""
    core = GENERATOR.normal(size=(40, min(wide, narrow)))
    new = np.pad(core, [(0, 0), (0, wide - core.shape[1])]) @ rotation(wide) + 0.3
    old = np.pad(core, [(0, 0), (0, narrow - core.shape[1])]) @ rotation(narrow) - 0.2
    fitted = fit_orthogonal(new[:20], old[:20])
    np.testing.assert_allclose(fitted(new[20:]), old[20:], atol=1e-9)
    rank = min(wide, narrow)
    singular = np.linalg.svd(fitted.matrix, compute_uv=False)
    np.testing.assert_allclose(singular[:rank], singular[0], rtol=1e-9)


def test_no_other_rotation_is_closer() -> None:
    new, old = (GENERATOR.normal(size=(30, 4)) for _ in range(2))
    fitted = fit_orthogonal(new, old)
    X, Y = new - new.mean(0), old - old.mean(0)
    best = ((X @ fitted.matrix - Y) ** 2).sum()
    for _ in range(300):
        one = rotation(4)
        # With the best factor for this rotation.
        scale = max(np.trace(one.T @ X.T @ Y), 0) / (X**2).sum()
        assert ((scale * X @ one - Y) ** 2).sum() >= best - 1e-9


@pytest.mark.parametrize(("n", "dimension"), [(30, 4), (10, 14)])
def test_the_penalty_is_that_of_leaving_each_text_out(n: int, dimension: int) -> None:
    new = GENERATOR.normal(size=(n, dimension))
    old = new @ GENERATOR.normal(size=(dimension, 3)) + GENERATOR.normal(size=(n, 3))

    def solved(new: np.ndarray, old: np.ndarray, penalty: float) -> np.ndarray:
        X, Y = new - new.mean(0), old - old.mean(0)
        return np.linalg.solve(X.T @ X + penalty * np.eye(dimension), X.T @ Y)

    def error(penalty: float) -> float:
        found = []
        for place in range(n):
            others = np.delete(np.arange(n), place)
            W = solved(new[others], old[others], penalty)
            guess = (new[place] - new[others].mean(0)) @ W + old[others].mean(0)
            found.append(((guess - old[place]) ** 2).mean())
        return float(np.mean(found))

    grid = LAMBDAS * ((new - new.mean(0)) ** 2).sum() / dimension
    fitted = fit_least_squares(new, old)
    assert fitted.penalty == pytest.approx(min(grid, key=error))
    np.testing.assert_allclose(fitted.matrix, solved(new, old, fitted.penalty), rtol=1e-6, atol=1e-9)


def test_a_decomposition_that_does_not_converge_is_made_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """As LAPACK's fast one did with 200 of 4,000 passages of 384 dimensions, on one processor."""
    new, old = GENERATOR.normal(size=(30, 12)), GENERATOR.normal(size=(30, 12))
    known = [fit(new, old).matrix for fit in (fit_orthogonal, fit_least_squares)]

    def fails(*_: object, **__: object) -> None:
        raise np.linalg.LinAlgError("SVD did not converge")

    real = scipy.linalg.svd
    monkeypatch.setattr(np.linalg, "svd", fails)
    monkeypatch.setattr(scipy.linalg, "svd", lambda X, *a, **k: real(X, *a, **k) if "lapack_driver" in k else fails())
    for matrix, fit in zip(known, (fit_orthogonal, fit_least_squares), strict=True):
        np.testing.assert_allclose(fit(new, old).matrix, matrix, atol=1e-9)


def test_a_map_is_tried_on_texts_that_it_was_not_fitted_on() -> None:
    """Two spaces that have nothing in common, with more dimensions than texts: in the fit, the map would be perfect."""
    both = OldAndNew(GENERATOR.normal(size=(300, 200)), GENERATOR.normal(size=(300, 200)))
    found = measure_search(search_of_vectors(both))
    assert found.bridge is not None
    assert found.fitted_on == (150, 150)
    for name in ("orthogonal map", "least-squares map", MIXED):
        share = found.ways[name].found
        # By chance, 10 of 150.
        assert share.value == pytest.approx(1 / 15, abs=0.03)
    assert found.ways[NEW].found.value == 1.0
