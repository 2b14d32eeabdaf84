"""What a checkpoint is, by content: the hashes that every cache key and every table row hang on.

Two folders with the same bytes are one checkpoint, wherever they came from; one changed pooling flag, token
or weight makes another one. Read by ``load`` and by the warehouse's ``checkpoint`` table.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from embaudit.checkpoint.files import code_files, read_object, tokenizer_files, weight_files
from embaudit.checkpoint.modules import Recipe
from embaudit.errors import CheckpointError

ID_DIGITS = 16
# transformers 5 saves in tokenizer_config.json how the tokenizer was loaded, from a folder or the hub.
HOW_IT_WAS_LOADED = {"is_local", "local_files_only"}


@dataclass(frozen=True)
class CheckpointIdentity:
    """Hashes of the four things that decide what a checkpoint computes (hex sha256)."""

    weights_sha256: str
    tokenizer_sha256: str
    config_sha256: str
    modules_sha256: str

    @property
    def checkpoint_id(self) -> str:
        """The first 16 hex digits of the sha256 over all four."""
        parts = (self.weights_sha256, self.tokenizer_sha256, self.config_sha256, self.modules_sha256)
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:ID_DIGITS]


def identify(folder: Path, recipe: Recipe) -> CheckpointIdentity:
    """Hash a checkpoint's weights, tokenizer, config and effective modules.

    Raises:
        CheckpointError: if the tokenizer, the config or the weights are missing.
    """
    transformer = folder / recipe.transformer_path
    config = transformer / "config.json"
    if not config.is_file():
        raise CheckpointError(
            f"{transformer} holds no config.json.",
            next_step="Name the folder that holds config.json, the weights and the tokenizer.",
        )
    tokenizer_sha256 = tokenizer_hash(folder, recipe)
    weights = weight_files(transformer)
    if not weights:
        raise CheckpointError(
            f"{transformer} holds no weights: no model.safetensors is there.",
            next_step="Check that the download is complete, or save with model.save_pretrained(FOLDER).",
        )
    weights = weights + [path for module in recipe.modules for path in weight_files(folder / module.path)]
    return CheckpointIdentity(
        weights_sha256=_combined(folder, weights),
        tokenizer_sha256=tokenizer_sha256,
        # Code that the config asks for decides as much as the config does.
        config_sha256=_combined(folder, [config, *code_files(transformer)]),
        modules_sha256=hashlib.sha256(json.dumps(recipe.as_json(), sort_keys=True).encode()).hexdigest(),
    )


def tokenizer_hash(folder: Path, recipe: Recipe) -> str:
    """Hex sha256 of a checkpoint's tokenizer.

    Raises:
        CheckpointError: if it has none.
    """
    files = tokenizer_files(folder / recipe.tokenizer_path)
    if not files:
        raise CheckpointError(
            f"{folder / recipe.tokenizer_path} holds no tokenizer (tokenizer.json, vocab.txt, vocab.json, *.model).",
            next_step="Save it there with tokenizer.save_pretrained(FOLDER), or check that the folder is complete.",
        )
    return _combined(folder, files)


def _combined(folder: Path, files: Iterable[Path]) -> str:
    """The file's own sha256 when there is one (so that it is the published figure), else one over all."""
    hashes = {path.relative_to(folder).as_posix(): _content_sha256(path) for path in files}
    if len(hashes) == 1:
        return next(iter(hashes.values()))
    lines = "\n".join(f"{digest}  {name}" for name, digest in sorted(hashes.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _content_sha256(path: Path) -> str:
    """The file's sha256; where it says how it was loaded, that of everything else that it says."""
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
    # One process asks for the same hashes in the flow and in every task: these three tell a rewritten file.
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
