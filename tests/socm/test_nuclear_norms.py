"""The two ways to nuclear norms against singular values; the GPU's way runs here on torch's CPU device."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_clouds import clouds_from, random_texts, table_of

from embaudit.measures.socm.nuclear import (
    Eigenvalues,
    Polar,
    newton_schulz_scales,
    nuclear_norms_on,
    singular_value_sums,
)


def matrices(seed: int, count: int, rows: int, d: int, rank: int | None = None) -> np.ndarray:
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(count, rows, d)) * np.geomspace(1, 1e-3, d)
    if rank is not None:
        X[:, rank:] = 0
    return X


def by_loops(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.array([[np.linalg.norm(a @ b.T, "nuc") for b in B] for a in A])


@pytest.mark.parametrize("norms", [Eigenvalues(), Eigenvalues(1), Polar("cpu")], ids=["cpu", "one thread", "polar"])
@pytest.mark.parametrize(("v", "w"), [(3, 7), (7, 3), (5, 5), (1, 4)])
def test_grids_and_pairs_agree_with_singular_values(norms: Eigenvalues | Polar, v: int, w: int) -> None:
    A, B = matrices(0, 4, v, 12), matrices(1, 3, w, 12)
    assert norms.grid(A, B) == pytest.approx(by_loops(A, B), rel=1e-7)
    assert norms.paired(A[:3], B) == pytest.approx(by_loops(A, B)[range(3), range(3)], rel=1e-7)
    assert singular_value_sums(A[:3], B) == pytest.approx(by_loops(A, B)[range(3), range(3)])


@pytest.mark.parametrize("norms", [Eigenvalues(), Polar("cpu")], ids=["eigenvalues", "polar"])
def test_zero_rows_and_products_of_low_rank_are_no_trouble(norms: Eigenvalues | Polar) -> None:
    A, B = matrices(0, 3, 8, 12, rank=2), matrices(1, 2, 6, 12)
    assert norms.grid(A, B) == pytest.approx(by_loops(A, B), rel=1e-7)
    assert norms.grid(np.zeros_like(A), B) == pytest.approx(np.zeros((3, 2)))


@given(seed=st.integers(0, 10**6), floor=st.sampled_from([1e-4, 1e-8, 1e-14]))
@settings(max_examples=20)
def test_the_polar_factor_of_badly_conditioned_matrices(seed: int, floor: float) -> None:
    """Singular values from 1 down to 1e-14: what is missed is below n times the floor."""
    generator = np.random.default_rng(seed)
    U, V = (np.linalg.qr(generator.normal(size=(9, 9)))[0] for _ in range(2))
    M = (U * np.geomspace(1, floor, 9)) @ V
    found = Polar("cpu").paired(M[None], np.eye(9)[None])[0]
    assert found == pytest.approx(np.geomspace(1, floor, 9).sum(), abs=9 * 1e-9)


def test_the_scales_bring_the_floor_to_one() -> None:
    values = np.geomspace(1e-10, 1, 200)
    scales = newton_schulz_scales(1e-10)
    for scale in scales:
        values = 0.5 * scale * values * (3 - (scale * values) ** 2)
        assert values.max() <= 1 + 1e-12
    assert np.abs(values - 1).max() < 1e-6
    # A plain iteration multiplies small values by 1.5 a step: 57 steps for the same floor.
    assert len(scales) <= 30


def test_half_the_digits_are_enough_for_a_polar_factor() -> None:
    """Float32, as on a device without float64: 1e-5 of the norm, which roots of float32 eigenvalues do not reach."""
    A, B = matrices(0, 6, 20, 64), matrices(1, 6, 24, 64)
    norms = Polar("cpu", is_double=False)
    exact = singular_value_sums(A, B)
    assert norms.paired(A, B) == pytest.approx(exact, rel=1e-5)
    product = (A @ B.swapaxes(1, 2)).astype(np.float32)
    gram = product @ product.swapaxes(1, 2)
    roots = np.sqrt(np.linalg.eigvalsh(gram).clip(min=0)).sum(axis=1)
    assert np.abs(roots / exact - 1).max() > np.abs(norms.paired(A, B) / exact - 1).max()


def test_all_pairs_are_the_same_either_way() -> None:
    clouds = clouds_from(random_texts(4, 14, 8, longest=20))
    one, other = table_of(clouds, norms=Eigenvalues()), table_of(clouds, shards=3, norms=Polar("cpu"))
    assert set(one) == set(other)
    assert max(abs(np.subtract(one[pair], other[pair])).max() for pair in one) < 1e-7


def test_the_device_decides() -> None:
    assert nuclear_norms_on("cpu").name == "eigenvalues"
    assert nuclear_norms_on("cuda:1").name == "polar"
