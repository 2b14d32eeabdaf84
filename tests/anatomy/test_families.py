"""Every declared family, each tested the same way on a tiny model with random weights.

What one watched pass shows, each family shows in `make test`; loops over heads, and models changed and run again, are
left to the representatives there.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import isnan
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_families import HEADS, IDS, KV_HEADS, TINY, N, build, representatives_first, tiny_model
from torch import nn
from transformers.pytorch_utils import Conv1D

from embaudit.checkpoint.anatomy import Anatomy, LayerState, anatomy_of, require_fit, watching
from embaudit.checkpoint.anatomy.families import FAMILIES
from embaudit.checkpoint.anatomy.family import Part
from embaudit.checkpoint.anatomy.watch import what_to_ask

EXACT = 1e-5
DOCS = Path(__file__).resolve().parents[2] / "docs" / "families.md"
WITH_QUERY_NORM = ("qwen3", "gemma3_text", "gemma3_text, both ways")
every_model = pytest.mark.parametrize("name", TINY)


def states_of(anatomy: Anatomy) -> list[LayerState]:
    states: list[LayerState] = []
    with watching(anatomy) as run:
        run(IDS, states.append)
    return states


@every_model
def test_a_run_gives_the_states_that_are_pooled(name: str) -> None:
    """As the encoder gets them, under the kernel that the model has by itself: behind the final norm, if any."""
    anatomy, states = watched(name)
    with watching(anatomy) as run:
        pooled = run(IDS, lambda state: None)
    with torch.inference_mode():
        served = anatomy.model(input_ids=IDS, attention_mask=torch.ones_like(IDS)).last_hidden_state
    assert difference(served, pooled) < EXACT
    assert torch.equal(pooled, states[-1].X) == (TINY[name].final_norm is None)


@cache
def watched(name: str, dtype: torch.dtype = torch.float32) -> tuple[Anatomy, list[LayerState]]:
    """A model that no test changes, and what its layers did once."""
    anatomy = anatomy_of(tiny_model(name, dtype))
    return anatomy, states_of(anatomy)


def difference(A: torch.Tensor, B: torch.Tensor) -> float:
    """Of B from A, relative to A's size."""
    return float((A - B).norm() / A.norm())


@every_model
def test_the_family_is_found(name: str) -> None:
    anatomy, _ = watched(name)
    assert anatomy.family.name == TINY[name].family
    assert anatomy.model.config.model_type == name.partition(",")[0]
    assert anatomy.heads == HEADS
    assert anatomy.value_heads == (KV_HEADS if TINY[name].grouped else HEADS)


@every_model
def test_Z_Y_and_X_recompose_each_layer(name: str) -> None:  # noqa: N802
    anatomy, states = watched(name)
    assert [state.layer for state in states] == list(range(len(anatomy.layers)))
    last, norm = states[-1].X, TINY[name].final_norm
    with torch.inference_mode():
        for state in states:
            X = anatomy.family.finish(anatomy.layers[state.layer], state.Y, state.H)
            assert difference(state.X, X) < EXACT
            require_fit(anatomy, state)
        output = anatomy.model(input_ids=IDS, attention_mask=torch.ones_like(IDS)).last_hidden_state
        assert difference(output, last if norm is None else anatomy.model.get_submodule(norm)(last)) < EXACT
    for before, after in pairwise(states):
        torch.testing.assert_close(after.H, before.X, rtol=0, atol=0)


@every_model
def test_what_attention_reads_and_gives_is_where_the_norm_placement_says(name: str) -> None:
    anatomy, states = watched(name)
    placement = anatomy.family.norm_placement
    for state in states:
        # ModernBERT's first layer has no norm of its own.
        reads_norm = placement != "post" and not (name == "modernbert" and state.layer == 0)
        assert torch.equal(state.read, state.H) != reads_norm
        assert torch.equal(state.Z, state.projected) == (placement != "sandwich")


@every_model
def test_attention_from_the_declared_weights_is_the_branch(name: str) -> None:
    anatomy, states = watched(name)
    for state in states:
        assert difference(state.projected, anatomy.attend(state.layer, state.attention, state.read)) < EXACT


@representatives_first()
def test_attention_from_the_declared_weights_is_the_branch_head_by_head_and_token_by_token(name: str) -> None:
    anatomy, states = watched(name, torch.float64)
    repeats = anatomy.heads // anatomy.value_heads
    for state in states:
        W_v, W_o = anatomy.value_weights(state.layer), anatomy.output_weights(state.layer)
        _, fused_bias = anatomy.matrix(state.layer, "value")
        b_v = torch.zeros(anatomy.value_heads * anatomy.head_size, dtype=torch.float64)
        if fused_bias is not None:
            b_v = fused_bias[anatomy.rows("value")]
        b_o = getattr(anatomy.part_of(state.layer, anatomy.family.output), "bias", None)
        Z = torch.zeros_like(state.projected)
        for text in range(len(IDS)):
            for query in range(N):
                for head in range(anatomy.heads):
                    start = head // repeats * anatomy.head_size
                    mixed = torch.zeros(anatomy.head_size, dtype=torch.float64)
                    for key in range(N):
                        V = W_v[head] @ state.read[text, key] + b_v[start : start + anatomy.head_size]
                        mixed += state.attention[text, head, query, key] * V
                    Z[text, query] += W_o[head] @ mixed
                if b_o is not None:
                    Z[text, query] += b_o.detach()
        assert difference(state.projected, Z) < 1e-10


@every_model
def test_rows_of_attention_are_distributions_over_what_a_token_may_see(name: str) -> None:
    tiny = TINY[name]
    for state in watched(name)[1]:
        assert state.attention.shape == (len(IDS), HEADS, N, N)
        torch.testing.assert_close(state.attention.sum(dim=-1), torch.ones(len(IDS), HEADS, N))
        before = state.attention.tril(diagonal=-1).count_nonzero()
        behind = state.attention.triu(diagonal=1).count_nonzero()
        assert before > 0
        assert bool(behind > 0) != tiny.causal
        assert bool((state.attention[:, :, N - 1, 0] == 0).all()) == (state.layer in tiny.local)


@every_model
def test_grouped_queries_repeat_their_value_head(name: str) -> None:
    anatomy, _ = watched(name)
    W_v = anatomy.value_weights(0)
    assert W_v.shape == (anatomy.heads, anatomy.head_size, anatomy.model.config.hidden_size)
    repeats = [bool(torch.equal(W_v[head], W_v[head + 1])) for head in range(HEADS - 1)]
    assert repeats == ([True, False, True] if TINY[name].grouped else [False] * 3)


@representatives_first()
@pytest.mark.parametrize("part", ["query", "key"])
def test_without_queries_or_keys_attention_forgets_the_words_and_nothing_else(name: str, part: Part) -> None:
    tiny, anatomy, former = TINY[name], anatomy_of(build(name)), watched(name)[1]
    W_v = anatomy.value_weights(0)
    for layer in range(len(anatomy.layers)):
        weight, bias = anatomy.matrix(layer, part)
        weight[anatomy.rows(part)] = 0
        if bias is not None:
            bias[anatomy.rows(part)] = 0
    for before, after in zip(former, states_of(anatomy), strict=True):
        assert not torch.allclose(before.attention[0], before.attention[1], atol=1e-3)
        torch.testing.assert_close(after.attention[0], after.attention[1], rtol=0, atol=1e-6)
        if not tiny.position_bias:
            assert_uniform_where_seen(after.attention)
        require_fit(anatomy, after)
    assert torch.equal(anatomy.value_weights(0), W_v)


@representatives_first()
def test_queries_keys_and_values_are_told_apart_by_what_moves_one_row_of_attention(name: str) -> None:
    """Row i of A knows W_q through token i alone, W_k through every token it sees, and W_v not at all."""
    model = build(name, torch.float64)
    model.set_attn_implementation("eager")
    anatomy = anatomy_of(model)
    family, kept = anatomy.family, []

    def keep(module: Any, args: Any, kwargs: Any, output: Any) -> None:
        kept.append((args[0] if args else next(iter(kwargs.values())), output[family.weights_at]))

    anatomy.part_of(0, family.attention).register_forward_hook(keep, with_kwargs=True)
    model(input_ids=IDS, attention_mask=torch.ones_like(IDS), **what_to_ask(anatomy))
    read, attention = kept[0]
    attention[0, :, N - 1].square().sum().backward()

    def share_through_last_token(part: Part) -> float:
        module = anatomy.part_of(0, family.projection(part).path)
        if module.weight.grad is None:
            return float("nan")
        gradient = module.weight.grad.T if isinstance(module, Conv1D) else module.weight.grad
        gradient, direction = gradient[anatomy.rows(part)], nn.functional.normalize(read[0, N - 1].detach(), dim=0)
        return float((gradient @ direction).norm() / gradient.norm())

    assert share_through_last_token("query") == pytest.approx(1, abs=1e-6)
    assert share_through_last_token("key") < 0.95
    assert isnan(share_through_last_token("value"))


@every_model
def test_a_norm_of_queries_is_declared_where_there_is_one(name: str) -> None:
    anatomy, _ = watched(name)
    there = [path for path, _ in anatomy.layers[0].named_modules() if path.endswith("q_norm")]
    assert there == ([anatomy.family.query_norm] if name in WITH_QUERY_NORM else [])
    assert (anatomy.family.query_norm is not None) == (name in WITH_QUERY_NORM)


@representatives_first(WITH_QUERY_NORM, also=["qwen3"])
def test_the_norm_of_queries_is_all_that_scales_them(name: str) -> None:
    anatomy, former = anatomy_of(build(name)), watched(name)[1]
    assert anatomy.family.query_norm is not None
    gains = [anatomy.part_of(layer, anatomy.family.query_norm).weight for layer in range(len(anatomy.layers))]
    doubled = build(name)
    for layer, gain in enumerate(gains):
        weight, _ = anatomy_of(doubled).matrix(layer, "query")
        weight[anatomy.rows("query")] *= 2
        gain.data.fill_(-anatomy.family.query_norm_offset)
    for before, same, after in zip(former, states_of(anatomy_of(doubled)), states_of(anatomy), strict=True):
        torch.testing.assert_close(same.attention, before.attention, rtol=0, atol=1e-5)
        assert_uniform_where_seen(after.attention)


@every_model
def test_only_albert_shares_layers(name: str) -> None:
    anatomy, _ = watched(name)
    assert anatomy.shares_layers == name.startswith("albert")
    if name == "albert, groups":
        first, second, *_ = anatomy.layers
        third, fourth = anatomy.layers[4:6]
        assert anatomy.layers == (first, second, first, second, third, fourth, third, fourth)
        assert len({id(layer) for layer in anatomy.layers}) == 4


def test_every_declared_model_type_has_a_tiny_model_and_one_meaning() -> None:
    declared = [kind for family in FAMILIES for kind in family.model_types]
    assert set(declared) == {name.partition(",")[0] for name in TINY}
    assert {kind for kind in declared if declared.count(kind) > 1} == {"gpt_neox"}
    assert {family.name for family in FAMILIES} == {tiny.family for tiny in TINY.values()}


def test_the_table_of_the_docs_says_what_is_declared() -> None:
    rows = [line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    for family in FAMILIES:
        described = [row for row in rows if all(f"`{kind}`" in row.split("|")[2] for kind in family.model_types)]
        described = [row for row in described if row.split("|")[3].strip() == family.norm_placement]
        assert len(described) == 1, family.name
        for path in {family.query.path, family.output, family.query_norm or family.output}:
            assert f"`{path}`" in described[0]
        assert (family.query.fused == "separate") == ("separate" in described[0])
    kinds = {kind.strip(" `") for row in rows[2:] for kind in row.split("|")[2].split(",")}
    assert kinds == {kind for family in FAMILIES for kind in family.model_types}


def assert_uniform_where_seen(attention: torch.Tensor) -> None:
    seen = attention > 0
    torch.testing.assert_close(attention, seen / seen.sum(dim=-1, keepdim=True), rtol=0, atol=1e-6)
