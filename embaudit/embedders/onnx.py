"""The other function as an ONNX file: named itself, or the one that lies in a checkpoint's folder or on the hub."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from embaudit.checkpoint import CheckpointRef, LoadOptions, ResolvedCheckpoint, resolve
from embaudit.checkpoint.exports import exports_of, format_of
from embaudit.checkpoint.onnx_encoder import OnnxEncoder, OnnxModel
from embaudit.checkpoint.onnx_file import read_onnx
from embaudit.checkpoint.weightless import load_without_weights
from embaudit.system.hub import Repository
from embaudit.words.errors import UsageError

# What servers read where there are several.
FIRST = ("model.onnx", "onnx/model.onnx")
NAMED_AT_MOST = 6


def onnx_encoder(name: str, options: LoadOptions) -> OnnxEncoder:
    """Encodes with an ONNX file as the folder around it declares; its weights are neither needed nor read.

    Args:
        name: a file, or a checkpoint that has one.

    Raises:
        UsageError: if there is none, none of several is the usual one, or onnxruntime is not installed.
        CheckpointError: if it is broken, cannot be run, or the folder lacks config or tokenizer.
    """
    resolved, file = _found(name, options)
    read = read_onnx(file, resolved.folder)
    return OnnxEncoder(OnnxModel(read), load_without_weights(resolved, options))


def _found(name: str, options: LoadOptions) -> tuple[ResolvedCheckpoint, Path]:
    path = Path(name).expanduser()
    if path.suffix == ".onnx" and path.is_file():
        folder = _folder_of(path.absolute())
        return ResolvedCheckpoint(CheckpointRef("local", str(folder)), folder, None), path.absolute()
    resolved = resolve(name, allow_pickle=options.allow_pickle, trust_remote_code=options.trust_remote_code)
    if resolved.ref.kind == "hub":
        return resolved, _downloaded(resolved)
    names = [export.name for export in exports_of(resolved.folder) if export.format == "ONNX"]
    return resolved, resolved.folder / _chosen(names, str(resolved.ref))


def _folder_of(file: Path) -> Path:
    """The checkpoint's folder: the nearest one that says how texts are read, or the file's own."""
    places = [place for place in file.parents if (place / "modules.json").is_file()][:1]
    places += [place for place in file.parents if (place / "config.json").is_file()][:1]
    return next((place for place in places if len(file.relative_to(place).parts) <= 3), file.parent)


def _downloaded(resolved: ResolvedCheckpoint) -> Path:
    """The file on the hub, and what it has its weights in: neither is fetched with a checkpoint."""
    repository = Repository("model", resolved.ref.name, resolved.revision, "download it, and name its folder.")
    names = repository.info().files
    chosen = _chosen([name for name in names if format_of(name) == "ONNX"], str(resolved.ref))
    beside = [name for name in names if name.startswith((f"{chosen}_data", f"{chosen}.data"))]
    for name in beside:
        repository.file(name)
    return repository.file(chosen)


def _chosen(names: Sequence[str], of: str) -> str:
    usual = [name for name in FIRST if name in names]
    if usual or len(names) == 1:
        return [*usual, *names][0]
    if not names:
        raise UsageError(
            f"{of} has no ONNX file.",
            next_step="Export one (torch.onnx.export), or name it: --with FOLDER/model.onnx --with-backend onnx",
        )
    shown = ", ".join(sorted(names, key=lambda name: PurePosixPath(name).name)[:NAMED_AT_MOST])
    raise UsageError(
        f"{of} has {len(names)} ONNX files, and none is model.onnx: {shown}.",
        next_step=f"Name one: --with {of}/{names[0]} --with-backend onnx",
    )
