"""Loads a checkpoint's tokenizer without its weights, for counting tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from embaudit.checkpoint.files import tokenizer_files
from embaudit.checkpoint.identity import tokenizer_hash
from embaudit.checkpoint.model import quiet_transformers
from embaudit.checkpoint.modules import read_recipe
from embaudit.checkpoint.reference import resolve
from embaudit.checkpoint.tokenizer import load_tokenizer, special_tokens_around
from embaudit.checkpoint.what_it_is import refuse_other_layouts

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class LoneTokenizer:
    """A tokenizer, the hash of its files, and how many special tokens it puts around a text."""

    tokenizer: PreTrainedTokenizerBase
    sha256: str
    around: int


def load_tokenizer_alone(
    reference: str, *, allow_pickle: bool = False, trust_remote_code: bool = False
) -> LoneTokenizer:
    """The tokenizer of a checkpoint as ``load_checkpoint`` sets it up.

    Raises:
        CheckpointError: if the checkpoint is not found, or its tokenizer cannot be loaded.
    """
    folder = resolve(reference, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code).folder
    if not tokenizer_files(folder):
        refuse_other_layouts(folder)
    recipe = read_recipe(folder)
    with quiet_transformers():
        tokenizer = load_tokenizer(
            folder / recipe.tokenizer_path,
            is_lowercased=recipe.is_lowercased,
            trust_remote_code=trust_remote_code,
            settings=recipe.settings,
        )
    return LoneTokenizer(
        tokenizer,
        tokenizer_hash(folder, recipe),
        sum(map(len, special_tokens_around(tokenizer, are_added=recipe.call.get("add_special_tokens", True)))),
    )
