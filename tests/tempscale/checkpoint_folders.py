"""The tiny models as checkpoint folders, with a tokenizer whose 50 tokens they have embeddings for."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from string import ascii_lowercase
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import torch
from tiny_families import ROWS, build
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

SPECIAL = ["[UNK]", "[PAD]", "[CLS]", "[SEP]", "[MASK]"]


def save_tokenizer(folder: Path) -> None:
    tokens = [*SPECIAL, *ascii_lowercase, *("##" + letter for letter in ascii_lowercase)][:ROWS]
    ids = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    named = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=24, **named).save_pretrained(folder)


def save(
    folder: Path,
    model: Any,
    *,
    transformer: str = "",
    shards: bool = False,
    pickle: bool = False,
) -> Path:
    """A checkpoint folder of a model, in the sentence-transformers layout with mean pooling."""
    inner = folder / transformer
    save_tokenizer(inner)
    model.save_pretrained(inner, max_shard_size="8KB" if shards else "1GB")
    if pickle:
        pickle_weights(inner)
    kinds = {"Transformer": transformer, "Pooling": "1_Pooling"}
    entries = [
        {"idx": index, "name": str(index), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for index, (kind, path) in enumerate(kinds.items())
    ]
    (folder / "modules.json").write_text(json.dumps(entries))
    (folder / "1_Pooling").mkdir()
    pooling = {"word_embedding_dimension": model.config.hidden_size, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    return folder


def pickle_weights(folder: Path) -> None:
    from safetensors.torch import load_file

    for file in sorted(folder.glob("*.safetensors")):
        torch.save(load_file(file), file.with_name(pickled(file.name)))
        file.unlink()
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        named = json.loads(index.read_text())
        named["weight_map"] = {name: pickled(file) for name, file in named["weight_map"].items()}
        (folder / "pytorch_model.bin.index.json").write_text(json.dumps(named))
        index.unlink()


def pickled(name: str) -> str:
    return name.replace("model", "pytorch_model").replace(".safetensors", ".bin")


def save_tiny(folder: Path, name: str, dtype: torch.dtype = torch.float32, **layout: Any) -> Path:
    """A checkpoint folder of a tiny model, copied from one that is written once."""
    return Path(shutil.copytree(_written(name, dtype, **layout), folder))


@cache
def _written(name: str, dtype: torch.dtype, **layout: Any) -> Path:
    return save(Path(mkdtemp(dir=_templates().name)), build(name, dtype), **layout)


@cache
def _templates() -> TemporaryDirectory[str]:
    """Removed when the process ends."""
    return TemporaryDirectory(prefix="tiny-checkpoints-")


def tensors_of(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return {name: tensor for file in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(file).items()}
