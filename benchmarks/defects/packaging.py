"""Defects of the folder: names, shapes and files that do not fit the config."""

from __future__ import annotations

from pathlib import Path

from benchmarks.defects.copies import (
    CONFIG,
    WEIGHTS,
    Change,
    Copy,
    Tensors,
    removed,
    replaced,
    set_json,
    tensors,
    write,
)
from benchmarks.defects.weights import WIDE

LAYER = "encoder.layer.3."
NAMES = r"prefix|begin with|in no file|lack"
LACKING = r"in no file|lack|missing"
SHAPES = r"shape|size|do not match|heads"
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 90868376\n"


def prefixed(prefix: str, front: str = "") -> Change:
    """Put a prefix before the names that begin with ``front``."""

    def change(found: Tensors) -> Tensors:
        return {prefix + name if name.startswith(front) else name: tensor for name, tensor in found.items()}

    return tensors(change)


def without(front: str) -> Change:
    return tensors(lambda found: {name: tensor for name, tensor in found.items() if not name.startswith(front)})


def narrower(found: Tensors) -> None:
    found[f"{WIDE}.weight"] = found[f"{WIDE}.weight"][:1_024].clone()
    found[f"{WIDE}.bias"] = found[f"{WIDE}.bias"][:1_024].clone()


def cut_off(share: float) -> Change:
    def change(folder: Path) -> None:
        content = (folder / WEIGHTS).read_bytes()
        write(folder / WEIGHTS, content[: round(share * len(content))])

    return change


def _copy(name: str, change: Change, cause: str, strength: str = "") -> Copy:
    return Copy(name, "packaging", change, cause, strength)


PACKAGING_COPIES = (
    *(
        _copy("names with a prefix", prefixed(prefix), NAMES, prefix)
        for prefix in ("module.", "_orig_mod.", "base_model.model.", "0.auto_model.")
    ),
    _copy("names with a prefix", prefixed("module.", LAYER), NAMES, "one layer"),
    _copy("tensors missing", without(f"{LAYER}output.dense.weight"), LACKING, "one"),
    _copy("tensors missing", without(LAYER), LACKING, "one layer"),
    _copy("tensors of another shape", tensors(narrower), SHAPES),
    _copy("git-lfs pointer", replaced(WEIGHTS, POINTER), r"pointer|lfs", "weights"),
    _copy("git-lfs pointer", replaced("tokenizer.json", POINTER), r"pointer|lfs", "tokenizer"),
    _copy("file cut off", cut_off(0.6), r"truncat|cut off|incomplete|damaged|cannot load|read"),
    _copy("no tokenizer", removed("tokenizer.json", "vocab.txt"), r"tokeni[sz]er|vocabulary"),
    _copy(
        "adapter beside the weights",
        replaced("adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": "a/b", "r": 8}),
        r"adapter",
    ),
    _copy(
        "config of another model",
        set_json(CONFIG, num_hidden_layers=3),
        r"layers, of which|unread_weights|num_hidden_layers",
        "3 layers of 6",
    ),
    _copy("config of another model", set_json(CONFIG, num_hidden_layers=12), LACKING, "12 layers of 6"),
    _copy(
        "config of another model",
        set_json(CONFIG, hidden_act="relu"),
        r"\brelu\b|hidden_act|activation|lost_in_layer",
        "ReLU",
    ),
    _copy(
        "config of another model",
        set_json(CONFIG, hidden_act="tanh"),
        r"\btanh\b|hidden_act|activation|lost_in_layer",
        "tanh",
    ),
    _copy("config of another model", set_json(CONFIG, layer_norm_eps=1e-2), r"layer_norm_eps|epsilon", "ε .01"),
    _copy(
        "config of another model",
        set_json(CONFIG, num_attention_heads=6),
        r"heads|attention|lost_in_layer",
        "6 heads of 12",
    ),
    _copy(
        "config of another model",
        set_json(CONFIG, num_attention_heads=1),
        r"heads|attention|lost_in_layer",
        "1 head of 12",
    ),
    _copy("config of another model", set_json(CONFIG, hidden_size=768), SHAPES, "width 768 of 384"),
    _copy(
        "config of another model",
        set_json(CONFIG, model_type="roberta"),
        rf"roberta|model_type|{LACKING}|{SHAPES}",
        "RoBERTa",
    ),
)
