"""Copies of the packaged checkpoint that are broken, or changed without harm: links to its files and what differs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import torch
from real_tokenizers import packaged_checkpoint
from tiny_models import change_tensors, json_file

Tensors = dict[str, torch.Tensor]
Change = Callable[[Path], None]
LAYERS = 6
# What a constant added to the output needs so that unrelated texts have a mean cosine of about .9.
OFFSET = 12.0


def copy_of_packaged(folder: Path, change: Change | None = None) -> Path:
    """Links to the packaged checkpoint's files; ``change`` replaces some of them."""
    source = packaged_checkpoint()
    for path in sorted(source.rglob("*")):
        target = folder / path.relative_to(source)
        if path.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(path)
    if change is not None:
        change(folder)
    return folder


def weights(change: Callable[[Tensors], None]) -> Change:
    return lambda folder: change_tensors(folder / "model.safetensors", change)


def cased(folder: Path) -> None:
    """Capitals are no longer lower-cased; the vocabulary has small letters only."""
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["normalizer"]["lowercase"] = False
    path.unlink()
    path.write_text(json.dumps(content), encoding="utf-8")
    json_file("tokenizer_config.json", do_lower_case=False)(folder)
    json_file("sentence_bert_config.json", do_lower_case=False)(folder)


def random_matrices(starts: str, *, only: Callable[[str], bool] = lambda name: True) -> Callable[[Tensors], None]:
    """Initialise as transformers does: matrices from N(0, .02²), gains 1, biases 0."""

    def change(tensors: Tensors) -> None:
        generator = torch.Generator().manual_seed(1)
        for name, tensor in tensors.items():
            if not name.startswith(starts) or not only(name) or not tensor.is_floating_point():
                continue
            if tensor.dim() == 2:
                tensor.normal_(0.0, 0.02, generator=generator)
            else:
                tensor.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)

    return change


def all_random(tensors: Tensors) -> None:
    random_matrices("")(tensors)


def layer(number: int) -> str:
    return f"encoder.layer.{number}."


def shuffled_rows(tensors: Tensors) -> None:
    rows = tensors["embeddings.word_embeddings.weight"]
    order = torch.randperm(len(rows) - 1_000, generator=torch.Generator().manual_seed(1)) + 1_000
    tensors["embeddings.word_embeddings.weight"] = torch.cat([rows[:1_000], rows[order]])


def layers_in_order(order: list[int]) -> Callable[[Tensors], None]:
    def change(tensors: Tensors) -> None:
        before = dict(tensors)
        for place, source in enumerate(order):
            for name in before:
                if name.startswith(layer(place)):
                    tensors[name] = before[name.replace(layer(place), layer(source))].clone()

    return change


def noise(share: float) -> Callable[[Tensors], None]:
    """Add noise of a share of each matrix's spread."""

    def change(tensors: Tensors) -> None:
        generator = torch.Generator().manual_seed(1)
        for tensor in tensors.values():
            if tensor.dim() == 2 and tensor.is_floating_point():
                tensor += share * tensor.std() * torch.randn(tensor.shape, generator=generator)

    return change


def as_bfloat16(tensors: Tensors) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point():
            tensors[name] = tensor.to(torch.bfloat16)


def offset(size: float) -> Change:
    """A constant added to the last layer's output, so that all texts have much in common."""

    def change(tensors: Tensors) -> None:
        bias = tensors[f"{layer(LAYERS - 1)}output.LayerNorm.bias"]
        direction = torch.randn(bias.shape, generator=torch.Generator().manual_seed(1))
        bias += size * direction / direction.norm()

    return weights(change)


BROKEN: dict[str, Change] = {
    "all random": weights(all_random),
    "encoder random": weights(random_matrices("encoder.")),
    "last layer random": weights(random_matrices(layer(5))),
    "third layer random": weights(random_matrices(layer(2))),
    "cls instead of mean": json_file(
        "1_Pooling/config.json", pooling_mode_cls_token=True, pooling_mode_mean_tokens=False
    ),
    "lower-casing lost": cased,
    "vocabulary shuffled": weights(shuffled_rows),
    "noise of half the spread": weights(noise(0.5)),
    "layers reversed": weights(layers_in_order([5, 4, 3, 2, 1, 0])),
    "last two layers swapped": weights(layers_in_order([0, 1, 2, 3, 5, 4])),
    "cut at 16 tokens": json_file("sentence_bert_config.json", max_seq_length=16),
}
HARMLESS: dict[str, Change] = {
    "as published": lambda folder: None,
    "saved as bf16": weights(as_bfloat16),
    "1 % noise": weights(noise(0.01)),
    "offset": offset(OFFSET),
}
