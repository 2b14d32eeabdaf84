"""A checkpoint as a row for the warehouse and ``embaudit show``."""

from __future__ import annotations

from typing import Any

from embaudit.checkpoint.load import Checkpoint


def describe_row(checkpoint: Checkpoint) -> dict[str, Any]:
    """The columns of the table ``checkpoint``."""
    config = checkpoint.model.config.get_text_config()
    heads = getattr(config, "num_attention_heads", None)
    layers = getattr(config, "num_hidden_layers", None)
    identity, recipe = checkpoint.identity, checkpoint.recipe
    prompts = recipe.prompts
    return {
        "checkpoint_id": checkpoint.checkpoint_id,
        "source": str(checkpoint.resolved.ref),
        "revision": checkpoint.resolved.revision,
        "weights_sha256": identity.weights_sha256,
        "tokenizer_sha256": identity.tokenizer_sha256,
        "config_sha256": identity.config_sha256,
        "modules_sha256": identity.modules_sha256,
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
