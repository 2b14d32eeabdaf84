"""Files beside the weights that other runtimes read: ONNX, OpenVINO, GGUF, TensorFlow and others.

Nothing of them is in a checkpoint's identity, and nothing but ``check`` and ``parity`` looks at them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Literal

from embaudit.checkpoint.files import PICKLES, SAFETENSORS

Format = Literal["ONNX", "ORT", "OpenVINO", "GGUF", "TensorFlow", "Flax", "Core ML", "TensorFlow Lite", "Rust"]
# Patterns of a file's name.
FORMATS: tuple[tuple[Format, tuple[str, ...]], ...] = (
    ("ONNX", ("*.onnx",)),
    ("ORT", ("*.ort",)),
    ("OpenVINO", ("openvino*.xml",)),
    ("GGUF", ("*.gguf",)),
    ("TensorFlow", ("tf_model*.h5", "saved_model.pb", "model.ckpt.index")),
    ("Flax", ("flax_model*.msgpack",)),
    ("Core ML", ("*.mlpackage", "*.mlmodel")),
    ("TensorFlow Lite", ("*.tflite",)),
    ("Rust", ("rust_model.ot",)),
)
# Folders below a checkpoint's in which they are looked for.
DEPTH = 2


@dataclass(frozen=True, order=True)
class ExportedFile:
    """One such file; ``name`` is its path in the checkpoint's folder."""

    name: str
    format: Format
    path: Path


def exports_of(folder: Path, transformer: str = "") -> list[ExportedFile]:
    """The files of a checkpoint's folder that other runtimes read, by name.

    Args:
        transformer: where its weights are; files of other checkpoints, in folders with weights of their own, are not
            this one's.
    """
    found = [
        ExportedFile(name, kind, path)
        for depth in range(DEPTH + 1)
        for path in folder.glob("/".join(["*"] * (depth + 1)))
        if (kind := format_of(name := path.relative_to(folder).as_posix())) is not None
        and (path.is_file() or kind == "Core ML")
        and not any(_has_weights(place) for place in _between(folder, path) if place != folder / transformer)
    ]
    return sorted(found)


def _between(folder: Path, path: Path) -> list[Path]:
    return [place for place in path.parents if folder in place.parents]


def _has_weights(folder: Path) -> bool:
    return any((folder / name).exists() for name in (*SAFETENSORS, *PICKLES))


def format_of(name: str) -> Format | None:
    """The runtime that reads a file of this name; None for all others, and for what is hidden."""
    parts = PurePosixPath(name).parts
    if any(part.startswith(".") for part in parts):
        return None
    return next((kind for kind, patterns in FORMATS if any(fnmatch(parts[-1], pattern) for pattern in patterns)), None)
