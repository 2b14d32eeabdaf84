"""A checkpoint without its weights: its tokenizer alone, for counting, and all around something else that computes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from embaudit.checkpoint.files import tokenizer_files
from embaudit.checkpoint.load import Checkpoint, LoadOptions, assemble, recipe_of
from embaudit.checkpoint.model import (
    ONE_AT_A_TIME,
    Overrides,
    model_class,
    quiet_transformers,
    refuse_elsewhere,
    refuse_kernels,
)
from embaudit.checkpoint.modules import read_recipe
from embaudit.checkpoint.reference import CheckpointIdentity, ResolvedCheckpoint, resolve, tokenizer_hash
from embaudit.checkpoint.tokenizer import load_tokenizer, special_tokens_around
from embaudit.checkpoint.what_it_is import refuse_other_layouts
from embaudit.words.errors import CheckpointError, one_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


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


def load_without_weights(resolved: ResolvedCheckpoint, options: LoadOptions) -> Checkpoint:
    """A checkpoint whose model has its config's shapes and no values; the folder may have no weights.

    Raises:
        CheckpointError: if config or tokenizer are missing or broken.
    """
    recipe = recipe_of(resolved, options)
    transformer = resolved.folder / recipe.transformer_path
    identity = CheckpointIdentity("", tokenizer_hash(resolved.folder, recipe), "", "")
    model = _skeleton(transformer, Overrides.of(recipe.settings), trust_remote_code=options.trust_remote_code)
    return assemble(resolved, recipe, identity, options, model)


def _skeleton(folder: Path, overrides: Overrides, *, trust_remote_code: bool) -> PreTrainedModel:
    import torch
    import transformers

    try:
        with ONE_AT_A_TIME, quiet_transformers(), torch.device("meta"):
            config = transformers.AutoConfig.from_pretrained(
                folder, trust_remote_code=trust_remote_code, **json.loads(overrides.config)
            )
            refuse_elsewhere(config, folder, trust_remote_code)
            refuse_kernels(config, json.loads(overrides.model), trust_remote_code)
            kind, config = model_class(config)
            if kind is transformers.AutoModel:
                model: PreTrainedModel = kind.from_config(config, trust_remote_code=trust_remote_code)
                return model
            return kind(config)
    except CheckpointError:
        raise
    except Exception as error:  # config validation raises its own exceptions
        raise CheckpointError(
            f"transformers cannot read {folder / 'config.json'}: {one_line(error)}",
            next_step="Check that the folder is complete: config.json, the tokenizer and the exported file.",
        ) from error
