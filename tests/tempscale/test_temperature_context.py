"""The weights come back bit for bit, whatever happens; and what had no effect is an error."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as t
from by_hand import difference, outputs
from tiny_families import HEADS, TINY, build, representatives_first, tiny_model
from torch import nn

from embaudit.checkpoint.anatomy import anatomy_of
from embaudit.remedies.temperature import Temperatures, plan_scalings, support_of, temperature
from embaudit.words.errors import MeasureError, NotMeasurable, UsageError

SUPPORTED = [name for name in TINY if name != "gemma2"]
every_model = pytest.mark.parametrize("name", SUPPORTED)
Weights = dict[str, torch.Tensor]


def weights(model: Any) -> Weights:
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def are_same(before: Weights, after: Weights) -> bool:
    """Bit for bit: torch.equal takes 0 and -0 for the same."""
    return before.keys() == after.keys() and all(
        torch.equal(one.view(torch.uint8) if one.dim() else one, after[name].view(torch.uint8) if one.dim() else one)
        for name, one in before.items()
    )


@contextmanager
def unchanged(model: Any) -> Iterator[None]:
    """What happens here leaves the weights as they were, bit for bit."""
    before = weights(model)
    yield
    assert are_same(before, weights(model))


@representatives_first(SUPPORTED, also=["albert, groups", "umt5", "qwen3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_weights_come_back_bit_for_bit(name: str, dtype: torch.dtype) -> None:
    model = tiny_model(name, dtype)
    before, same = weights(model), outputs(model)
    for tau in (0.3, 0.7, 1.9):
        with temperature(model, tau, divide_position_bias=True):
            assert not are_same(before, weights(model))
        assert are_same(before, weights(model))
    assert torch.equal(outputs(model), same)
    assert not any(module._forward_hooks for module in model.modules())


@representatives_first(SUPPORTED)
def test_the_weights_come_back_after_an_exception(name: str) -> None:
    model = tiny_model(name)
    with unchanged(model), pytest.raises(KeyboardInterrupt), temperature(model, 0.7):
        raise KeyboardInterrupt


@representatives_first(SUPPORTED)
def test_at_1_nothing_is_touched(name: str) -> None:
    model = tiny_model(name)
    versions = [parameter._version for parameter in model.parameters()]
    with temperature(model, 1):
        pass
    assert [parameter._version for parameter in model.parameters()] == versions
    assert plan_scalings(anatomy_of(model), Temperatures.of([1.0] * len(anatomy_of(model).layers))) == ()


@every_model
def test_nothing_but_queries_is_touched(name: str) -> None:
    model = tiny_model(name)
    anatomy, before = anatomy_of(model), weights(model)
    with temperature(model, 0.5):
        during = weights(model)
    changed = {key for key in before if not torch.equal(before[key], during[key])}
    path = anatomy.family.query_norm or anatomy.family.query.path
    assert changed
    assert all(path in key for key in changed)
    weighted = {key for key in changed if key.endswith("weight")}
    assert len(weighted) == len({id(layer) for layer in anatomy.layers})
    for key in weighted:
        ratio = (during[key] / before[key]).flatten()
        # Half of a number is exact: so a row is either doubled or as it was, but for gains that are not the weight.
        if not anatomy.family.query_norm_offset:
            assert set(ratio.tolist()) <= {1.0, 2.0}
        share = {"separate": 1.0, "interleaved": 1 / 3, "stacked": 1 / 2 if TINY[name].grouped else 1 / 3}
        assert float((ratio != 1).float().mean()) == pytest.approx(
            1.0 if anatomy.family.query_norm else share[anatomy.family.query.fused]
        )


def test_a_layer_at_1_is_left_alone() -> None:
    model = build("bert")
    scalings = plan_scalings(anatomy_of(model), Temperatures.of([1.0, 0.8]))
    assert {scaling.layers for scaling in scalings} == {(1,)}
    with temperature(model, [1.0, 0.8]):
        pass


def test_what_layers_share_is_scaled_once() -> None:
    for name, matrices, layers in (("albert", 1, 2), ("albert, groups", 4, 8)):
        model = build(name)
        found = plan_scalings(anatomy_of(model), Temperatures.of(0.5))
        assert len({id(scaling.parameter) for scaling in found}) == len(found) == 2 * matrices
        assert sum(len(scaling.layers) for scaling in found) == 2 * layers


def test_temperatures_do_not_nest_and_the_first_one_stands() -> None:
    model, other = build("bert"), build("roberta")
    before, at_08 = weights(model), None
    with temperature(model, 0.8):
        at_08 = weights(model)
        with pytest.raises(UsageError, match="do not nest"), temperature(model, 0.9):
            pass
        assert are_same(at_08, weights(model))
        with temperature(other, 0.9):  # another model is another matter
            assert are_same(at_08, weights(model))
    assert are_same(before, weights(model))
    with temperature(model, 0.9):
        pass


def test_another_thread_waits_for_its_turn() -> None:
    model = build("bert")
    with temperature(model, 0.8):
        at_08 = weights(model)
    seen: list[bool] = []

    def look() -> None:
        for _ in range(5):
            with temperature(model, 0.8):
                seen.append(are_same(at_08, weights(model)))

    threads = [threading.Thread(target=look) for _ in range(4)]
    before = weights(model)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert seen == [True] * 20
    assert are_same(before, weights(model))


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_any_gradient_mode_will_do(mode: Callable[[], Any]) -> None:
    model = build("bert")
    with unchanged(model), mode(), temperature(model, 0.8):
        assert difference(outputs(model), outputs(tiny_model("bert"))) > 1e-4


def test_gradients_are_those_of_the_scaled_model() -> None:
    model = build("bert")
    with temperature(model, 0.5):
        model(input_ids=torch.tensor([[5, 6, 7]])).last_hidden_state.sum().backward()
    assert model.encoder.layer[0].attention.self.query.weight.grad.abs().sum() > 0


# ── what is refused ──


@pytest.mark.parametrize("tau", [0, -1, float("nan"), float("inf"), "hot", [], [0.8], [0.8] * 3, [[0.8] * HEADS]])
def test_bad_temperatures_leave_the_model_alone(tau: Any) -> None:
    model = build("bert")
    with unchanged(model), pytest.raises(UsageError), temperature(model, tau):
        pass


def test_soft_capped_logits_are_not_exact_and_say_so() -> None:
    model = build("gemma2")
    with (
        pytest.raises(NotMeasurable, match=r"Gemma2Model does not support a temperature") as error,
        temperature(model, 0.8),
    ):
        pass
    assert "attn_logit_softcapping = 2" in error.value.happened
    assert "length curve" in error.value.kept


def test_gemma2_without_the_cap_is_exact() -> None:
    config = build("gemma2").config
    config.attn_logit_softcapping = None
    assert support_of(anatomy_of(t.AutoModel.from_config(config))).kind == "exact"


def test_a_config_field_that_gemma3_never_reads_decides_nothing() -> None:
    config = build("gemma3_text").config
    config.attn_logit_softcapping = 50.0
    assert support_of(anatomy_of(t.AutoModel.from_config(config))).kind == "exact"


def test_an_unknown_family_is_refused_and_the_rest_of_an_audit_is_not() -> None:
    sizes = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = t.DebertaV2Model(t.DebertaV2Config(**sizes, intermediate_size=24)).eval()
    with pytest.raises(NotMeasurable, match="deberta-v2") as error, temperature(model, 0.8):
        pass
    assert "unaffected" in error.value.kept


def test_a_model_in_training_is_refused() -> None:
    with pytest.raises(UsageError, match="training mode"), temperature(build("bert").train(), 0.8):
        pass


def one_layer_twice(model: Any) -> str:
    """Which nothing declares for BERT."""
    model.encoder.layer[1] = model.encoder.layer[0]
    return "queries in 2 of 1 layers"


def another_query(model: Any) -> str:
    """An adapter's way: the module's output is more than its weight gives."""
    query = model.encoder.layer[0].attention.self.query
    query.register_forward_hook(lambda module, args, output: output + 1)
    return "not divided by τ"


def a_layer_that_never_runs(model: Any) -> str:
    gives_more = isinstance(model.encoder.layer[0](torch.zeros(1, 1, model.config.hidden_size)), tuple)
    model.encoder.layer[1].forward = lambda states, *args, **kwargs: (states,) if gives_more else states
    return "queries in 1 of 2 layers"


def no_attention(model: Any) -> str:
    for layer in model.encoder.layer:
        nn.init.zeros_(layer.attention.output.dense.weight)
    return "τ changed nothing"


@pytest.mark.parametrize("change", [one_layer_twice, another_query, a_layer_that_never_runs, no_attention])
def test_what_has_no_effect_or_another_one_is_an_error_that_names_the_family(change: Any) -> None:
    model = build("bert")
    reason = change(model)
    with (
        unchanged(model),
        pytest.raises(MeasureError, match=rf"BertModel \(bert\) .*{reason}"),
        temperature(model, 0.7),
    ):
        pass


def test_a_layer_or_head_that_was_pruned_may_have_a_temperature() -> None:
    model = build("bert")
    nn.init.zeros_(model.encoder.layer[1].attention.output.dense.weight)
    for layer in model.encoder.layer:
        with torch.no_grad():
            for parameter in layer.attention.self.value.parameters():
                parameter[: layer.attention.self.attention_head_size] = 0
    for temperatures in ([1.0, 0.7], Temperatures.per_head([0.7] + [1.0] * (HEADS - 1))):
        before = outputs(model)
        with temperature(model, temperatures):
            assert difference(before, outputs(model)) == 0


def test_numbers_and_queries_that_do_not_fit_are_an_error() -> None:
    model = build("bert", torch.float16)
    largest = max(float(layer.attention.self.query.weight.detach().abs().max()) for layer in model.encoder.layer)
    for tau, said in ((1e-6, "does not fit into torch"), (largest / 60_000, "gives NaN or infinity")):
        with unchanged(model), pytest.raises(MeasureError, match=said), temperature(model, tau):
            pass


def test_the_table_of_the_docs_says_what_is_supported() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs" / "families.md"
    rows = [line.split("|") for line in docs.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    column = [cell.strip() for cell in rows[0]].index("Temperature")
    for name in TINY:
        anatomy = anatomy_of(tiny_model(name))
        support, kind = support_of(anatomy), name.partition(",")[0]
        cells = {row[column].strip() for row in rows if f"`{kind}`" in row[2]}
        (said,) = cells
        assert said.partition(",")[0] == support.kind
        assert ("none by layer" in said) == anatomy.shares_layers
        assert ("none by head" in said) == (anatomy.family.query_norm is not None)


def test_every_support_has_a_reason() -> None:
    kinds = {name: support_of(anatomy_of(tiny_model(name))) for name in TINY}
    assert {name for name, support in kinds.items() if support.kind == "unsupported"} == {"gemma2"}
    assert {name for name, support in kinds.items() if support.kind == "option"} == {"mpnet", "t5", "mt5", "umt5"}
    assert "no τ per layer" in kinds["albert"].reason
    assert "no τ per head" in kinds["qwen3"].reason
    assert "layers share the bias table" in kinds["t5"].reason
    assert "per layer" not in kinds["umt5"].reason
