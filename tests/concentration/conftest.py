"""Two tiny checkpoints: a BERT whose biases count, and a Llama with a sink token."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tiny import tiny_bert, wordpiece_vocabulary

from embaudit.checkpoint import Checkpoint


@pytest.fixture(scope="package")
def tiny(tiny_with_biases: Checkpoint) -> Checkpoint:
    return tiny_with_biases


@pytest.fixture(scope="package")
def sink_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Llama in whose residual stream [CLS] is far from all other tokens, until the final norm."""
    import torch
    from transformers import LlamaConfig, LlamaModel

    folder = tiny_bert(tmp_path_factory.mktemp("layers") / "llama")
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    model = LlamaModel(LlamaConfig(vocab_size=len(wordpiece_vocabulary()), max_position_embeddings=128, **sizes))
    with torch.no_grad():
        model.embed_tokens.weight.normal_(mean=1, std=0.5)
        model.embed_tokens.weight[wordpiece_vocabulary().index("[CLS]"), 0] = 200
    model.save_pretrained(folder)
    assert json.loads((folder / "config.json").read_text())["model_type"] == "llama"
    return folder
