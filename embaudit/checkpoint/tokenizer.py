"""Loads a checkpoint's tokenizer, set up to behave exactly as in sentence-transformers."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from embaudit.errors import CheckpointError, one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# transformers needs both to read a SentencePiece file without a tokenizer.json.
SENTENCEPIECE_PACKAGES = {"sentencepiece": "sentencepiece", "protobuf": "google.protobuf"}
MAX_KNOWN_LIMIT = 10**9  # transformers writes 1e30 for "no limit known"
DEFAULT_MAX_LENGTH = 512


def load_tokenizer(folder: Path, *, is_lowercased: bool, trust_remote_code: bool) -> PreTrainedTokenizerBase:
    """Load a tokenizer, with its own truncation and padding disabled.

    Raises:
        CheckpointError: if it cannot be loaded; for a SentencePiece file alone, the message names the required
            packages.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
    except Exception as error:  # tokenizers raises a bare Exception on a broken file
        raise CheckpointError(
            f"transformers cannot load the tokenizer in {folder}: "
            + ("its SentencePiece file comes without a tokenizer.json." if _missing(folder) else one_line(error)),
            next_step=_how_to_load(folder, error),
        ) from error
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        # Some tokenizer.json files have truncation and fixed padding enabled.
        backend.no_truncation()
        backend.no_padding()
    if is_lowercased:
        _lowercase(tokenizer, folder)
    return tokenizer


def refuse_empty_tokenizer(tokenizer: PreTrainedTokenizerBase, folder: Path, rows: int) -> None:
    """Refuse a tokenizer with less than half of the embedded tokens.

    If transformers does not find the vocabulary, it builds a tokenizer with only the special tokens, and every word
    becomes [UNK].

    Raises:
        CheckpointError: if that is so.
    """
    # Matrices are padded to round sizes (ByT5's 259 tokens to 384 rows), so fewer tokens than rows are normal.
    if 2 * len(tokenizer) < rows:
        raise CheckpointError(
            f"The tokenizer in {folder} has {len(tokenizer)} tokens, but the model has embeddings for {rows}: the "
            "vocabulary was not found.",
            next_step=_how_to_load(folder, None),
        )


def special_tokens_around(tokenizer: PreTrainedTokenizerBase) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that the tokenizer adds before and after a text, found by encoding one with and without them.

    Raises:
        CheckpointError: if they cannot be told apart.
    """
    content: list[int] = tokenizer("a", add_special_tokens=False, truncation=False, padding=False)["input_ids"]
    whole: list[int] = tokenizer("a", add_special_tokens=True, truncation=False, padding=False)["input_ids"]
    for start in range(len(whole) - len(content) + 1 if content else 0):
        if whole[start : start + len(content)] == content:
            return tuple(whole[:start]), tuple(whole[start + len(content) :])
    raise CheckpointError(
        f"The tokenizer encodes 'a' as {content} alone and as {whole} with special tokens: "
        "embaudit cannot tell the special tokens apart.",
        next_step="Check that the tokenizer files belong together.",
    )


def position_limit(model: PreTrainedModel) -> int | None:
    """The longest sequence for which the model has positions; None if there is no limit (T5, XLNet)."""
    import torch

    for name, module in model.named_modules():
        if name.rpartition(".")[2] == "position_embeddings" and isinstance(module, torch.nn.Embedding):
            # RoBERTa, MPNet and similar models number positions from padding_idx + 1, so part of the table is never
            # used.
            offset = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - offset
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return positions if isinstance(positions, int) and positions > 0 else None  # XLNet writes -1


def effective_max_length(declared: int | None, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """How many tokens of a text are read, special tokens included.

    The declared ``max_seq_length`` (or the tokenizer's limit if none is declared), but no more than the model has
    positions; 512 if nothing is known.
    """
    limits = [position_limit(model), declared if declared is not None else tokenizer.model_max_length]
    known = [int(limit) for limit in limits if limit is not None and 0 < limit < MAX_KNOWN_LIMIT]
    return min(known, default=DEFAULT_MAX_LENGTH)


def _lowercase(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Lowercase like sentence-transformers does: in the normalizer, so that special tokens in a text stay special."""
    from tokenizers.normalizers import Lowercase, Sequence

    if not tokenizer.is_fast:
        raise CheckpointError(
            f"{folder} requires lowercased texts (do_lower_case), which embaudit only supports with fast tokenizers.",
            next_step="Save a fast tokenizer (tokenizer.json) into the folder.",
        )
    backend = tokenizer.backend_tokenizer
    backend.normalizer = Sequence([Lowercase(), *([backend.normalizer] if backend.normalizer else [])])


def _how_to_load(folder: Path, error: Exception | None) -> str:
    if error is not None and "trust_remote_code" in str(error):
        return "It requires its own code to be run: review that code and add --trust-remote-code."
    if _missing(folder):
        return (
            f"Reading a SentencePiece file requires missing packages: pip install {' '.join(_missing(folder))}. "
            "Or save a tokenizer.json into the folder on a machine that has them."
        )
    return "Check that the tokenizer files are complete and belong to this model."


def _missing(folder: Path) -> list[str]:
    """The packages to install before this folder's tokenizer can be read."""
    if (folder / "tokenizer.json").is_file() or not any(folder.glob("*.model")):
        return []
    return [package for package, module in SENTENCEPIECE_PACKAGES.items() if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # google.protobuf where no package called google is
        return False
