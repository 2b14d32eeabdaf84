"""Local checkpoints: find their folders, and see whether one is complete."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from safetensors import SafetensorError, safe_open

from embaudit.checkpoint.files import weight_files
from embaudit.errors import CheckpointError, one_line

# Any of these makes a folder one that holds a checkpoint, or will when the copying is done.
SIGNS = ("config.json", "modules.json", "tokenizer.json", "*.safetensors", "*.safetensors.index.json", "*.bin")


def checkpoint_folders(folder: Path, pattern: str) -> list[Path]:
    """The checkpoint folders directly inside a folder, by name; a half-copied one is among them.

    Raises:
        CheckpointError: if the folder cannot be read.
    """
    try:
        children = sorted(child for child in folder.iterdir() if child.is_dir())
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be listed: {error.strerror or error}.") from error
    return [
        child
        for child in children
        if not child.name.startswith(".") and fnmatchcase(child.name, pattern) and _holds_checkpoint(child)
    ]


def require_whole_weights(folder: Path) -> None:
    """Refuse weights whose file ends before its header says it does: one that is still being copied has a hash, too.

    Raises:
        CheckpointError: naming the file.
    """
    for path in weight_files(folder):
        if path.suffix != ".safetensors":
            continue
        try:
            with safe_open(path, framework="numpy"):
                pass
        except (SafetensorError, OSError) as error:
            raise CheckpointError(
                f"{path} is not whole ({one_line(error)[:-1]}).",
                next_step="If it is still being copied, the next watch finds it whole; else copy it again.",
            ) from error


def fingerprint(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file: what changes while somebody writes.

    Raises:
        CheckpointError: if a file goes away meanwhile, or a folder cannot be listed.
    """
    try:
        stats = {path: path.stat() for path in sorted(folder.rglob("*")) if path.is_file()}
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be read: {error.strerror or error}.") from error
    return {str(path.relative_to(folder)): (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


def _holds_checkpoint(folder: Path) -> bool:
    try:
        return any(next(folder.glob(sign), None) is not None for sign in SIGNS)
    except OSError:
        # It cannot be looked into: that is for the one who asks what is in it to say.
        return True
