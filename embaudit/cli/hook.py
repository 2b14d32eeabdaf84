"""``python -m embaudit.cli.hook FILES``: look at the files of every checkpoint that a commit touches (pre-commit)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

# What makes a folder a checkpoint: sentence-transformers' list of modules, or transformers' config beside weights.
MODULES, CONFIG = "modules.json", "config.json"


def checkpoints_of(files: Iterable[str]) -> list[Path]:
    """The checkpoint folders that these files are in, each once, in order."""
    return list(dict.fromkeys(folder for name in files if (folder := checkpoint_of(Path(name))) is not None))


def checkpoint_of(file: Path) -> Path | None:
    """The outermost folder above a file that is a checkpoint."""
    return next(iter([folder for folder in _above(file) if _is_checkpoint(folder)][::-1]), None)


def _above(file: Path) -> Iterator[Path]:
    """A file's folders, up to the one that the command is run in."""
    for folder in file.parents:
        yield folder
        if folder == Path():
            return


def _is_checkpoint(folder: Path) -> bool:
    has_weights = any(True for pattern in ("*.safetensors", "pytorch_model*.bin") for _ in folder.glob(pattern))
    return (folder / MODULES).is_file() or ((folder / CONFIG).is_file() and has_weights)


def main(files: list[str]) -> int:
    """Exit code 1 if a checkpoint must not be served, 2 if one could not be looked at, 0 else."""
    import embaudit
    from embaudit.words.errors import EmbauditError
    from embaudit.words.sentences import visible

    worst = 0
    for folder in checkpoints_of(files):
        try:
            report = embaudit.check(checkpoint=folder, files_only=True, device="cpu")
        except EmbauditError as error:
            print(visible(f"{folder}: {error}"), file=sys.stderr)
            worst = max(worst, 2)
            continue
        print(visible(f"{folder}: {report.line}"))
        worst = max(worst, report.exit_code)
    return worst


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
