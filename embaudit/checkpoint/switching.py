"""Models that compute otherwise from some length on, for a whole batch or until a shorter text comes.

The short texts that are run when a checkpoint is loaded cannot show it, so these models are known by their settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embaudit.words.errors import CheckpointError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def refuse_switching(model: PreTrainedModel, limit: int, source: str) -> None:
    """Refuse a model whose vectors depend on the other texts: a batch of long texts, or an earlier short one.

    Raises:
        CheckpointError: if texts of up to ``limit`` tokens can be long enough for it.
    """
    sparse, rotary = _sparse_from(model), _rotary_from(model)
    if sparse is not None and limit > sparse:
        raise CheckpointError(
            f"{source} reads texts of more than {sparse} tokens with sparse attention, until a shorter one switches "
            "it to full attention for good (transformers' BigBird): a vector depends on what was encoded before.",
            next_step=f'Set "attention_type": "original_full" in config.json, or add --max-length {sparse}.',
        )
    if rotary is not None and limit > rotary:
        raise CheckpointError(
            f"{source} has other rotary positions for a whole batch if one of its texts has more than {rotary} tokens "
            "(rope_type dynamic or longrope): a vector depends on which texts come together.",
            next_step=f"Serve and audit it with shorter texts: --max-length {rotary}.",
        )


def _sparse_from(model: PreTrainedModel) -> int | None:
    """BigBird reads texts of up to this length with full attention."""
    config = model.config
    if getattr(config, "attention_type", None) != "block_sparse":
        return None
    return int((5 + 2 * config.num_random_blocks) * config.block_size)


def _rotary_from(model: PreTrainedModel) -> int | None:
    """The longest text with the original rotary positions; None if they are the same for all lengths."""
    lengths: list[int] = []
    for module in model.modules():
        types = getattr(module, "rope_type", None)
        config = getattr(module, "config", None)
        parameters = getattr(config, "rope_parameters", None) or {}
        # One of all layers, or one for each type of layer.
        by_layer = types.items() if isinstance(types, dict) else [("", types)]
        for layer, kind in by_layer:
            if kind == "longrope":
                own = (parameters[layer] if layer else parameters).get("original_max_position_embeddings")
                # transformers 4 has one setting for all layers, beside the others.
                lengths.append(own or getattr(config, "original_max_position_embeddings", module.original_max_seq_len))
            elif kind is not None and "dynamic" in kind:
                lengths.append(module.original_max_seq_len)
    return min(lengths, default=None)
