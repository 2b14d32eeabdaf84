"""σ_a, norms of W_o W_v and inner products of PA, against singular values and matrices written out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_sentences import SENTENCES

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.measures.layers import terms
from embaudit.measures.layers.layers import measure_layers
from embaudit.measures.layers.steps import Collector, LayerSummaries
from embaudit.measures.layers.terms import centred_products, exact, krylov, largest_singular_values, value_output
from embaudit.words.errors import MeasureError


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


# ---- weights and products ----


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


# ---- the states that pooling averages: the last layer's output, or what a final norm makes of it ----


@pytest.fixture(scope="module")
def llama(sink_llama: Path) -> Checkpoint:
    return load_checkpoint(str(sink_llama), LoadOptions(device="cpu"))


def summaries(checkpoint: Checkpoint) -> LayerSummaries:
    collector = Collector()
    for batch in measure_layers(Encoder(checkpoint), SENTENCES):
        collector.add(batch)
    return collector.finish(checkpoint.model)


def pooled_by_definition(checkpoint: Checkpoint) -> tuple[float, float, float]:
    """Normalised spread, its ratio of means and the cosine, of the tokens that the encoder pools."""
    spreads, means, cosines = [], [], []
    for _, rows in Encoder(checkpoint).token_embeddings(SENTENCES):
        X = rows.astype(np.float64)
        spreads.append(float(np.square(X - X.mean(0)).sum(1).mean()))
        means.append(float(np.square(X.mean(0)).sum()))
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        cosines.append(float((unit @ unit.T).mean()))
    ratios = np.array(spreads) / np.array(means)
    return float(ratios.mean()), sum(spreads) / sum(means), float(np.mean(cosines))


def test_behind_a_final_norm_a_sink_token_no_longer_is_all_the_spread(llama: Checkpoint) -> None:
    found = summaries(llama)
    spread, of_means, cosine = pooled_by_definition(llama)
    assert found.pooled.has_final_norm
    assert found.pooled.texts == len(SENTENCES)
    assert found.pooled.means["normalised_spread"].value == pytest.approx(spread, rel=1e-5)
    assert found.pooled.means["within_text_cosine"].value == pytest.approx(cosine, rel=1e-5)
    assert found.pooled.normalised_spread_of_means == pytest.approx(of_means, rel=1e-5)
    last = found.layers[-1].means["normalised_spread"].value
    assert last is not None
    # One token of n far from all others: S(X)/‖μ(X)‖² is n − 1, whatever the others are like.
    assert last > 5
    assert spread < 1


def test_without_a_final_norm_the_last_layer_is_what_is_pooled(tiny: Checkpoint) -> None:
    found = summaries(tiny)
    assert not found.pooled.has_final_norm
    last = found.layers[-1]
    assert found.pooled.means == {name: last.means[name] for name in found.pooled.means}
    assert found.pooled.normalised_spread_of_means == last.of_means["normalised_spread"]
    assert found.pooled.texts == last.texts


def test_nan_from_the_final_norm_names_it_and_the_text(llama: Checkpoint) -> None:
    import torch

    weight = llama.model.norm.weight
    kept = weight.detach().clone()
    with torch.no_grad():
        weight[0] = float("nan")
    try:
        with pytest.raises(MeasureError, match="The norm after the last layer gives NaN or infinity for text 3"):
            summaries(llama)
    finally:
        with torch.no_grad():
            weight.copy_(kept)
