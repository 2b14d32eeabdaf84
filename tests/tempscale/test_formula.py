"""The context manager against softmax(QKᵀ/(τ√d)) written out, on a tiny model of every family."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers
from by_hand import by_hand, difference, outputs
from tiny_families import HEADS, IDS, TINY, build, representatives_first, tiny_model
from torch.nn.attention import SDPBackend, sdpa_kernel

from embaudit.checkpoint.anatomy import LayerState, anatomy_of, watching
from embaudit.remedies.temperature import Temperatures, temperature
from embaudit.words.errors import UsageError

EXACT = 1e-5
HALF = 1e-2
SUPPORTED = [name for name in TINY if name != "gemma2"]
every_model = pytest.mark.parametrize("name", SUPPORTED)
# Beside the representatives, those with a way of their own to be scaled: layers that share weights or have a position
# bias each, a gain without an offset, rows of one matrix in another order.
OWN_WAYS = ["albert", "albert, groups", "mpnet", "umt5", "qwen3", "phi3"]
with_position_bias = pytest.mark.parametrize("name", [name for name in SUPPORTED if TINY[name].position_bias])


def layers_of(model: Any) -> int:
    return len(anatomy_of(model).layers)


def scaled(model: Any, tau: Any, **options: bool) -> torch.Tensor:
    with temperature(model, tau, **options):
        return outputs(model)


def expected(model: Any, tau: Any, divides_position_bias: bool = False) -> torch.Tensor:
    with by_hand(model, Temperatures.of(tau).table(layers_of(model), HEADS), divides_position_bias):
        return outputs(model)


@every_model
def test_what_is_written_out_is_the_models_own_attention_where_tau_is_1(name: str) -> None:
    model = tiny_model(name)
    assert difference(outputs(model), expected(model, 1)) < EXACT


@every_model
@pytest.mark.parametrize("tau", [0.8, *(pytest.param(tau, marks=pytest.mark.slow) for tau in (0.5, 1.7))])
def test_outputs_are_those_of_the_formula(name: str, tau: float) -> None:
    model = tiny_model(name)
    found = scaled(model, tau)
    assert difference(expected(model, tau), found) < EXACT
    assert difference(outputs(model), found) > 1e-3


@representatives_first(SUPPORTED)
def test_outputs_are_those_of_the_formula_in_float16(name: str) -> None:
    model = tiny_model(name, torch.float16)
    assert difference(expected(model, 0.8), scaled(model, 0.8)) < HALF


@representatives_first(SUPPORTED)
def test_in_bfloat16_the_arithmetic_itself_is_what_is_inexact(name: str) -> None:
    model = tiny_model(name, torch.bfloat16)
    found, written_out = scaled(model, 0.8), expected(model, 0.8)
    truth = expected(build(name, torch.bfloat16).float(), 0.8)
    assert difference(truth, found) < max(HALF, 1.5 * difference(truth, written_out))


@representatives_first([name for name in SUPPORTED if not TINY[name].position_bias])
def test_attention_is_sharpened_as_a_power(name: str) -> None:
    """softmax(l/τ) is softmax(l) to the power of 1/τ, with rows that add up to 1 again: no weight is looked at."""
    model, kept = tiny_model(name), []
    for tau in (1, 0.6):
        with temperature(model, tau), watching(anatomy_of(model)) as run:
            states: list[LayerState] = []
            run(IDS, states.append)
            kept.append(states[0].attention)
    power = kept[0] ** (1 / 0.6)
    torch.testing.assert_close(kept[1], power / power.sum(dim=-1, keepdim=True), rtol=0, atol=1e-6)


@representatives_first(SUPPORTED)
def test_kernels_agree(name: str) -> None:
    model = build(name)
    found = []
    for kernel in ("sdpa", "eager"):
        if name != "mpnet":  # which has one of its own only
            model.set_attn_implementation(kernel)
        found.append(scaled(model, 0.7))
    assert difference(*found) < EXACT


@pytest.mark.parametrize("name", ["bert", "modernbert", "qwen3", "gpt2"])
def test_the_flash_kernel_agrees(name: str) -> None:
    model = tiny_model(name)
    try:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            found = scaled(model, 0.7)
    except RuntimeError as error:  # grouped queries on a CPU, in torch 2.6
        pytest.skip(f"torch {torch.__version__}: {error}")
    assert difference(expected(model, 0.7), found) < EXACT


@representatives_first(SUPPORTED, also=OWN_WAYS)
def test_each_layer_has_its_temperature_unless_it_shares_its_weights(name: str) -> None:
    model = tiny_model(name)
    tau = [0.6, 1.0, 0.9, 1.2][: layers_of(model)]
    if name.startswith("albert"):
        tau = [0.6, 0.9] * (layers_of(model) // 2)
    if name == "albert":
        with pytest.raises(UsageError, match=r"Layers 0 and 1 share .*query\.weight"):
            scaled(model, tau)
        tau = [0.7, 0.7]
    assert difference(expected(model, tau), scaled(model, tau)) < EXACT


@representatives_first(SUPPORTED, also=OWN_WAYS)
def test_each_head_has_its_temperature_unless_they_share_a_gain(name: str) -> None:
    model = tiny_model(name)
    tau = Temperatures.per_head([0.5, 0.7, 1.0, 1.4])
    if anatomy_of(model).family.query_norm:
        with pytest.raises(UsageError, match=r"the same gain \(self_attn\.q_norm\)"):
            scaled(model, tau)
        return
    assert difference(expected(model, tau), scaled(model, tau)) < EXACT


@pytest.mark.parametrize("name", ["bert", "phi3", "gpt2", "gpt_neox", "umt5"])
def test_each_head_of_each_layer_has_its_temperature(name: str) -> None:
    model = tiny_model(name)
    tau = [[0.5, 0.7, 1.0, 1.4], [1.0, 1.0, 0.8, 0.6]]
    assert difference(expected(model, tau), scaled(model, tau)) < EXACT


@with_position_bias
def test_the_position_bias_is_divided_where_that_is_asked_for(name: str) -> None:
    model = tiny_model(name)
    found = scaled(model, 0.7, divide_position_bias=True)
    assert difference(expected(model, 0.7, divides_position_bias=True), found) < EXACT
    assert difference(expected(model, 0.7), found) > 1e-3


@with_position_bias
def test_a_position_bias_that_layers_share_has_one_temperature(name: str) -> None:
    model = tiny_model(name)
    tau = [0.6, 0.9]
    if name == "umt5":  # whose layers have one each
        found = scaled(model, tau, divide_position_bias=True)
        assert difference(expected(model, tau, divides_position_bias=True), found) < EXACT
        return
    with pytest.raises(UsageError, match=r"share .*relative_attention_bias\.weight") as error:
        scaled(model, tau, divide_position_bias=True)
    assert "leave the position bias undivided" in error.value.next_step
    assert difference(expected(model, tau), scaled(model, tau)) < EXACT


def test_elsewhere_there_is_no_position_bias_to_divide() -> None:
    model = tiny_model("bert")
    assert torch.equal(scaled(model, 0.7, divide_position_bias=True), scaled(model, 0.7))


def test_gpt2_scales_by_depth_as_well() -> None:
    model = build("gpt2")
    if not hasattr(model.h[0].attn, "scaling"):
        pytest.skip(f"transformers {transformers.__version__} tells no kernel how GPT-2 scales")
    for layer, block in enumerate(model.h):
        block.attn.scaling /= layer + 1
    assert difference(expected(model, 0.7), scaled(model, 0.7)) < EXACT


# ---- what counts as a temperature ----


@pytest.mark.parametrize(
    ("tau", "table"),
    [
        (0.8, ((0.8, 0.8), (0.8, 0.8), (0.8, 0.8))),
        (1, ((1.0, 1.0), (1.0, 1.0), (1.0, 1.0))),
        (np.float64(0.5), ((0.5, 0.5), (0.5, 0.5), (0.5, 0.5))),
        (torch.tensor(0.5), ((0.5, 0.5), (0.5, 0.5), (0.5, 0.5))),
        ([0.5, 0.75, 1], ((0.5, 0.5), (0.75, 0.75), (1.0, 1.0))),
        (np.array([0.5, 0.75, 1]), ((0.5, 0.5), (0.75, 0.75), (1.0, 1.0))),
        (torch.tensor([[1, 2], [3, 4], [5, 6]]), ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0))),
        (Temperatures.per_head([0.5, 0.75]), ((0.5, 0.75), (0.5, 0.75), (0.5, 0.75))),
    ],
)
def test_a_number_a_vector_or_a_table_has_a_value_for_every_layer_and_head(tau: Any, table: Any) -> None:
    assert Temperatures.of(tau).table(layers=3, heads=2) == table


@pytest.mark.parametrize("value", [0, 0.0, -0.0, -0.5, float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize(
    "shape",
    [
        lambda value: value,
        lambda value: [0.5, value],
        lambda value: [[0.5, value], [0.5, 0.5]],
        lambda value: np.array([0.5, value]),
    ],
)
def test_what_is_not_above_0_and_finite_is_refused(value: float, shape: Any) -> None:
    with pytest.raises(UsageError, match="must be a number greater than 0"):
        Temperatures.of(shape(value))


@pytest.mark.parametrize("value", ["0.8", b"0.8", True, None, {}, [0.8, "0.9"], [0.8, None], [[0.8], ["a"]], 1 + 1j])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="is not a temperature"):
        Temperatures.of(value)


@pytest.mark.parametrize("value", [[], [[]], [[0.5, 0.6], [0.5]], [[0.5], 0.5], [[[0.5]]], np.ones((2, 2, 2))])
def test_what_is_no_vector_and_no_table_is_refused(value: Any) -> None:
    with pytest.raises(UsageError):
        Temperatures.of(value)


@pytest.mark.parametrize(
    ("tau", "reason"),
    [
        ([0.5], "for 1 layer, but the checkpoint has 3"),
        ([0.5] * 4, "for 4 layers, but the checkpoint has 3"),
        ([[0.5] * 2] * 2, "for 2 layers"),
        ([[0.5] * 3] * 3, "for 3 heads, but the checkpoint has 2"),
        (Temperatures.per_head([0.5]), "for 1 head,"),
    ],
)
def test_another_number_of_layers_or_heads_is_refused(tau: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Temperatures.of(tau).table(layers=3, heads=2)


def test_they_read_as_they_were_given() -> None:
    assert str(Temperatures.of(0.8)) == "0.8"
    assert str(Temperatures.of([0.8, 1])) == "0.8, 1 (layer by layer)"
    assert str(Temperatures.of([[0.8, 1], [1, 1]])) == "[0.8, 1], [1, 1] (layer by layer)"
    assert str(Temperatures.per_head([0.8, 1])) == "[0.8, 1]"


def test_they_read_in_full() -> None:
    assert str(Temperatures.of(1 / 3)) == "0.3333333333333333"


def test_temperatures_of_temperatures_are_the_same() -> None:
    assert Temperatures.of(Temperatures.of(0.5)).values == (0.5,)
