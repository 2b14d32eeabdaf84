"""softmax(QKᵀ/(τ√d)) written out, and run inside of a model in the place of its own kernel."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from typing import Any

import pytest
import torch
import transformers
from tiny_families import IDS
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, eager_mask
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.mpnet.modeling_mpnet import MPNetSelfAttention

# The second text is shorter: its last tokens are padding.
MASK = torch.tensor([[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]])


class Kernel:
    """Attention whose layers, in the order in which they run, have the temperatures of a table (layers, heads)."""

    def __init__(self, table: Sequence[Sequence[float]], divides_position_bias: bool) -> None:
        self.table = table
        self.divides_position_bias = divides_position_bias
        self.layer = 0

    def __call__(
        self,
        module: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        scaling: float | None = None,
        position_bias: torch.Tensor | None = None,
        **ignored: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
        tau = torch.tensor(self.table[self.layer], dtype=query.dtype).view(-1, 1, 1)
        self.layer += 1
        logits = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling) / tau
        if position_bias is not None:
            logits = logits + (position_bias / tau if self.divides_position_bias else position_bias)
        if attention_mask is not None:
            logits = logits + attention_mask
        attention = logits.float().softmax(dim=-1).to(query.dtype)
        return (attention @ value).transpose(1, 2).contiguous(), attention

    def in_mpnet(self) -> Any:
        """MPNet asks for no kernel: its attention module, with this one inside."""

        takes = signature(MPNetSelfAttention.forward)

        def forward(*args: Any, **kwargs: Any) -> Any:
            given = takes.bind(*args, **kwargs).arguments
            module, hidden_states = given["self"], given["hidden_states"]
            shape = (*hidden_states.shape[:-1], -1, module.attention_head_size)
            parts = [part(hidden_states).view(shape).transpose(1, 2) for part in (module.q, module.k, module.v)]
            scaling = 1 / math.sqrt(module.attention_head_size)
            mixed, attention = self(module, *parts, given.get("attention_mask"), scaling, given.get("position_bias"))
            return module.o(mixed.flatten(2)), attention

        return forward


@contextmanager
def by_hand(model: Any, table: Sequence[Sequence[float]], divides_position_bias: bool = False) -> Iterator[None]:
    """Run a model with attention as it is written out above."""
    kernel = Kernel(table, divides_position_bias)
    former, forward = model.config._attn_implementation, MPNetSelfAttention.forward
    ALL_ATTENTION_FUNCTIONS.register("by_hand", kernel)
    ALL_MASK_ATTENTION_FUNCTIONS.register("by_hand", eager_mask)
    try:
        if model.config.model_type == "mpnet":
            MPNetSelfAttention.forward = kernel.in_mpnet()
        else:
            model.set_attn_implementation("by_hand")
            if model.config._attn_implementation != "by_hand":
                pytest.skip(f"transformers {transformers.__version__} builds the kernel into {type(model).__name__}")
        yield
        assert kernel.layer == len(table), "the written-out kernel did not run in every layer"
    finally:
        MPNetSelfAttention.forward = forward
        if model.config._attn_implementation != former:
            model.set_attn_implementation(former)
        # The registry of one process: nothing of this stays in it.
        type(ALL_ATTENTION_FUNCTIONS)._global_mapping.pop("by_hand", None)
        type(ALL_MASK_ATTENTION_FUNCTIONS)._global_mapping.pop("by_hand", None)


def outputs(model: Any) -> torch.Tensor:
    """Token embeddings of the attended tokens, one below the other."""
    with torch.inference_mode():
        return model(input_ids=IDS, attention_mask=MASK).last_hidden_state[MASK.bool()]


def difference(A: torch.Tensor, B: torch.Tensor) -> float:
    """Of B from A, relative to A's size."""
    return float((A.float() - B.float()).norm() / A.float().norm())
