"""A checkpoint's model card: its front matter, and the backbone that a fine-tuned checkpoint names.

A checkpoint as a row for the warehouse and ``embaudit show``.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from embaudit.checkpoint.files import read_object
from embaudit.checkpoint.load import Checkpoint
from embaudit.system.small_files import card_text
from embaudit.words.errors import CheckpointError, UsageError, one_line


def front_matter(card: Path) -> Any:
    """Its fields, by ``get``; empty if there is no card.

    Raises:
        Exception: of several classes, if its YAML is broken.
    """
    if not card.is_file():
        return {}
    from huggingface_hub import ModelCard

    return ModelCard(card_text(card), ignore_metadata_errors=True).data


# What training scripts leave in a config if they started from a local folder.
LOCAL_SIGNS = ("/", ".", "~", "checkpoint-")


def named_backbone(folder: Path, source: str) -> str:
    """The backbone named by a checkpoint: ``base_model`` in its card, or ``_name_or_path`` in its config.

    Args:
        source: the checkpoint as the user named it; a config that names the checkpoint itself names no backbone.

    Raises:
        CheckpointError: if the model card cannot be read.
        UsageError: if it names none, or several (as for a merge).
    """
    named = _of_card(folder / "README.md") or _of_config(folder / "config.json", source)
    if len(named) == 1:
        return named[0]
    said = "names no backbone: no base_model in its model card, no usable _name_or_path in its config.json"
    if named:
        said = f"was made from several: {', '.join(named)}"
    raise UsageError(f"{source} {said}.", next_step="Give one: --backbone owner/name, or a folder.")


def _of_card(card: Path) -> list[str]:
    try:
        found = front_matter(card).get("base_model")
    except Exception as error:  # broken YAML raises several classes
        raise CheckpointError(
            f"The front matter of {card} cannot be read: {one_line(error)}",
            next_step="Give the backbone: --backbone owner/name, or a folder.",
        ) from error
    names = [found] if isinstance(found, str) else list(found or [])
    return [str(name) for name in names]


def _of_config(config: Path, source: str) -> list[str]:
    found = str(read_object(config).get("_name_or_path") or "") if config.is_file() else ""
    is_name = found and not found.startswith(LOCAL_SIGNS) and found.count("/") <= 1
    return [found] if is_name and found != source.split("@")[0] else []


def describe_row(checkpoint: Checkpoint) -> dict[str, Any]:
    """The columns of the table ``checkpoint``."""
    config = checkpoint.model.config.get_text_config()
    heads = getattr(config, "num_attention_heads", None)
    layers = getattr(config, "num_hidden_layers", None)
    recipe = checkpoint.recipe
    prompts = recipe.prompts
    return {
        "checkpoint_id": checkpoint.checkpoint_id,
        "source": str(checkpoint.resolved.ref),
        "revision": checkpoint.resolved.revision,
        **asdict(checkpoint.identity),
        "architecture": type(checkpoint.model).__name__,
        "hidden_size": int(config.hidden_size),
        "layers": None if layers is None else int(layers),
        "heads": None if heads is None else int(heads),
        "parameters": sum(parameter.numel() for parameter in checkpoint.model.parameters()),
        "vocabulary_size": checkpoint.vocabulary_size,
        "pooling": "+".join(recipe.pooling),
        "pooling_is_mean": recipe.pooling == ("mean",),
        "modules": "+".join(module.kind for module in recipe.modules),
        "max_length": checkpoint.max_length,
        "prompt": prompts.text or None,
        "query_prompt": prompts.query or None,
        "document_prompt": prompts.document or None,
        "pools_prompt": recipe.pools_prompt if prompts else None,
    }
