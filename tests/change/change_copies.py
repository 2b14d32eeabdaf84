"""Tiny checkpoints and copies of them with one thing changed, for comparing a checkpoint with its base."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from tiny import ENGLISH
from tiny_models import build, change_tensors, declare, json_file, load, pooling

from embaudit.checkpoint import LoadOptions
from embaudit.checkpoint.load import load_from_files
from embaudit.measures.quality.material import Material, ScoredPairs
from embaudit.questions.change.change import ChangeReport, TunedResults, change_report

Tensors = dict[str, torch.Tensor]
TensorChange = Callable[[Tensors], object]
FolderChange = Callable[[Path], object]
WORDS = "embeddings.word_embeddings.weight"
LAYER = "encoder.layer.{}."
D = 32


def trained_looking(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Values with the heavy tails of a trained matrix, so that it is not taken for noise."""
    return torch.randn(tensor.shape, generator=generator) ** 3 * 0.1


@cache
def base_in(folder: Path) -> Path:
    """A BERT of two layers with a pooler and a head in its file, whose matrices look trained."""
    folder.mkdir(parents=True)
    declare(build("bert", folder), pooling("mean"), ("Normalize", {}))

    def fill(tensors: Tensors) -> None:
        generator = torch.Generator().manual_seed(3)
        for name, tensor in tensors.items():
            if tensor.dim() == 2:
                tensors[name] = trained_looking(tensor, generator)
        tensors["pooler.dense.weight"] = trained_looking(torch.empty(D, D), generator)
        tensors["pooler.dense.bias"] = torch.zeros(D)
        tensors["cls.predictions.bias"] = torch.zeros(7)

    in_file(fill)(folder)
    return folder


def in_file(change: TensorChange) -> FolderChange:
    """Change the tensors of model.safetensors: in place, or by returning others."""

    return lambda folder: change_tensors(folder / "model.safetensors", change)


def copy_of(base: Path, to: Path, *changes: FolderChange) -> Path:
    shutil.copytree(base, to)
    for change in changes:
        change(to)
    return to


def jittered(*starts: str, size: float = 0.02, only: Callable[[str], bool] = lambda name: True) -> FolderChange:
    """Add to the tensors whose names begin so (all of the body without any) noise of a share of their spread."""

    def change(tensors: Tensors) -> None:
        generator = torch.Generator().manual_seed(5)
        for name, tensor in tensors.items():
            is_body = not name.startswith(("pooler", "cls"))
            if (name.startswith(starts) if starts else is_body) and only(name) and tensor.is_floating_point():
                spread = tensor.std() if tensor.std() > 0 else 1.0
                tensors[name] = tensor + size * spread * torch.randn(tensor.shape, generator=generator)

    return in_file(change)


def cast(dtype: torch.dtype) -> FolderChange:
    return in_file(lambda tensors: {name: tensor.to(dtype) for name, tensor in tensors.items()})


def with_more_tokens(*names: str, is_trained: bool = True) -> FolderChange:
    """New entries at the end of the vocabulary; their rows trained, or the mean of the others."""

    def write(folder: Path) -> None:
        def add(content: dict[str, Any]) -> None:
            vocabulary = content["model"]["vocab"]
            for name in names:
                vocabulary[name] = len(vocabulary)

        def rows(tensors: Tensors) -> None:
            table, generator = tensors[WORDS], torch.Generator().manual_seed(9)
            new = table.mean(0, keepdim=True).repeat(len(names), 1)
            if is_trained:
                new = trained_looking(new, generator)
            tensors[WORDS] = torch.cat([table, new])

        json_file("tokenizer.json", add)(folder)
        in_file(rows)(folder)
        size = len(load_file(folder / "model.safetensors")[WORDS])
        json_file("config.json", vocab_size=size)(folder)

    return write


def permuted(*, with_rows: bool) -> FolderChange:
    """The ordinary tokens in another order, their rows with them or not."""

    def write(folder: Path) -> None:
        count = len(load_file(folder / "model.safetensors")[WORDS])
        order = [*range(5), *(torch.randperm(count - 5, generator=torch.Generator().manual_seed(2)) + 5).tolist()]

        def reorder(content: dict[str, Any]) -> None:
            tokens = sorted(content["model"]["vocab"], key=content["model"]["vocab"].__getitem__)
            content["model"]["vocab"] = {tokens[old]: new for new, old in enumerate(order)}

        json_file("tokenizer.json", reorder)(folder)
        if with_rows:
            in_file(lambda tensors: tensors.update({WORDS: tensors[WORDS][order]}))(folder)

    return write


def small_sample() -> Material:
    """Pairs that the tiny vocabulary can tell apart, scored by the words that they share."""
    words = ENGLISH.split()[-15:]
    firsts, seconds, scores = [], [], []
    for place in range(60):
        one, two = words[place % 15], words[(place + place // 15) % 15]
        firsts.append(f"the {one} of {place}")
        seconds.append(f"a {two} and {place}")
        scores.append(5.0 if one == two else float(place % 2))
    return Material((ScoredPairs("sample", tuple(firsts), tuple(seconds), tuple(scores)),))


def compared(tuned: Path, base: Path) -> ChangeReport:
    """As a check does it: one after another in memory, and weights in their files."""
    sample = small_sample()
    ran = TunedResults.of(load(tuned), sample)
    in_files = (load_from_files(str(folder), LoadOptions(device="cpu")) for folder in (tuned, base))
    return change_report(*in_files, sample, ran, lambda: load(base))
