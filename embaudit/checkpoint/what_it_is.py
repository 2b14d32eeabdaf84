"""What a folder or file is that is no checkpoint: said before what it lacks, with the line that makes it one.

A folder with a config and weights is read as it is. Any other one is looked up in ``layouts``; a run's folder or a
cache's is answered with the checkpoint inside.
"""

from __future__ import annotations

import os
import re
import shlex
import zipfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from embaudit.checkpoint.files import ADAPTER, PICKLES, SAFETENSORS, read_object
from embaudit.checkpoint.layouts import FILES, OTHER_NAMES, STATES, WITH_WEIGHTS, WITHOUT_WEIGHTS, Foreign
from embaudit.words.errors import CheckpointError

WEIGHTS = (*SAFETENSORS, *PICKLES)
# How deep, and how many files: training leaves thousands.
DEPTH, MOST_FILES = 3, 5_000
# The steps of a run, and the folders of a sentence-transformers checkpoint's modules.
STEP, MODULE = re.compile(r"\d+"), re.compile(r"\d+_[A-Z]")
NAMED_AT_MOST = 3
ROUTES = "router_config.json"
CACHED = re.compile(r"(models|datasets|spaces)--(.+)")


def refuse_other_layouts(folder: Path) -> None:
    """Refuse a folder that is known to be something else than a checkpoint.

    Raises:
        CheckpointError: saying what it is, and what to type.
    """
    if (folder / ADAPTER).is_file():  # refused with its base's name
        return
    if is_checkpoint([name for name in ("config.json", *WEIGHTS) if (folder / name).is_file()]):
        _refuse_mlx(folder)
        return
    if not folder.is_dir():
        return
    names = _names_in(folder)
    if not names:
        raise CheckpointError(
            f"{folder} is {'a folder without files' if any(folder.iterdir()) else 'an empty folder'}.",
            next_step="Use the folder that contains config.json, the weights and the tokenizer.",
        )
    if (found := _a_cache(folder) or _of_files(names, folder)) is not None:
        raise found


def refuse_other_repository(ref: str, name: str, names: Sequence[str]) -> None:
    """Refuse a repository of the hub by its files' names, before anything is downloaded.

    Args:
        ref: as it was typed.
        name: ``owner/name``.

    Raises:
        CheckpointError: saying what it is, and what to type.
    """
    folder = Path("FOLDER")
    found = None if ADAPTER in names else _of_files(names, folder)
    if found is not None:
        raise CheckpointError(
            found.happened.replace(str(folder), ref, 1),
            next_step=f"Download it (hf download {name} --local-dir {folder}). {found.next_step}",
        )


def _of_files(names: Sequence[str], folder: Path) -> CheckpointError | None:
    """The error for a folder with these files; None if it is a checkpoint, or nothing that is known."""
    # A router's routes are checkpoints in folders of their own, which its own file names.
    if is_checkpoint(names) or ({ROUTES, "modules.json"} <= set(names)):
        return None
    if (found := _of_layouts(names, folder, STATES) or _steps_inside(folder, names)) is not None:
        return found
    # Weights under the usual name that lack their config are a checkpoint's, whatever lies beside them.
    has_weights = any(name.removeprefix(_first_module(name)) in WEIGHTS for name in names)
    if has_weights:
        return _of_layouts(names, folder, WITH_WEIGHTS)
    own = [name for name in names if not any(_matches(name, one) for row in WITHOUT_WEIGHTS for one in row.files)]
    return _of_layouts(own, folder, (*FILES, *OTHER_NAMES)) or _of_layouts(names, folder, WITHOUT_WEIGHTS)


def is_checkpoint(names: Sequence[str], inside: str = "") -> bool:
    """Whether a folder with these files has a config and weights that are read, by itself or in its first module."""
    known = {name.removeprefix(inside) for name in names if name.startswith(inside)}
    return any(
        f"{place}config.json" in known and any(f"{place}{weights}" in known for weights in WEIGHTS)
        for place in {"", *(map(_first_module, known) if "modules.json" in known else ())}
    )


def _first_module(name: str) -> str:
    """``0_Transformer/`` of a file in it; empty for any other."""
    return f"{name.split('/')[0]}/" if name.startswith("0_") and "/" in name else ""


def _of_layouts(names: Sequence[str], folder: Path, layouts: Sequence[Foreign]) -> CheckpointError | None:
    """The error for the first layout that a folder's files have.

    Args:
        names: its files' paths inside it.
    """
    for layout in layouts:
        matches = [[name for name in names if _matches(name, pattern)] for pattern in layout.files]
        if layout.is_script:
            matches = [[name for name in some if _is_script(folder / name)] for some in matches]
        if all(matches):
            return _error(layout, folder, [some[0] for some in matches], f"{folder} is")
    return None


def refuse_file(path: Path) -> CheckpointError:
    """The error for a file in place of a folder: its folder if that is a checkpoint, else what to make of the file."""
    folder = path.parent
    start = f"{path} is a file, but a checkpoint is a folder with config, weights and tokenizer"
    if is_checkpoint(_names_in(folder)):
        return CheckpointError(f"{start}.", next_step=f"Try its folder: {folder}")
    for layout in FILES:
        is_so = any(_matches(path.name, pattern) for pattern in layout.files) and (
            not layout.is_script or _is_script(path)
        )
        if is_so:
            return _error(layout, folder, [path.name], f"{start}: it is")
    if path.suffix in (".safetensors", ".bin", ".pt", ".pth"):
        usual = SAFETENSORS[0] if path.suffix == ".safetensors" else PICKLES[0]
        return CheckpointError(
            f"{start}.",
            next_step=f"Copy it into a folder with the config.json and tokenizer of its model: cp "
            f"{shlex.quote(str(path))} OUT/{usual}, then: embaudit check OUT",
        )
    return CheckpointError(f"{start}.", next_step=f"Try its folder: {folder}")


def _error(layout: Foreign, folder: Path, names: Sequence[str], start: str) -> CheckpointError:
    name, file = names[0], folder / names[0]
    words = {
        "name": name,
        "parent": name.split("/")[0],
        "own": shlex.quote(folder.name),
        "folder": shlex.quote(str(folder)),
        "above": shlex.quote(str(folder.parent)),
        "file": shlex.quote(str(file)),
        "weights": shlex.quote(str(folder / names[-1])),
        "stem": shlex.quote(str(file.with_suffix(""))),
        "as_string": repr(str(folder)),
        "file_as_string": repr(str(file)),
    }
    return CheckpointError(f"{start} {layout.what.format(**words)}.", next_step=layout.next_step.format(**words))


def _matches(name: str, patterns: str) -> bool:
    """Whether a path matches one of the patterns between bars, which do not cross slashes."""
    return any(name.count("/") == pattern.count("/") and fnmatchcase(name, pattern) for pattern in patterns.split("|"))


def _is_script(path: Path) -> bool:
    """Whether a file of PyTorch is TorchScript: an archive with code."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any("/code/" in name for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _names_in(folder: Path) -> list[str]:
    """Paths of a folder's files inside it, hidden ones too, sorted within each folder."""
    names: list[str] = []
    for place, folders, files in os.walk(folder):
        inside = PurePosixPath(Path(place).relative_to(folder).as_posix())
        folders[:] = sorted(one for one in folders if one != ".git") if len(inside.parts) < DEPTH else []
        names += [(inside / name).as_posix() for name in sorted(files)]
        if len(names) > MOST_FILES:
            break
    return names


def _steps_inside(folder: Path, names: Sequence[str]) -> CheckpointError | None:
    """The error for a folder with checkpoints in it, which names the newest."""
    tops = dict.fromkeys(name.split("/")[0] for name in names if "/" in name)
    if modules := [top for top in tops if MODULE.match(top) and is_checkpoint(names, f"{top}/")]:
        return CheckpointError(
            f"{folder} is a sentence-transformers checkpoint without its modules.json: the transformer is in "
            f"{modules[0]}.",
            next_step=f"Fetch modules.json as well, or give its pooling: embaudit check "
            f"{shlex.quote(str(folder / modules[0]))} --pooling mean",
        )
    below = dict.fromkeys("/".join(name.split("/")[:2]) for name in names if name.count("/") > 1)
    for inner in (tops, below):
        if found := [one for one in inner if is_checkpoint(names, f"{one}/")]:
            newest = max(found, key=lambda one: _age(folder, one))
            shown = ", ".join(found[:NAMED_AT_MOST]) + (" …" if len(found) > NAMED_AT_MOST else "")
            are = "a checkpoint" if len(found) == 1 else f"{len(found)} checkpoints"
            return CheckpointError(
                f"{folder} is a folder with {are} in it ({shown}).",
                next_step=f"{'It is' if len(found) == 1 else 'The newest is'} {folder / newest}: embaudit check "
                f"{shlex.quote(str(folder / newest))}",
            )
    steps = [top for top in tops if STEP.search(top) and not MODULE.match(top)]
    if not steps:
        return None
    newest = max(steps, key=lambda one: _age(folder, one))
    return _of_files(
        [name.removeprefix(f"{newest}/") for name in names if name.startswith(f"{newest}/")], folder / newest
    )


def _age(folder: Path, name: str) -> tuple[int, float]:
    """Later steps are larger: by number, or by when they were written."""
    numbers = STEP.findall(PurePosixPath(name).name)
    try:
        written = (folder / name).stat().st_mtime
    except OSError:
        written = 0.0
    return (int(numbers[-1]) if numbers and len(numbers[-1]) < 12 else 0), written


def _a_cache(folder: Path) -> CheckpointError | None:
    """The error for a folder of the hub's cache, which names the snapshot inside."""
    named = CACHED.fullmatch(folder.name)
    inside = folder / "snapshots" if named else folder if folder.name == "snapshots" else None
    if inside is None or not inside.is_dir():
        return None
    snapshots = [one for one in inside.iterdir() if one.is_dir()]
    main = inside.parent / "refs" / "main"
    commit = main.read_text(encoding="utf-8").strip() if main.is_file() else ""
    complete = [one for one in snapshots if is_checkpoint(_names_in(one))]
    if not complete:
        return CheckpointError(
            f"{folder} is a repository in the hub's cache without a snapshot that has config.json and weights.",
            next_step="Give the repository, which downloads what is missing: embaudit check "
            + (named[2].replace("--", "/") if named else "OWNER/NAME"),
        )
    newest = max(complete, key=lambda one: (one.name == commit, one.stat().st_mtime))
    return CheckpointError(
        f"{folder} is a repository in the hub's cache; its checkpoint is in snapshots/{newest.name}.",
        next_step=f"Use that: embaudit check {shlex.quote(str(newest))}",
    )


def _refuse_mlx(folder: Path) -> None:
    """Refuse weights that MLX has packed, whose scales a model of transformers has no place for.

    Raises:
        CheckpointError: if config.json says so.
    """
    if not (folder / "config.json").is_file():
        return
    packed = read_object(folder / "config.json").get("quantization")
    if isinstance(packed, dict) and "bits" in packed and "group_size" in packed:
        raise CheckpointError(
            f"{folder} is a checkpoint of MLX, packed into {packed['bits']} bits (quantization in config.json).",
            next_step="Use the checkpoint that it was made from, or unpack it on a Mac: mlx_lm.convert --hf-path "
            f"{shlex.quote(str(folder))} --mlx-path OUT -d",
        )
