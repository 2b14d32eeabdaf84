"""States that are reduced while a model runs are those that transformers returns together."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from embaudit.checkpoint import Checkpoint
from embaudit.measures.quality.passes import POOLINGS, MultiPoolingEncoder, last_and_stops

sys.path.append(str(Path(__file__).resolve().parent.parent / "anatomy"))
from tiny_families import LAYERS, ROWS, TINY, D, N, build, tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")
SIZES = {"vocab_size": ROWS, "num_hidden_layers": LAYERS, "num_attention_heads": 4}
# What no family of embaudit's own covers.
OTHERS: dict[str, Any] = {
    "deberta-v2": lambda: transformers.DebertaV2Config(**SIZES, hidden_size=D, intermediate_size=24),
    "xlm": lambda: transformers.XLMConfig(vocab_size=ROWS, emb_dim=D, n_layers=LAYERS, n_heads=4),
    "longformer": lambda: transformers.LongformerConfig(
        **SIZES, hidden_size=D, intermediate_size=24, attention_window=4, pad_token_id=1, max_position_embeddings=40
    ),
}
# It pads states to whole windows, and cuts what it returns.
TAKEN_TOGETHER = {"longformer"}


def batches() -> Iterator[dict[str, torch.Tensor]]:
    """Texts of one length; of several, padded; and one alone that is longer than what layers are found by."""
    for widths in ((N, N), (3, 5, N), (2, 12), (24,)):
        mask = torch.zeros(len(widths), max(widths), dtype=torch.int64)
        for row, width in enumerate(widths):
            mask[row, :width] = 1
        ids = torch.randint(5, ROWS, mask.shape, generator=torch.Generator().manual_seed(max(widths)))
        yield {"input_ids": ids * mask + (1 - mask), "attention_mask": mask}


def asked_together(model: Any, inputs: dict[str, torch.Tensor]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    given = model(**inputs, output_hidden_states=True)
    return given.last_hidden_state, [*given.hidden_states[:-1], given.last_hidden_state]


class Asked:
    """How often a model was asked for its states together."""

    def __init__(self, model: Any) -> None:
        self.times = 0
        model.register_forward_pre_hook(self._note, with_kwargs=True)

    def _note(self, _: Any, __: Any, given: dict[str, Any]) -> None:
        self.times += bool(given.get("output_hidden_states"))


def other(name: str) -> Any:
    torch.manual_seed(5)
    return transformers.AutoModel.from_config(OTHERS[name]()).eval()


@pytest.mark.parametrize("name", [*TINY, *OTHERS])
def test_states_are_those_that_the_model_returns(name: str) -> None:
    model = other(name) if name in OTHERS else build(name)
    asked = Asked(model)
    with torch.inference_mode():
        for inputs in batches():
            last, states = asked_together(model, inputs)
            before = asked.times
            found_last, found = last_and_stops(model, inputs, torch.clone)
            assert torch.equal(found_last, last)
            assert len(found) == len(states)
            for one, two in zip(found, states, strict=True):
                assert torch.equal(one, two)
    # The last batch took what the first had found.
    assert asked.times - before == (name in TAKEN_TOGETHER)


def test_a_model_that_then_runs_in_another_way_is_asked_for_its_states() -> None:
    model = build("llama")
    with torch.inference_mode():
        inputs = next(batches())
        last_and_stops(model, inputs, torch.clone)
        del model.layers[1]
        model.config.num_hidden_layers = 1
        last, states = asked_together(model, inputs)
        found_last, found = last_and_stops(model, inputs, torch.clone)
    assert torch.equal(found_last, last)
    assert len(found) == len(states) == LAYERS
    assert all(torch.equal(one, two) for one, two in zip(found, states, strict=True))


def test_layers_that_write_into_what_they_are_given_are_not_taken_at_their_word() -> None:
    model = build("bert")

    def adds(_: Any, args: tuple[torch.Tensor, ...]) -> None:
        args[0].add_(1.0)

    model.encoder.layer[1].register_forward_pre_hook(adds)
    with torch.inference_mode():
        for inputs in batches():
            _, states = asked_together(model, inputs)
            _, found = last_and_stops(model, inputs, torch.clone)
            assert all(torch.equal(one, two) for one, two in zip(found, states, strict=True))


def test_nothing_stays_on_a_model_when_reducing_fails() -> None:
    model = build("gpt2")

    def fails(_: torch.Tensor) -> None:
        raise torch.OutOfMemoryError("no memory")

    inputs = next(batches())
    with torch.inference_mode(), pytest.raises(torch.OutOfMemoryError):
        last_and_stops(model, inputs, fails)
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_only_one_state_is_in_memory_beside_the_one_that_is_computed() -> None:
    model, inputs = tiny_model("qwen2"), next(batches())
    states: list[weakref.ref[torch.Tensor]] = []
    with torch.inference_mode():
        last, kept = last_and_stops(model, inputs, lambda state: states.append(weakref.ref(state)))
    assert len(kept) == LAYERS + 1
    assert [state() is None for state in states] == [True] * LAYERS + [False]
    assert states[-1]() is last


def test_vectors_after_each_layer_are_the_pooled_states_of_each_text_alone(tiny: Checkpoint) -> None:
    encoder = MultiPoolingEncoder(tiny, tokens_per_batch=24)
    ids = [[2, *range(5, 5 + length), 3] for length in (3, 1, 9, 4, 6)]
    found = encoder.passes(ids, POOLINGS, with_layers=True)
    for row, sequence in enumerate(ids):
        batch = torch.tensor([sequence])
        with torch.inference_mode():
            _, states = asked_together(tiny.model, tiny.inputs(batch, torch.ones_like(batch)))
            for layer, state in enumerate(states):
                alone = tiny.after_pooling(state.mean(dim=1))[0]
                np.testing.assert_allclose(found.layers[layer][row], alone.numpy(), atol=2e-6)
    np.testing.assert_array_equal(found.layers[-1], found.served)
