"""Finds the files that decide what a checkpoint computes, and reads its JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from embaudit.errors import CheckpointError

# In transformers' order: one file, or an index of shards.
SAFETENSORS = ("model.safetensors", "model.safetensors.index.json")
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
# A tokenizer's vocabulary is in one of these; settings files alone are not a tokenizer.
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model", "*.spm", "bpe.codes", "*.tiktoken")
TOKENIZER_SETTINGS = ("added_tokens.json", "merges.txt", "special_tokens_map.json", "tokenizer_config.json")
# ByT5 and CANINE read bytes and characters: they have settings but no vocabulary file.
TOKENIZERS_WITHOUT_VOCABULARY = ("ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer")


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
    return sorted(folder.glob("*.py")) if asks else []


def read_json(path: Path) -> Any:
    """Read a checkpoint's JSON file.

    Raises:
        CheckpointError: if it is missing or broken.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
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
