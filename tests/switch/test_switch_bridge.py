"""Linear maps between two spaces: what they recover, beside slow versions, and that they are held out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

from embaudit.questions.switch.material import OldAndNew, search_of_vectors
from embaudit.questions.switch.quality import LAMBDAS, fit_least_squares, fit_orthogonal
from embaudit.questions.switch.search import MIXED, NEW, measure_search

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
