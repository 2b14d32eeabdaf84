"""Writes a changed checkpoint: a copy of the folder with different values in its weight files.

It is built in a temporary folder, checked, and only then renamed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from embaudit.checkpoint.files import PICKLES, is_pickle, weight_files
from embaudit.checkpoint.load import Checkpoint, LoadOptions, describe, load_checkpoint
from embaudit.checkpoint.modules import Recipe
from embaudit.checkpoint.reference import HUB_FILES, HUB_REMOTE_CODE, ResolvedCheckpoint, resolve
from embaudit.checkpoint.tensors import StoredTensor, stored_tensors, unpickle
from embaudit.system.files import replace_atomically
from embaudit.words.errors import CheckpointError, StorageError, UsageError, one_line

# What a checkpoint needs, with card and licence, but no ONNX, TensorFlow or OpenVINO copies of the old weights.
COPIED = (*HUB_FILES, *HUB_REMOTE_CODE, "*.md", "LICENSE*", "NOTICE*")
OTHER_RUNTIMES = ("onnx", "openvino", "coreml", "__pycache__")
SAMPLE = (
    "The river is long.",
    "A town in the north built its first school beside the old bridge, and the bridge gave the town its name.",
    "Water, stone and iron: "
    + "what the workers carried up the hill in summer they carried down again in winter. " * 4,
)


@dataclass(frozen=True)
class RewrittenSource:
    """The checkpoint to be changed, loaded in its stored dtype so that both copies round alike."""

    resolved: ResolvedCheckpoint
    recipe: Recipe
    checkpoint: Checkpoint
    options: LoadOptions


def open_source(reference: str, folder: Path, *, device: str, allow_pickle: bool) -> RewrittenSource:
    """Load a checkpoint, to write a changed copy to ``folder``.

    Args:
        reference: as for ``load_checkpoint``.
        folder: the destination, empty or missing.
        allow_pickle: read pickled weights; they are written as safetensors.

    Raises:
        UsageError, CheckpointError, StorageError: if the folder is not empty, or the checkpoint cannot be read or
            copied.
    """
    resolved = resolve(reference, allow_pickle=allow_pickle)
    recipe, _ = describe(resolved, LoadOptions(allow_pickle=allow_pickle))
    _require_new(folder, resolved, recipe)
    options = LoadOptions(device, _stored_dtype(resolved.folder / recipe.transformer_path), allow_pickle=allow_pickle)
    return RewrittenSource(resolved, recipe, load_checkpoint(resolved, options), options)


@contextmanager
def copied(source: RewrittenSource, folder: Path) -> Iterator[tuple[Path, dict[str, StoredTensor]]]:
    """A copy of the checkpoint and its tensors, moved to ``folder`` at the end; a failure leaves nothing behind.

    Raises:
        StorageError: if it cannot be written.
    """
    try:
        with replace_atomically(folder) as building:
            building.mkdir()
            _copy_parts(source.resolved.folder, source.recipe, building)
            yield building, stored_tensors(_copied_weights(source.resolved.folder, source.recipe, building))
    except (OSError, SafetensorError) as error:
        raise _cannot_write(folder, error) from error


def _require_new(folder: Path, resolved: ResolvedCheckpoint, recipe: Recipe) -> None:
    """Refuse a folder that is not empty or inside the checkpoint, and a checkpoint with an adapter.

    Raises:
        UsageError, CheckpointError, StorageError: respectively.
    """
    try:
        is_taken = folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))
    except OSError as error:
        raise _cannot_write(folder, error) from error
    if is_taken:
        raise UsageError(
            f"{folder} already exists and is not an empty folder.",
            kept="It was not changed.",
            next_step="Choose another --out, or remove it first.",
        )
    if folder.resolve().is_relative_to(resolved.folder.resolve()):
        raise UsageError(f"{folder} is inside the checkpoint itself.", next_step="Choose an --out elsewhere.")
    if (resolved.folder / recipe.transformer_path / "adapter_config.json").is_file():
        raise CheckpointError(
            f"{resolved.ref} has an adapter on top of its weights, which would not be changed.",
            next_step="Merge it first: peft's merge_and_unload(), then save_pretrained(FOLDER).",
        )


def _stored_dtype(transformer: Path) -> str:
    """The dtype of most of the stored weights, so that both checkpoints of the comparison round alike."""
    weights = weight_files(transformer)
    if is_pickle(weights[0]):
        return "float32"
    sizes: dict[str, int] = {}
    for stored in stored_tensors(weights).values():
        sizes[stored.dtype] = sizes.get(stored.dtype, 0) + int(np.prod(stored.shape))
    names = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
    return names.get(max(sizes, key=lambda one: sizes[one], default="F32"), "float32")


def _copy_parts(source: Path, recipe: Recipe, folder: Path) -> None:
    """Copy the checkpoint's files, following links, without undeclared copies of the weights."""
    declared = {Path(recipe.transformer_path), *(Path(module.path) for module in recipe.modules)}
    seen: set[str] = set()
    for parent, children, names in os.walk(source, followlinks=True):
        real = os.path.realpath(parent)
        children[:] = sorted(name for name in children if not name.startswith(".") and name not in OTHER_RUNTIMES)
        if real in seen:  # a cyclic link
            children[:] = []
            continue
        seen.add(real)
        here = Path(parent).relative_to(source)
        weights = {path.name for path in weight_files(source / here)} if here in declared else set()
        for name in names:
            is_copied = any(fnmatch(name, pattern) for pattern in COPIED) and not name.endswith(".safetensors")
            if is_copied or name in weights:
                (folder / here).mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / here / name, folder / here / name)


def _copied_weights(source: Path, recipe: Recipe, folder: Path) -> list[Path]:
    """The copied weight files of the transformer, with pickles converted to safetensors."""
    transformer, copied = source / recipe.transformer_path, folder / recipe.transformer_path
    files = weight_files(transformer)
    if not is_pickle(files[0]):
        return [copied / path.name for path in files]
    index = transformer / PICKLES[1]
    is_sharded = not (transformer / PICKLES[0]).is_file() and index.is_file()
    made = unpickle(files, index if is_sharded else None, copied)
    for name in (*(path.name for path in files), *PICKLES):
        (copied / name).unlink(missing_ok=True)
    return made


def add_section(card: Path, section: str, source: ResolvedCheckpoint) -> None:
    """Append a section to a model card.

    Args:
        card: README.md; created if missing, with the source as base model if it is on the hub.
    """
    if card.is_file():
        text = card.read_bytes().decode("utf-8", errors="surrogateescape").rstrip() + "\n\n"
    else:
        text = f"---\nbase_model: {source.ref.name}\n---\n\n" if source.ref.kind == "hub" else ""
    card.write_bytes((text + section).encode("utf-8", errors="surrogateescape"))


def _cannot_write(folder: Path, error: Exception) -> StorageError:
    """The error for a full disk or an unwritable folder."""
    reason = getattr(error, "strerror", None) or one_line(error)
    return StorageError(
        f"Cannot write {folder}: {reason}.",
        kept="Nothing was left there; the source is unchanged.",
        next_step="Free some space, or choose an --out on another disk, and run the same command again.",
    )
