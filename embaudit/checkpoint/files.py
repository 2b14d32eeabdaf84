"""Finds the files that decide what a checkpoint computes, and reads its JSON files.

Files beside the weights that other runtimes read: ONNX, OpenVINO, GGUF, TensorFlow and others.

Nothing of them is in a checkpoint's identity, and nothing but ``check`` and ``parity`` looks at them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from embaudit.system.small_files import parsed, small_bytes
from embaudit.words.errors import CheckpointError

# In transformers' order: one file, or an index of shards.
SAFETENSORS = ("model.safetensors", "model.safetensors.index.json")
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
# A tokenizer's vocabulary is in one of these; settings files alone are not a tokenizer.
VOCABULARIES = (
    *("tokenizer.json", "vocab.txt", "vocab.json", "vocab-*.json", "*_vocab.json", "dict.txt", "bpe.codes"),
    *("*.model", "*.spm", "*.tokenizer", "*.tiktoken", "tekken.json"),
)
TOKENIZER_SETTINGS = (
    *("added_tokens.json", "merges.txt", "special_tokens_map.json", "tokenizer_config.json"),
    *("byte_maps.json", "emoji.json", "normalizer.json", "word_pronunciation.json", "word_shape.json"),
)
# ByT5 and CANINE read bytes and characters: they have settings but no vocabulary file.
TOKENIZERS_WITHOUT_VOCABULARY = ("ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer")
# A repository cloned without git-lfs has a few lines of text in place of each large file.
LFS_POINTER = b"version https://git-lfs"
ADAPTER = "adapter_config.json"
# Lists of files that transformers reads in place of the usual one, depending on its own version.
BY_VERSION = {"config.json": "configuration_files", "tokenizer_config.json": "fast_tokenizer_files"}


def weight_files(folder: Path) -> list[Path]:
    """The weight files of a folder, safetensors before pickles; empty if there are none.

    Raises:
        CheckpointError: if an index names a shard that is missing or outside the checkpoint.
    """
    for single, index in (SAFETENSORS, PICKLES):
        if (folder / single).is_file():
            return [folder / single]
        if (folder / index).is_file():
            return _shards(folder / index)
    return []


def weight_index(folder: Path) -> list[Path]:
    """The index of a folder's shards, which says what is read from which; empty for a single file."""
    files = weight_files(folder)
    name = PICKLES[1] if files and is_pickle(files[0]) else SAFETENSORS[1]
    is_sharded = files and files[0].name not in (SAFETENSORS[0], PICKLES[0])
    return [folder / name] if is_sharded else []


def refuse_adapter(folder: Path) -> None:
    """Refuse a folder with an adapter: whether it is applied would depend on which packages are installed.

    Raises:
        CheckpointError: if there is one, naming its base and how to merge them.
    """
    if not (folder / ADAPTER).is_file():
        return
    declared = read_object(folder / ADAPTER)
    kind = str(declared.get("peft_type") or "").replace("LORA", "LoRA").strip()
    base = declared.get("base_model_name_or_path")
    beside = " beside other weights" if weight_files(folder) else ""
    raise CheckpointError(
        f"{folder} has {'an' if not kind else f'a {kind}'} adapter{beside} ({ADAPTER}) for the base model "
        f"{base or '(not named)'}: embaudit does not apply adapters.",
        next_step="Merge it, copy the other files beside it, and audit that folder: "
        "peft.AutoPeftModelForFeatureExtraction.from_pretrained(FOLDER).merge_and_unload().save_pretrained(OTHER)",
    )


def refuse_versions(folder: Path) -> None:
    """Refuse a folder with other files for some versions of transformers: what is read would depend on that version.

    Raises:
        CheckpointError: if there are any, naming the first.
    """
    for name, key in BY_VERSION.items():
        listed = read_object(folder / name).get(key) if (folder / name).is_file() else None
        usual = {name, "tokenizer.json"}
        others = [str(other) for other in listed or () if other not in usual]
        if others:
            raise CheckpointError(
                f"{folder / name} names {others[0]} for some versions of transformers ({key}), which embaudit does not "
                "support.",
                next_step=f"Rename the file that is meant to {'tokenizer.json' if 'tokenizer' in name else name} and "
                f"remove {key}.",
            )


def refuse_pointers(folder: Path, paths: Iterable[Path]) -> None:
    """Refuse files that are not what their names say: git-lfs pointers, saved error pages, empty files.

    Raises:
        CheckpointError: for the first one.
    """
    for path in paths:
        try:
            with path.open("rb") as file:
                start = file.read(64).lstrip()
        except OSError as error:
            raise CheckpointError(
                f"{path} cannot be read: {error.strerror}.", next_step="Check its permissions and the disk."
            ) from error
        name = path.relative_to(folder).as_posix()
        if start.startswith(LFS_POINTER):
            raise CheckpointError(
                f"{name} in {folder} is a git-lfs pointer, not the file itself.",
                next_step="Fetch the files in that repository: git lfs install && git lfs pull",
            )
        if start[:14].lower().startswith((b"<!doctype html", b"<html")):
            raise CheckpointError(
                f"{name} in {folder} is a web page, not the file itself: a download failed, or needed a login.",
                next_step="Download it again.",
            )
        if not start:
            raise CheckpointError(f"{name} in {folder} is empty.", next_step="Download it again.")


def is_pickle(path: Path) -> bool:
    return path.suffix != ".safetensors"


def tokenizer_files(folder: Path) -> list[Path]:
    """The tokenizer files of a folder; empty if there is no vocabulary."""
    vocabularies = _matching(folder, VOCABULARIES)
    settings = _matching(folder, TOKENIZER_SETTINGS)
    needs_vocabulary = True
    if (folder / "tokenizer_config.json").is_file():
        declared = read_object(folder / "tokenizer_config.json")
        # Code shipped with a checkpoint may use any name for its vocabulary.
        needs_vocabulary = not (
            declared.get("tokenizer_class") in TOKENIZERS_WITHOUT_VOCABULARY or "auto_map" in declared
        )
    return [] if needs_vocabulary and not vocabularies else sorted({*vocabularies, *settings})


def code_files(folder: Path) -> list[Path]:
    """The Python files of a checkpoint whose config or tokenizer uses them; otherwise none."""
    configs = [folder / name for name in ("config.json", "tokenizer_config.json")]
    asks = any("auto_map" in read_object(path) for path in configs if path.is_file())
    return sorted(folder.rglob("*.py")) if asks else []


def read_json(path: Path) -> Any:
    """Read a checkpoint's JSON file.

    Raises:
        CheckpointError: if it is missing or broken.
    """
    try:
        return parsed(small_bytes(path).decode("utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{path} cannot be read as JSON: {error}.",
            next_step="Check that the folder is complete, or fetch it again.",
        ) from error


def read_object(path: Path) -> dict[str, Any]:
    """Read a checkpoint's JSON file that must contain an object.

    Raises:
        CheckpointError: if it is missing, broken, or not an object.
    """
    content = read_json(path)
    if not isinstance(content, dict):
        raise CheckpointError(
            f"{path} should contain a JSON object but contains a {type(content).__name__}.",
            next_step="Check that the folder is complete, or fetch it again.",
        )
    return content


def _shards(index: Path) -> list[Path]:
    weight_map = read_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{index} names no weight files.", next_step="Check that the download is complete.")
    names = sorted({str(name) for name in weight_map.values()})
    outside = [name for name in names if Path(name).is_absolute() or ".." in Path(name).parts]
    if outside:
        raise CheckpointError(
            f"{index} names a weight file outside the checkpoint: {outside[0]}.",
            next_step="Do not trust this checkpoint, or rewrite its index.",
        )
    shards = [index.parent / name for name in names]
    missing = [path.name for path in shards if not path.is_file()]
    if missing:
        raise CheckpointError(
            f"{index.parent} lacks {len(missing)} of the {len(shards)} weight files listed in {index.name}: "
            f"{missing[0]}{' first' if len(missing) > 1 else ''}.",
            next_step="Check that the download is complete.",
        )
    return shards


def _matching(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return [path for pattern in patterns for path in folder.glob(pattern) if path.is_file()]


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
