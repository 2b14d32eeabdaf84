"""Loads a checkpoint's tokenizer without its weights, for counting tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from embaudit.checkpoint.identity import tokenizer_hash
from embaudit.checkpoint.model import quiet_transformers
from embaudit.checkpoint.modules import read_recipe
from embaudit.checkpoint.reference import resolve
from embaudit.checkpoint.tokenizer import load_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def load_tokenizer_alone(reference: str, *, trust_remote_code: bool = False) -> tuple[PreTrainedTokenizerBase, str]:
    """The tokenizer of a checkpoint as ``load_checkpoint`` sets it up, and the hash of its files.

    Raises:
        CheckpointError: if the checkpoint is not found, or its tokenizer cannot be loaded.
    """
    folder = resolve(reference, trust_remote_code=trust_remote_code).folder
    recipe = read_recipe(folder)
    with quiet_transformers():
        tokenizer = load_tokenizer(
            folder / recipe.tokenizer_path, is_lowercased=recipe.is_lowercased, trust_remote_code=trust_remote_code
        )
    return tokenizer, tokenizer_hash(folder, recipe)
