"""Variants of a checkpoint with one thing changed: in memory, or in a folder of links to the original's files."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tiny_models import json_file

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.tokenizer import load_tokenizer, special_tokens_around

if TYPE_CHECKING:
    import torch

Change = Callable[["dict[str, torch.Tensor]", "torch.Generator"], object]
FolderChange = Callable[[Path], object]


def with_tensors(checkpoint: Checkpoint, change: Change) -> Checkpoint:
    """The checkpoint with a model of its own, whose parameters were changed in place."""
    import torch

    model = copy.deepcopy(checkpoint.model)
    with torch.no_grad():
        change(dict(model.named_parameters()), torch.Generator().manual_seed(5))
    return replace(checkpoint, model=model)


def with_tokenizer(checkpoint: Checkpoint, folder: Path, *changes: FolderChange) -> Checkpoint:
    """The checkpoint with the tokenizer of a changed copy of its folder."""
    linked(checkpoint.resolved.folder, folder)
    for change in changes:
        change(folder)
    tokenizer = load_tokenizer(folder, is_lowercased=False, trust_remote_code=False)
    prefix, suffix = special_tokens_around(tokenizer)
    resolved = replace(checkpoint.resolved, folder=folder)
    return replace(checkpoint, resolved=resolved, tokenizer=tokenizer, prefix_ids=prefix, suffix_ids=suffix)


def linked(folder: Path, to: Path) -> Path:
    """The same folder, made of links."""
    for path in folder.rglob("*"):
        target = to / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            target.mkdir(exist_ok=True)
        else:
            target.symlink_to(path.resolve())
    return to


def vocabulary_changed(change: Callable[[list[str]], list[str]]) -> FolderChange:
    """Another order of the entries, in tokenizer.json and vocab.txt."""

    def run(folder: Path) -> None:
        def reorder(content: dict[str, Any]) -> None:
            vocabulary = content["model"]["vocab"]
            tokens.extend(change(sorted(vocabulary, key=vocabulary.__getitem__)))
            content["model"]["vocab"] = {token: place for place, token in enumerate(tokens)}

        tokens: list[str] = []
        json_file("tokenizer.json", reorder)(folder)
        (folder / "vocab.txt").unlink()
        (folder / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")

    return run


def noise(tensor: torch.Tensor, std: float, generator: torch.Generator, kind: str = "normal") -> None:
    """Fill a tensor with noise: normal, uniform, or normal truncated at two standard deviations."""
    import torch

    if kind == "uniform":
        tensor.uniform_(-std * 3**0.5, std * 3**0.5, generator=generator)
    elif kind == "truncated":
        torch.nn.init.trunc_normal_(tensor, 0.0, std, -2 * std, 2 * std, generator=generator)
    else:
        tensor.normal_(0.0, std, generator=generator)


def randomised(part: str, std: float = 0.02, kind: str = "normal", *, is_fresh: bool = False) -> Change:
    """Noise in all matrices of a part; as initialised, with gains of 1 and biases of 0, if ``is_fresh``."""

    def change(tensors: dict[str, torch.Tensor], generator: torch.Generator) -> None:
        for name, tensor in tensors.items():
            if part in name and tensor.dim() == 2:
                noise(tensor, std, generator, kind)
            elif part in name and is_fresh:
                tensor.fill_(0.0 if name.endswith("bias") else 1.0)

    return change


def each_matrix(function: Callable[[torch.Tensor, torch.Generator], torch.Tensor], part: str = "") -> Change:
    """Replace every matrix of a part by a function of it."""

    def change(tensors: dict[str, torch.Tensor], generator: torch.Generator) -> None:
        for name, tensor in tensors.items():
            if part in name and tensor.dim() == 2:
                tensor.copy_(function(tensor, generator))

    return change
