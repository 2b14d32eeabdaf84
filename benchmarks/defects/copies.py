"""What a broken copy is, and how one is made of a good folder: links to what is kept, files of its own for the rest."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors.torch import load_file, save_file

WEIGHTS, CONFIG = "model.safetensors", "config.json"
Kind = Literal[
    "tokenizer", "weights", "pooling", "prompts", "numerics", "batching", "length", "training", "packaging", "harmless"
]
Tensors = dict[str, torch.Tensor]
Change = Callable[[Path], object]


@dataclass(frozen=True)
class Copy:
    """One way to change a checkpoint folder.

    Attributes:
        name: the defect, or the harmless variant.
        change: makes it in a folder of links.
        cause: what a finding that names the cause must contain, in its rule or its sentence; a regular expression.
        strength: how much of it, where there is more than one.
        served_as: the precision in which it does its harm.
        moves: of a harmless variant, the kinds of text that it moves by design (another limit moves long texts).
    """

    name: str
    kind: Kind
    change: Change
    cause: str = ""
    strength: str = ""
    served_as: str = "float32"
    moves: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.name}: {self.strength}" if self.strength else self.name

    @property
    def is_harmless(self) -> bool:
        return self.kind == "harmless"

    def make(self, source: Path, target: Path) -> None:
        """Write the copy of ``source`` into ``target``, a folder that does not exist yet."""
        link(source, target)
        self.change(target)


def link(source: Path, target: Path) -> None:
    """A folder with a symbolic link to every file."""
    for folder, _, names in os.walk(source):
        place = target / Path(folder).relative_to(source)
        place.mkdir(parents=True)
        for name in names:
            (place / name).symlink_to((Path(folder) / name).resolve())


def write(path: Path, content: bytes | str | list[Any] | dict[str, Any]) -> None:
    """Write a file of the copy; anything but bytes and text as JSON."""
    # Writing through the link would change the source.
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        text = content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False)
        path.write_text(text, encoding="utf-8")


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def set_json(name: str, **changes: Any) -> Change:
    """Set keys of a JSON object; None removes one."""

    def change(folder: Path) -> None:
        path = folder / name
        content = {**(read_json(path) if path.is_file() else {}), **changes}
        write(path, {key: value for key, value in content.items() if value is not None})

    return change


def replaced(name: str, content: bytes | str | list[Any] | dict[str, Any]) -> Change:
    return lambda folder: write(folder / name, content)


def removed(*names: str) -> Change:
    def change(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return change


def together(*changes: Change) -> Change:
    def change(folder: Path) -> None:
        for one in changes:
            one(folder)

    return change


def tensors(change: Callable[[Tensors], Tensors | None]) -> Change:
    """Rewrite the weights: ``change`` alters the tensors in place, or gives others."""

    def apply(folder: Path) -> None:
        path = folder / WEIGHTS
        # Cloned, since loaded tensors are views of the mapped file.
        found = {name: tensor.clone() for name, tensor in load_file(path).items()}
        changed = change(found) or found
        path.unlink()
        save_file({name: tensor.contiguous() for name, tensor in changed.items()}, path, metadata={"format": "pt"})

    return apply


def seeded(seed: int = 33) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
