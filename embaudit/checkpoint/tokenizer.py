"""A checkpoint's tokenizer, set up so that it does what sentence-transformers would do and nothing of its own."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from embaudit.errors import CheckpointError, one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

# transformers needs both to read a SentencePiece file that has no tokenizer.json beside it.
SENTENCEPIECE_PACKAGES = {"sentencepiece": "sentencepiece", "protobuf": "google.protobuf"}
MAX_KNOWN_LIMIT = 10**9  # transformers writes 1e30 for "no limit known"
DEFAULT_MAX_LENGTH = 512


def load_tokenizer(folder: Path, *, is_lowercased: bool, trust_remote_code: bool) -> PreTrainedTokenizerBase:
    """Load a tokenizer, without truncation and padding of its own.

    Raises:
        CheckpointError: if it cannot be loaded; a SentencePiece file alone needs packages that the message names.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
    except Exception as error:  # tokenizers raises a bare Exception on a broken file
        raise CheckpointError(
            f"transformers cannot load the tokenizer in {folder}: "
            + ("its SentencePiece file has no tokenizer.json beside it." if _lacks(folder) else one_line(error)),
            next_step=_how_to_load(folder, error),
        ) from error
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        # Some tokenizer.json files ship with truncation and fixed padding switched on.
        backend.no_truncation()
        backend.no_padding()
    if is_lowercased:
        _lowercase(tokenizer, folder)
    return tokenizer


def refuse_empty_tokenizer(tokenizer: PreTrainedTokenizerBase, folder: Path, rows: int) -> None:
    """Refuse a tokenizer that knows less than half of the embedded tokens.

    Where transformers does not find the vocabulary that it looks for, it builds a tokenizer of the special tokens
    alone, and every word becomes [UNK].

    Raises:
        CheckpointError: if that is so.
    """
    # Matrices are padded to round sizes, ByT5's 259 tokens to 384 rows: so not "fewer than rows".
    if 2 * len(tokenizer) < rows:
        raise CheckpointError(
            f"The tokenizer in {folder} knows {len(tokenizer)} tokens, the model has embeddings for {rows}: "
            "the vocabulary was not found.",
            next_step=_how_to_load(folder, None),
        )


def special_tokens_around(tokenizer: PreTrainedTokenizerBase) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The ids that the tokenizer puts before and after a text, found by encoding one with and without them.

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
    """The longest sequence that the model has positions for; None if it knows no limit (T5, XLNet)."""
    import torch

    for name, module in model.named_modules():
        if name.rpartition(".")[2] == "position_embeddings" and isinstance(module, torch.nn.Embedding):
            # RoBERTa, MPNet and their kin number positions from padding_idx + 1: some of the table is never used.
            offset = 0 if module.padding_idx is None else module.padding_idx + 1
            return module.num_embeddings - offset
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    return positions if isinstance(positions, int) and positions > 0 else None  # XLNet writes -1


def effective_max_length(declared: int | None, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """How many tokens of a text are read, special tokens included.

    The declared ``max_seq_length`` (or the tokenizer's own limit where none is declared), never more than the
    model has positions for; 512 where nothing is known.
    """
    limits = [position_limit(model), declared if declared is not None else tokenizer.model_max_length]
    known = [int(limit) for limit in limits if limit is not None and 0 < limit < MAX_KNOWN_LIMIT]
    return min(known, default=DEFAULT_MAX_LENGTH)


def _lowercase(tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Lowercase like sentence-transformers does: in the normalizer, so that special tokens in a text stay special."""
    from tokenizers.normalizers import Lowercase, Sequence

    if not tokenizer.is_fast:
        raise CheckpointError(
            f"{folder} asks for lowercased texts (do_lower_case), which embaudit does with fast tokenizers only.",
            next_step="Save a fast tokenizer (tokenizer.json) into the folder.",
        )
    backend = tokenizer.backend_tokenizer
    backend.normalizer = Sequence([Lowercase(), *([backend.normalizer] if backend.normalizer else [])])


def _how_to_load(folder: Path, error: Exception | None) -> str:
    if error is not None and "trust_remote_code" in str(error):
        return "It asks to run code of its own: read that code, then add --trust-remote-code."
    if _lacks(folder):
        return (
            f"Reading a SentencePiece file takes packages that are not here: pip install {' '.join(_lacks(folder))}. "
            "Or save a tokenizer.json into the folder where they are."
        )
    return "Check that the tokenizer files are complete and belong to this model."


def _lacks(folder: Path) -> list[str]:
    """The packages to install before this folder's tokenizer can be read."""
    if (folder / "tokenizer.json").is_file() or not any(folder.glob("*.model")):
        return []
    return [package for package, module in SENTENCEPIECE_PACKAGES.items() if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # google.protobuf where no package called google is
        return False
