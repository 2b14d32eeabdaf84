"""σ_a, σ_s, the bound and HC energy by layer, head and length, against numpy written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.anatomy import LayerState, anatomy_of, watching
from embaudit.measures.length import HeadLength
from embaudit.measures.length.heads import (
    _Observer,
    claimed_bound,
    deviations,
    frobenius,
    hc_energy,
    head_lengths,
)
from embaudit.words.errors import NotMeasurable

LENGTHS = (5, 30)
SPANS = [np.random.default_rng(seed).integers(9, 250, size=40).tolist() for seed in range(3)]


def states_of(model: Any, ids: list[list[int]]) -> list[LayerState]:
    states: list[LayerState] = []
    with watching(anatomy_of(model)) as run:
        run(torch.tensor(ids), states.append)
    return states


def logits_by_hand(checkpoint: Checkpoint, state: LayerState, text: int, head: int) -> np.ndarray:
    attention = checkpoint.model.encoder.layer[state.layer].attention.self
    H = state.H[text].double().numpy()
    rows = slice(8 * head, 8 * head + 8)
    Q, K = (
        H @ part.weight.detach().double().numpy()[rows].T + part.bias.detach().double().numpy()[rows]
        for part in (attention.query, attention.key)
    )
    return np.array([[sum(q * k for q, k in zip(one, two, strict=True)) / 8**0.5 for two in K] for one in Q])


def by_definition(checkpoint: Checkpoint, length: int) -> dict[tuple[int, int], dict[str, float]]:
    states = states_of(checkpoint.model, [checkpoint.with_special_tokens(span[:length]) for span in SPANS])
    n = length + 2
    P = np.eye(n) - np.ones((n, n)) / n
    found = {}
    for state in states:
        W_v = checkpoint.model.encoder.layer[state.layer].attention.self.value.weight.detach().double().numpy()
        for head in range(4):
            rows = []
            for text in range(len(SPANS)):
                S = logits_by_hand(checkpoint, state, text, head)
                A = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
                X = state.X[text].double().numpy()
                sigma_a, sigma_s, centred = np.linalg.svd(P @ A)[1][0], S.std(), (P @ S @ P).std()
                bounds = [float(claimed_bound(n, np.array(value))) for value in (sigma_s, centred)]
                rows.append(
                    {
                        "sigma_a": sigma_a,
                        "frobenius": np.linalg.norm(P @ A),
                        "sigma_s": sigma_s,
                        "sigma_s_centred": centred,
                        "bound": bounds[0],
                        "bound_centred": bounds[1],
                        "holds": float(sigma_a <= bounds[0]),
                        "holds_centred": float(sigma_a <= bounds[1]),
                        "sigma_a_value_norm": sigma_a * np.linalg.norm(W_v[8 * head : 8 * head + 8], 2),
                        "hc_energy": np.linalg.norm(P @ X) / np.linalg.norm(X),
                    }
                )
            found[state.layer, head] = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    return found


def test_every_column_is_its_definition(tiny: Checkpoint) -> None:
    found = head_lengths(Encoder(tiny), SPANS, LENGTHS)
    assert [(row.length, row.layer, row.head) for row in found] == [
        (length, layer, head) for length in LENGTHS for layer in range(2) for head in range(4)
    ]
    for length in LENGTHS:
        wanted = by_definition(tiny, length)
        for row in (row for row in found if row.length == length):
            assert (row.tokens, row.texts, row.is_causal) == (length + 2, 3, False)
            for name, value in wanted[row.layer, row.head].items():
                assert getattr(row, name) == pytest.approx(value, rel=1e-4, abs=1e-6), name


def test_values_depend_on_no_batch(tiny: Checkpoint) -> None:
    whole, single = (head_lengths(Encoder(tiny, size), SPANS, LENGTHS) for size in (4_096, 1))
    for one, two in zip(whole, single, strict=True):
        for name in ("sigma_a", "frobenius", "sigma_s", "sigma_s_centred", "hc_energy"):
            assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-5), name


def test_theorem_2_holds_for_every_head(tiny: Checkpoint) -> None:
    """‖HC[AXW_V]‖_F ≤ σ_a‖W_V‖₂‖HC[X]‖_F, text by text."""
    ids = [tiny.with_special_tokens(span) for span in SPANS]
    for state in states_of(tiny.model, ids):
        W_v = tiny.model.encoder.layer[state.layer].attention.self.value.weight.detach().double()
        for text in range(len(SPANS)):
            H = state.H[text].double()
            high = H - H.mean(dim=0)
            for head in range(4):
                W = W_v[8 * head : 8 * head + 8]
                out = state.attention[text, head].double() @ H @ W.T
                A = state.attention[text, head].double()
                factor = torch.linalg.matrix_norm(A - A.mean(dim=0), 2) * torch.linalg.matrix_norm(W, 2)
                assert (out - out.mean(dim=0)).norm() <= factor * high.norm() * (1 + 1e-6)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 30), scale=st.floats(0.01, 6), offset=st.floats(-50, 50))
def test_norms_and_deviations_of_any_logits(seed: int, n: int, scale: float, offset: float) -> None:
    S = scale * np.random.default_rng(seed).normal(size=(n, n)) + offset
    P = np.eye(n) - np.ones((n, n)) / n
    logits = torch.from_numpy(S).float()[None, None]
    raw, centred = (float(values[0, 0]) for values in deviations(logits))
    assert raw == pytest.approx(S.std(), rel=1e-3, abs=1e-4)
    assert centred == pytest.approx((P @ S @ P).std(), rel=1e-3, abs=1e-4)
    A = torch.softmax(logits, dim=-1)
    # Row constants and what a softmax forgets: log A has the same doubly centred deviation.
    assert float(deviations(A.log())[1][0, 0]) == pytest.approx(centred, rel=1e-3, abs=1e-4)
    assert float(frobenius(A)[0, 0]) == pytest.approx(np.linalg.norm(P @ A[0, 0].double().numpy()), rel=1e-4, abs=1e-6)


def test_hc_energy_is_nothing_for_tokens_all_alike_and_all_for_tokens_around_zero() -> None:
    alike = torch.ones(1, 4, 3)
    around = torch.tensor([[[1.0, 0], [-1, 0]]])
    assert hc_energy(alike)[0] == 0
    assert hc_energy(around)[0] == pytest.approx(1)
    assert np.isnan(hc_energy(torch.zeros(1, 4, 3))[0])


def observed(model: Any) -> list[HeadLength]:
    from embaudit.measures.length.heads import _rows

    anatomy = anatomy_of(model)
    observer = _Observer(anatomy)
    with watching(anatomy) as run:
        run(torch.tensor([[3, 9, 14, 7, 21, 5, 18], [8, 2, 30, 6, 11, 25, 4]]), observer.on_layer)
    return _rows(observer, 7, 7, [np.ones(anatomy.heads)] * len(anatomy.layers))


def test_a_causal_model_is_marked_and_has_no_sigma_s() -> None:
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(0)
    rows = observed(GPT2Model(GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=16)).eval())
    assert all(row.is_causal for row in rows)
    assert all(row.sigma_a > 0 for row in rows)
    assert {(row.sigma_s, row.sigma_s_centred, row.bound, row.holds) for row in rows} == {(None,) * 4}


def test_a_bias_on_the_logits_leaves_the_centred_deviation_only() -> None:
    """MPNet adds positions to q·k: its raw logits are not q·kᵀ/√d_h, its log A still is the logits."""
    from transformers import MPNetConfig, MPNetModel

    torch.manual_seed(0)
    config = MPNetConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24
    )
    model = MPNetModel(config).eval()
    with torch.no_grad():
        model.encoder.relative_attention_bias.weight.normal_(std=2.0)
    rows = observed(model)
    assert not any(row.is_causal for row in rows)
    assert {row.sigma_s for row in rows} == {None}
    assert all(row.sigma_s_centred is not None and row.sigma_s_centred > 0.5 for row in rows)
    assert all(row.bound is None and row.bound_centred is not None for row in rows)


def test_an_unknown_family_cannot_be_measured(tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny.model.config, "model_type", "no-such-family")
    with pytest.raises(NotMeasurable, match="no-such-family"):
        head_lengths(Encoder(tiny), SPANS, LENGTHS)
