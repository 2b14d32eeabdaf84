"""Small networks with random weights and the packaged tokenizer, as sentence-transformers writes them.

Texts get clearly different vectors; they mean nothing, so that nothing here asks for a score.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers as t

from benchmarks.defects.copies import link, set_json
from benchmarks.serving.faults import GOOD
from embaudit.checkpoint import Checkpoint, LoadOptions, load_checkpoint
from embaudit.checkpoint.reference import resolve

TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt")
WIDTH, LAYERS, LIMIT = 32, 2, 64
SIZES: dict[str, Any] = {
    "vocab_size": 30_522,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": 2 * WIDTH,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
}
# Name of a family: its network, given what is changed of its configuration.
NETWORKS = {
    "bert": lambda **more: t.BertModel(t.BertConfig(**SIZES | more), add_pooling_layer=False),
    "roberta": lambda **more: t.RobertaModel(t.RobertaConfig(**SIZES | more), add_pooling_layer=False),
    "qwen2": lambda **more: t.Qwen2Model(t.Qwen2Config(**SIZES | {"num_key_value_heads": 2} | more)),
    "modernbert": lambda **more: t.ModernBertModel(
        t.ModernBertConfig(**SIZES | {"num_hidden_layers": 4, "global_attn_every_n_layers": 4} | more)
    ),
}


def network(folder: Path, family: str = "bert", *, seed: int = 0, limit: int = LIMIT, **changed: Any) -> Path:
    """Write a checkpoint: mean pooling and Normalize.

    Args:
        limit: tokens that are read.
        changed: of its configuration.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = NETWORKS[family](**changed)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if parameter.dim() == 2:
                    is_words = any(part in name for part in ("word_embeddings", "embed_tokens", "tok_embeddings"))
                    parameter.normal_(0.0, 1.0 if is_words else 0.3)
    model.save_pretrained(folder)
    for name in TOKENIZER:
        (folder / name).symlink_to(resolve(GOOD).folder / name)
    return declared(folder, limit=limit)


def declared(folder: Path, *, limit: int = LIMIT, prompts: dict[str, str] | None = None) -> Path:
    """Declare mean pooling, Normalize, a limit and prompts."""
    modules = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    entries = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (path, kind) in enumerate(modules.items())
    ]
    (folder / "modules.json").write_text(json.dumps(entries))
    for path in modules:
        (folder / path).mkdir(exist_ok=True)
    pooling = {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": limit, "do_lower_case": False}))
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts or {}}))
    return folder


def configured(folder: Path, source: Path, **changed: Any) -> Path:
    """The same files with another config.json; None removes a key."""
    link(source, folder)
    set_json("config.json", **changed)(folder)
    return folder


def load(folder: Path | str) -> Checkpoint:
    return load_checkpoint(str(folder), LoadOptions(device="cpu"))


@cache
def good() -> Checkpoint:
    """The packaged checkpoint, where scores are measured."""
    return load(GOOD)
