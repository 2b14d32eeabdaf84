"""Layers of a checkpoint that is measured in half precision (``--dtype``): its states are rounded, its sums are not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_sentences import SENTENCES

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.anatomy import LayerState
from embaudit.measures.layers import LayerTextRow
from embaudit.measures.layers.layers import LayerBatch, layer_batch, measure_layers
from embaudit.measures.layers.steps import Collector
from embaudit.measures.layers.terms import value_output


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_theorem_1_holds_for_every_text_where_attention_adds_along_a_sink(dtype: str) -> None:
    """Z is parallel to H, so that the theorem is an equality, and rounding Z + H decides on which side it ends."""
    import torch

    generator = torch.Generator().manual_seed(0)
    H = torch.randn(200, 12, 16, generator=generator)
    H[:, 0, 0] = 300
    H = H.to(getattr(torch, dtype))
    Z = 0.25 * H
    A = torch.full((200, 2, 12, 12), 1 / 12, dtype=H.dtype)
    weights = value_output(torch.ones(2, 8, 16), torch.ones(2, 16, 8))
    values = layer_batch(LayerState(0, H, H, A, Z, Z, H), weights, np.arange(200), reads_norm=False).values
    bound = values["c"] * (1 + np.sqrt(values["contraction"])) ** 2 * values["r"]
    assert (values["normalised_spread"] <= bound * (1 + 1e-9)).all()
    assert values["normalised_spread"] == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_nothing_that_blocks_publishing_fails_on_a_checkpoint_with_a_sink(sink_llama: Path, dtype: str) -> None:
    checkpoint = load_checkpoint(str(sink_llama), LoadOptions(device="cpu", dtype=dtype))
    assert checkpoint.dtype == dtype
    collector = Collector()
    rule = next(one for one in LayerTextRow.table.rules if one.name == "theorem_1_holds")
    for batch in measure_layers(Encoder(checkpoint), SENTENCES):
        collector.add(batch)
        if isinstance(batch, LayerBatch):
            assert rule.function(*(pd.Series(batch.values[name]) for name in rule.columns)).all()
    found = collector.finish(checkpoint.model)
    assert [layer.holds["contraction"] for layer in found.layers] == [1.0, 1.0]
    assert found.pooled.means["normalised_spread"].value == pytest.approx(0.49, abs=0.02)
