"""A long text holds one layer's attention at a time, however many layers there are."""

from __future__ import annotations

import subprocess
import sys

import pytest

TOKENS = 2_048
LAYERS = 16
HEADS = 2
SCRIPT = f"""
import numpy as np
import torch
from transformers import LlamaConfig, LlamaModel
from embaudit.checkpoint.anatomy import anatomy_of, watching
from embaudit.measures.layers.layers import constants, layer_batch
from embaudit.system.processors import peak_memory

torch.manual_seed(0)
model = LlamaModel(
    LlamaConfig(
        vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers={LAYERS},
        num_attention_heads={HEADS}, num_key_value_heads=1, max_position_embeddings={TOKENS}, use_cache=False,
    )
).eval()
anatomy = anatomy_of(model)
weights = constants(anatomy)
ids = torch.randint(0, 50, (1, {TOKENS}))
before = peak_memory()
values = []
with watching(anatomy) as run:
    run(ids, lambda state: values.append(layer_batch(state, weights[state.layer], np.array([0]), anatomy.reads_norm)))
assert len(values) == {LAYERS}
assert all(np.isfinite(batch.values["sigma_a"]).all() for batch in values)
print((peak_memory() - before) / 2**20)
"""


@pytest.mark.slow
def test_sixteen_layers_of_a_long_text_need_the_memory_of_a_few() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    one_layer = HEADS * TOKENS**2 * 4 / 2**20
    # The eager kernel itself needs logits, mask and softmax beside the weights.
    assert float(done.stdout) < 8 * one_layer < LAYERS * one_layer
