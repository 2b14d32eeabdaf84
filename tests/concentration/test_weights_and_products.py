"""Norms of W_o W_v and inner products of PA, against matrices written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from embaudit.measures.layers import terms
from embaudit.measures.layers.terms import centred_products, value_output


def test_norms_of_the_heads_maps_are_those_of_the_d_by_d_matrices() -> None:
    generator = torch.Generator().manual_seed(0)
    heads, size, d = 3, 5, 14
    V = torch.randn(heads, size, d, generator=generator)
    W = torch.randn(heads, d, size, generator=generator)
    found = value_output(V, W)
    maps = [(W[h] @ V[h]).double().numpy() for h in range(heads)]
    np.testing.assert_allclose(found.head_norm, [np.linalg.norm(M, 2) for M in maps], rtol=1e-6)
    assert found.norm == pytest.approx(np.linalg.norm(sum(maps), 2), rel=1e-6)
    wanted = [[np.trace(a.T @ b) for b in maps] for a in maps]
    np.testing.assert_allclose(found.products, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.value_norm, [np.linalg.norm(V[h].double(), 2) for h in range(heads)], rtol=1e-6)
    assert found.dimension == d


def test_heads_wider_than_the_model() -> None:
    """Gemma: H·d_h may exceed d, and one head's d_h too."""
    generator = torch.Generator().manual_seed(1)
    V, W = torch.randn(2, 9, 4, generator=generator), torch.randn(2, 4, 9, generator=generator)
    found = value_output(V, W)
    np.testing.assert_allclose(
        found.head_norm, [np.linalg.norm((W[h] @ V[h]).double().numpy(), 2) for h in range(2)], rtol=1e-6
    )


@pytest.mark.parametrize("step", [10, 2**22])
def test_products_are_those_of_the_centred_matrices(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In slices of rows too, as a long text needs them."""
    monkeypatch.setattr(terms, "WEIGHTS_PER_STEP", step)
    A = torch.softmax(2 * torch.randn(2, 3, 7, 7, generator=torch.Generator().manual_seed(2)), dim=-1)
    P = np.eye(7) - np.ones((7, 7)) / 7
    found = centred_products(A).numpy()
    for text in range(2):
        centred = [P @ A[text, h].double().numpy() for h in range(3)]
        wanted = [[np.sum(a * b) for b in centred] for a in centred]
        np.testing.assert_allclose(found[text], wanted, rtol=1e-9)
        mean = P @ A[text].double().numpy().mean(0)
        assert found[text].mean() == pytest.approx(np.sum(mean * mean))


def test_a_sink_loses_no_digits() -> None:
    """Columns near one everywhere: what is left after centring is small, and must be right."""
    noise = 1e-5 * torch.rand(1, 1, 50, 50, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    A = noise.clone()
    A[..., 0] = 1 - A[..., 1:].sum(-1)
    centred = A[0, 0] - A[0, 0].mean(0)
    assert float(centred_products(A)[0, 0, 0]) == pytest.approx(float((centred * centred).sum()), rel=1e-9)
