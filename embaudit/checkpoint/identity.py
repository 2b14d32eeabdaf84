"""A checkpoint's identity: the content hashes used in every cache key and table row.

Two folders with the same bytes are the same checkpoint, wherever they came from; changing a pooling flag, token or
weight makes a different one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from embaudit.checkpoint.files import (
    code_files,
    read_object,
    refuse_adapter,
    refuse_pointers,
    refuse_versions,
    tokenizer_files,
    weight_files,
    weight_index,
)
from embaudit.checkpoint.modules import Recipe
from embaudit.words.errors import CheckpointError

ID_DIGITS = 16
# transformers 5 records in tokenizer_config.json whether the tokenizer was loaded from a folder or the hub.
HOW_IT_WAS_LOADED = {"is_local", "local_files_only"}


@dataclass(frozen=True)
class CheckpointIdentity:
    """Hashes (hex sha256) of the four parts that decide what a checkpoint computes."""

    weights_sha256: str
    tokenizer_sha256: str
    config_sha256: str
    modules_sha256: str

    @property
    def checkpoint_id(self) -> str:
        """The first 16 hex digits of the sha256 of all four."""
        parts = (self.weights_sha256, self.tokenizer_sha256, self.config_sha256, self.modules_sha256)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:ID_DIGITS]


def identify(folder: Path, recipe: Recipe) -> CheckpointIdentity:
    """Hash a checkpoint's weights, tokenizer, config and effective modules.

    Raises:
        CheckpointError: if the tokenizer, the config or the weights are missing.
    """
    transformer = folder / recipe.transformer_path
    # transformers with peft looks for one in either.
    for place in {folder, transformer}:
        refuse_adapter(place)
    refuse_versions(transformer)
    config = transformer / "config.json"
    if not config.is_file():
        raise CheckpointError(
            f"{transformer} has no config.json.",
            next_step="Use the folder that contains config.json, the weights and the tokenizer.",
        )
    tokenizer_sha256 = tokenizer_hash(folder, recipe)
    weights = weight_files(transformer)
    if not weights:
        raise CheckpointError(
            f"{transformer} has no weights (model.safetensors).",
            next_step="Check that the download is complete, or save with model.save_pretrained(FOLDER).",
        )
    weights = [*weights, *weight_index(transformer)]
    weights += [path for module in recipe.modules for path in weight_files(folder / module.path)]
    refuse_pointers(folder, [config, *weights])
    return CheckpointIdentity(
        weights_sha256=_combined(folder, weights),
        tokenizer_sha256=tokenizer_sha256,
        # Custom code decides as much as the config does.
        config_sha256=_combined(folder, [config, *code_files(transformer)]),
        modules_sha256=hashlib.sha256(json.dumps(recipe.as_json(), sort_keys=True).encode()).hexdigest(),
    )


def folder_id(folder: Path) -> str:
    """16 hex digits of every file of a folder of which nobody knows which ones count, but hidden ones and cards."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix.lower() != ".md")
    kept = [path for path in files if not any(part.startswith(".") for part in path.relative_to(folder).parts)]
    return hashlib.sha256(_combined(folder, kept).encode()).hexdigest()[:ID_DIGITS]


def tokenizer_hash(folder: Path, recipe: Recipe) -> str:
    """Hex sha256 of a checkpoint's tokenizer.

    Raises:
        CheckpointError: if it has none.
    """
    files = tokenizer_files(folder / recipe.tokenizer_path)
    if not files:
        raise CheckpointError(
            f"{folder / recipe.tokenizer_path} has no tokenizer (tokenizer.json, vocab.txt, vocab.json, *.model).",
            next_step="Save it there with tokenizer.save_pretrained(FOLDER), or check that the folder is complete.",
        )
    return _combined(folder, files)


def _combined(folder: Path, files: Iterable[Path]) -> str:
    """The file's own sha256 if there is one file (as published on the hub), otherwise a hash over all."""
    hashes = {path.relative_to(folder).as_posix(): _content_sha256(path) for path in files}
    if len(hashes) == 1:
        return next(iter(hashes.values()))
    lines = "\n".join(f"{digest}  {name}" for name, digest in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _content_sha256(path: Path) -> str:
    """The file's sha256, ignoring the record of how it was loaded."""
    if path.name == "tokenizer_config.json":
        declared = read_object(path)
        if HOW_IT_WAS_LOADED & declared.keys():
            rest = {name: value for name, value in declared.items() if name not in HOW_IT_WAS_LOADED}
            return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    return _file_sha256(path)


def _file_sha256(path: Path) -> str:
    try:
        stat = path.stat()
        return _hash_unchanged_file(path, stat.st_ino, stat.st_size, stat.st_mtime_ns)
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be read: {error.strerror}.", next_step="Check its permissions and the disk."
        ) from error


@lru_cache(maxsize=1024)
def _hash_unchanged_file(path: Path, inode: int, size: int, mtime_ns: int) -> str:
    # The flow and every task need the same hashes: cached by these three, which change if the file is rewritten.
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
