"""What watching a forward pass leaves behind: no hook, no other kernel, no layer's attention weights."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_families import IDS, build
from torch import nn

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.anatomy import Anatomy, LayerState, Projection, anatomy_of, require_fit, watching
from embaudit.words.errors import NotMeasurable


def ignore(state: LayerState) -> None:
    """For a run that is watched for other things."""


def hooks_of(model: nn.Module) -> list[int]:
    """Hooks on each module; some models keep a few of their own."""
    return [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()]


def last_hidden_state(model: Any) -> torch.Tensor:
    with torch.inference_mode():
        return model(input_ids=IDS, attention_mask=torch.ones_like(IDS)).last_hidden_state


@pytest.mark.parametrize("name", ["bert", "mpnet", "albert", "t5", "llama"])
def test_the_model_is_as_before_after_the_block(name: str) -> None:
    model = build(name)
    kernel, hooks, output = model.config._attn_implementation, hooks_of(model), last_hidden_state(model)
    with watching(anatomy_of(model)) as run:
        assert hooks_of(model) != hooks
        run(IDS, ignore)
    assert model.config._attn_implementation == kernel
    assert hooks_of(model) == hooks
    assert torch.equal(last_hidden_state(model), output)


def test_the_model_is_as_before_after_an_error() -> None:
    model = build("bert")
    kernel, hooks = model.config._attn_implementation, hooks_of(model)
    assert kernel != "eager"

    def fails(state: LayerState) -> None:
        raise RuntimeError("in a measure")

    with pytest.raises(RuntimeError, match="in a measure"), watching(anatomy_of(model)) as run:
        run(IDS, fails)
    assert model.config._attn_implementation == kernel
    assert hooks_of(model) == hooks


def test_a_run_after_a_failed_one_starts_anew() -> None:
    layers: list[int] = []

    def fails_in_layer_1(state: LayerState) -> None:
        layers.append(state.layer)
        if layers == [0, 1]:
            raise RuntimeError("once")

    with watching(anatomy_of(build("bert"))) as run:
        with pytest.raises(RuntimeError, match="once"):
            run(IDS, fails_in_layer_1)
        run(IDS, fails_in_layer_1)
    assert layers == [0, 1, 0, 1]


@pytest.mark.parametrize("name", ["bert", "distilbert", "mpnet", "albert", "t5", "umt5", "modernbert", "llama", "gpt2"])
def test_one_layer_of_attention_is_alive_at_a_time(name: str) -> None:
    seen: list[weakref.ref[torch.Tensor]] = []
    alive: list[int] = []

    def on_layer(state: LayerState) -> None:
        alive.append(sum(former() is not None for former in seen))
        seen.append(weakref.ref(state.attention))

    with watching(anatomy_of(build(name))) as run:
        run(IDS, on_layer)
        assert not [former for former in seen if former() is not None]
    assert alive == [0] * len(seen)
    assert len(seen) == 2


def test_runs_follow_one_another_each_with_all_layers_in_order() -> None:
    anatomy = anatomy_of(build("albert, groups"))
    found: list[tuple[int, int]] = []
    with watching(anatomy) as run:
        for n in (7, 3, 1):
            run(IDS[:, :n], lambda state: found.append((state.X.shape[1], state.layer)))
    assert found == [(n, layer) for n in (7, 3, 1) for layer in range(8)]


@pytest.mark.parametrize("name", ["bert", "mpnet", "t5", "llama", "gemma3_text", "gpt2"])
def test_half_precision_fits_within_its_tolerance(name: str) -> None:
    anatomy = anatomy_of(build(name, torch.bfloat16))
    states: list[LayerState] = []
    with watching(anatomy) as run:
        run(IDS, states.append)
    for state in states:
        assert state.Z.dtype == torch.bfloat16
        require_fit(anatomy, state)


def test_a_real_checkpoint_fits(minilm: Checkpoint) -> None:
    anatomy = anatomy_of(minilm.model)
    layers: list[int] = []

    def on_layer(state: LayerState) -> None:
        require_fit(anatomy, state)
        torch.testing.assert_close(anatomy.family.finish(anatomy.layers[state.layer], state.Y, state.H), state.X)
        layers.append(state.layer)

    with watching(anatomy) as run:
        run(torch.tensor([[101, 1996, 2314, 2003, 2146, 102]]), on_layer)
    assert layers == list(range(6))


@pytest.mark.parametrize(
    ("name", "part", "path"),
    [
        ("bert", "value", Projection("attention.self.key")),
        ("llama", "value", Projection("self_attn.k_proj")),
        ("gpt_neox", "value", Projection("attention.query_key_value", "stacked")),
        ("modernbert", "value", Projection("attn.Wqkv", "interleaved")),
    ],
)
def test_weights_declared_in_the_wrong_place_are_found(name: str, part: str, path: Projection) -> None:
    anatomy = anatomy_of(build(name))
    wrong = replace(anatomy, family=replace(anatomy.family, **{part: path}))
    states: list[LayerState] = []
    with watching(wrong) as run:
        run(IDS, states.append)
    for state in states:
        require_fit(anatomy, state)
        with pytest.raises(NotMeasurable, match=f"not built as declared .* layer {state.layer}"):
            require_fit(wrong, state)


def test_nan_does_not_fit() -> None:
    model = build("bert")
    model.encoder.layer[1].attention.self.value.bias.data[3] = float("nan")
    anatomy = anatomy_of(model)
    states: list[LayerState] = []
    with watching(anatomy) as run:
        run(IDS, states.append)
    require_fit(anatomy, states[0])
    with pytest.raises(NotMeasurable, match="layer 1"):
        require_fit(anatomy, states[1])


def stays_with_its_kernel(anatomy: Anatomy) -> Anatomy:
    """transformers only warns where a class cannot switch kernels."""
    anatomy.model.set_attn_implementation = lambda kernel: None
    return anatomy


def declares_another_place(anatomy: Anatomy) -> Anatomy:
    return replace(anatomy, family=replace(anatomy.family, weights_at=0))


@pytest.mark.parametrize("change", [stays_with_its_kernel, declares_another_place])
def test_a_model_that_gives_no_weights_is_not_measurable(change: Callable[[Anatomy], Anatomy]) -> None:
    silent = anatomy = change(anatomy_of(build("llama")))
    hooks = hooks_of(anatomy.model)
    with pytest.raises(NotMeasurable, match="cannot return its attention weights"), watching(silent) as run:
        run(IDS, ignore)
    assert hooks_of(anatomy.model) == hooks


def test_weights_of_another_function_are_refused() -> None:
    model = build("gemma2")
    model.config._attn_implementation = "sdpa"  # as transformers 4 loads it
    with pytest.raises(NotMeasurable, match="without the soft-capping"), watching(anatomy_of(model)):
        pass
    assert model.config._attn_implementation == "sdpa"


def test_a_model_that_runs_fewer_layers_is_not_measurable() -> None:
    model = build("llama")
    anatomy = anatomy_of(model)
    model.config.num_hidden_layers = 1
    with pytest.raises(NotMeasurable, match="ran 1 of 2 layers"), watching(anatomy) as run:
        run(IDS, ignore)


def test_a_model_that_runs_its_layers_in_another_order_is_not_measurable() -> None:
    anatomy = anatomy_of(build("bert"))
    turned = replace(anatomy, layers=anatomy.layers[::-1])
    with pytest.raises(NotMeasurable, match="declared order, from layer 0 on"), watching(turned) as run:
        run(IDS, ignore)


def test_a_model_that_passes_over_a_declared_module_is_not_measurable() -> None:
    anatomy = anatomy_of(build("bert"))
    other = replace(anatomy, family=replace(anatomy.family, branch="unused"))
    for layer in anatomy.layers:
        layer.unused = nn.Identity()
    with pytest.raises(NotMeasurable, match="skipped the modules that compute Z"), watching(other) as run:
        run(IDS, ignore)
