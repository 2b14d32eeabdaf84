"""Finds local checkpoint folders, and checks whether they are complete."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from safetensors import SafetensorError, safe_open

from embaudit.checkpoint.files import weight_files
from embaudit.words.errors import CheckpointError, one_line

# A folder with any of these holds a checkpoint, or will when copying is done.
SIGNS = ("config.json", "modules.json", "tokenizer.json", "*.safetensors", "*.safetensors.index.json", "*.bin")

READABLE = "Check that it is there, and who may read it; the next watch looks again."


def checkpoint_folders(folder: Path, pattern: str) -> list[Path]:
    """The checkpoint folders directly inside a folder, by name, including half-copied ones.

    Raises:
        CheckpointError: if the folder cannot be read.
    """
    try:
        children = sorted(child for child in folder.iterdir() if child.is_dir())
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be listed: {error.strerror or error}.", next_step=READABLE) from error
    return [
        child
        for child in children
        if not child.name.startswith(".") and fnmatchcase(child.name, pattern) and _holds_checkpoint(child)
    ]


def require_whole_weights(folder: Path) -> None:
    """Refuse truncated weight files: a file that is still being copied would have a hash, too.

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
                f"{path} is incomplete ({one_line(error)}).",
                next_step="If it is still being copied, the next watch will find it complete; otherwise copy it again.",
            ) from error


def fingerprint(folder: Path) -> dict[str, tuple[int, int]]:
    """Size and modification time of every file, which change while someone is writing.

    Raises:
        CheckpointError: if a file disappears meanwhile, or a folder cannot be listed.
    """
    try:
        stats = {path: path.stat() for path in sorted(folder.rglob("*")) if path.is_file()}
    except OSError as error:
        raise CheckpointError(f"{folder} cannot be read: {error.strerror or error}.", next_step=READABLE) from error
    return {str(path.relative_to(folder)): (stat.st_size, stat.st_mtime_ns) for path, stat in stats.items()}


def _holds_checkpoint(folder: Path) -> bool:
    try:
        return any(next(folder.glob(sign), None) is not None for sign in SIGNS)
    except OSError:
        # Unreadable: whoever reads its content reports that.
        return True
