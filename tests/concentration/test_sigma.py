"""σ_a = ‖PA‖₂ by both ways, against numpy's singular values of PA written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.measures.layers import terms
from embaudit.measures.layers.terms import exact, krylov, largest_singular_values


def attention(seed: int, batch: int, n: int, sharpness: float, sink: float = 0.0) -> torch.Tensor:
    """Softmax weights; ``sink`` draws every row to a few columns."""
    generator = torch.Generator().manual_seed(seed)
    logits = sharpness * torch.randn(batch, n, n, generator=generator)
    return torch.softmax(logits + sink * torch.randn(batch, 1, n, generator=generator), dim=-1)


def by_definition(A: torch.Tensor) -> np.ndarray:
    n = A.shape[-1]
    P = np.eye(n) - np.ones((n, n)) / n
    return np.array([np.linalg.svd(P @ one, compute_uv=False)[0] for one in A.double().numpy()])


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 40), sharpness=st.floats(0.01, 8), sink=st.sampled_from([0.0, 3, 20])
)
def test_both_ways_agree_with_the_singular_value(seed: int, n: int, sharpness: float, sink: float) -> None:
    A = attention(seed, 3, n, sharpness, sink)
    wanted = by_definition(A)
    # The Gram's root loses half of the digits of a σ_a that is far below 1.
    np.testing.assert_allclose(exact(A).numpy(), wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(krylov(A).numpy(), wanted, rtol=terms.RELATIVE_ERROR, atol=1e-6)


@pytest.mark.parametrize("sink", [0.0, 1.0, 3.0, 4.0, 12.0, 20.0])
@pytest.mark.parametrize("sharpness", [0.01, 0.05, 1.5, 8.0])
@pytest.mark.parametrize("n", [128, 384])
def test_attention_weights_come_within_a_millionth(n: int, sharpness: float, sink: float) -> None:
    """Flat attention to a sink, too: a column of weights near 1 that differ by 1e-4, which float32 must keep."""
    A = attention(n + int(1000 * sharpness + sink), 2, n, sharpness, sink)
    np.testing.assert_allclose(largest_singular_values(A).numpy(), by_definition(A), rtol=2e-6)


# Largest singular values from 1 down to 1 − width, the j-th at 1 − width·(j/m)^power, and the rest so much lower.
FLAT = [
    (width, count, power, rest)
    for width in (0.0003, 0.0007, 0.001, 0.0014, 0.003, 0.01, 0.1)
    for count, power, rest in ((3, 1, 0.1), (8, 0.3, 0.1), (20, 0.5, 0.97), (129, 0.3, 1), (129, 1, 1), (129, 2, 1))
]


@pytest.mark.parametrize(("width", "count", "power", "rest"), FLAT)
def test_the_stated_error_is_kept_where_the_largest_are_many_and_close(
    width: float, count: int, power: float, rest: float
) -> None:
    """A residual bounds the distance to an eigenvalue, not to the largest."""
    values = np.full(129, (1 - width) * rest)
    values[:count] = 1 - width * np.linspace(0, 1, count) ** power
    A = torch.cat([of_spectrum(values, seed) for seed in range(5)])
    np.testing.assert_allclose(krylov(A).numpy(), 1, rtol=terms.RELATIVE_ERROR)


def of_spectrum(values: np.ndarray, seed: int) -> torch.Tensor:
    """A matrix whose columns sum to zero, with these singular values and random vectors."""
    generator = np.random.default_rng(seed)
    n = len(values) + 1
    left = np.linalg.qr(np.c_[np.ones(n), generator.normal(size=(n, n - 1))])[0][:, 1:]
    right = np.linalg.qr(generator.normal(size=(n, n - 1)))[0]
    return torch.tensor((left * values) @ right.T, dtype=torch.float32)[None]


def test_what_has_not_converged_is_done_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flat spectrum and two steps: the Krylov space cannot know, and must not guess."""
    monkeypatch.setattr(terms, "STEPS", 2)
    n = 220
    permutation = torch.eye(n)[torch.randperm(n, generator=torch.Generator().manual_seed(3))][None]
    noisy = attention(5, 1, n, 3.0)
    A = torch.cat([permutation, noisy])
    np.testing.assert_allclose(krylov(A, 1e-9).numpy(), by_definition(A), rtol=1e-6)


def test_an_attention_sink_has_no_sigma() -> None:
    """All rows alike: PA = 0, where ‖A − 11ᵀ/n‖ would be √n."""
    A = torch.zeros(1, 512, 512)
    A[:, :, 0] = 1
    assert float(largest_singular_values(A)) == pytest.approx(0, abs=1e-6)
    assert float(torch.linalg.matrix_norm(A[0] - 1 / 512, 2)) > 20


def test_one_token_has_none_and_two_have_the_formula() -> None:
    assert float(largest_singular_values(torch.ones(1, 1, 1))) == 0
    A = torch.tensor([[[0.9, 0.1], [0.3, 0.7]]])
    # PA has the rows ±(a_1 − a_2)/2: its norm is ‖a_1 − a_2‖/√2.
    wanted = float((A[0, 0] - A[0, 1]).norm()) / 2**0.5
    assert float(largest_singular_values(A)) == pytest.approx(wanted)


def test_shapes_and_half_precision() -> None:
    A = attention(1, 6, 24, 2.0).view(2, 3, 24, 24)
    assert largest_singular_values(A).shape == (2, 3)
    half = largest_singular_values(A.to(torch.bfloat16))
    torch.testing.assert_close(half, largest_singular_values(A), rtol=1e-2, atol=1e-2)
    long = attention(2, 2, 256, 2.0)
    torch.testing.assert_close(
        largest_singular_values(long.to(torch.bfloat16)), largest_singular_values(long), rtol=1e-2, atol=1e-2
    )
