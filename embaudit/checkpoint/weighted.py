"""Sequences with weighted tokens: 1 is an ordinary token, 0 none, w as if there were w copies in one position.

A key of weight w contributes w·exp(score) to every attention softmax (a mask of log w added to its score) and counts w
times in mean pooling. The vector is then a smooth function of the number of copies in each position, and its gradient
shows where another copy would move it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from embaudit.checkpoint.encoder import Encoder
from embaudit.checkpoint.load import Checkpoint
from embaudit.checkpoint.pooling import pool
from embaudit.words.errors import NotMeasurable, one_line

if TYPE_CHECKING:
    import torch

# A weight that must not affect the vector.
NOTHING, TOLERANCE = 1e-8, 1e-4


def weighted_vectors(
    checkpoint: Checkpoint, ids: torch.Tensor, positions: torch.Tensor, weights: torch.Tensor
) -> torch.Tensor:
    """(B, D) float32 unit vectors, differentiable with respect to the weights.

    Args:
        ids: (B, n) token ids, prompt and special tokens included.
        positions: (B, n) position of each in the text, from 0; candidates for the same position share it.
        weights: (B, n) float32, above 0.
    """
    import torch

    count = ids.shape[1]
    bias = torch.log(weights)[:, None, None, :].expand(-1, 1, count, count)
    model = checkpoint.model
    inputs = checkpoint.inputs(ids, torch.ones_like(ids))
    inputs |= {"attention_mask": bias.to(next(model.parameters()).dtype)}
    hidden = model(**inputs, position_ids=positions + _first_position(model)).last_hidden_state
    pooled = pool(hidden, weights, checkpoint.recipe.pooling, checkpoint.prompt.unpooled)
    return torch.nn.functional.normalize(checkpoint.after_pooling(pooled).float(), dim=1)


def require_weights(encoder: Encoder) -> None:
    """Raise unless a token of weight 0 leaves a text's vector unchanged.

    Raises:
        NotMeasurable: if the model does not support such masks or positions, or interprets them differently.
    """
    import torch

    checkpoint = encoder.checkpoint
    name = type(checkpoint.model).__name__
    text = checkpoint.with_special_tokens([5, 6, 7])
    place = len(checkpoint.prefix_ids) + len(checkpoint.prompt.ids) + 1
    ids = torch.tensor([[*text[:place], 5, *text[place:]]], device=checkpoint.device)
    positions = torch.tensor([[*range(place + 1), *range(place, len(text))]], device=checkpoint.device)
    weights = torch.ones(ids.shape, device=checkpoint.device)
    weights[0, place] = NOTHING
    plain = torch.nn.functional.normalize(encoder.encode_dense(torch.tensor([text])), dim=1)
    try:
        with torch.no_grad():
            found = weighted_vectors(checkpoint, ids, positions, weights)
    except Exception as error:  # custom model code may raise anything
        raise NotMeasurable(f"{name} does not support token weights: {one_line(error)}.") from error
    if not torch.allclose(found, plain, atol=TOLERANCE):
        raise NotMeasurable(f"{name} does not apply token weights and positions as given.")


def _first_position(model: torch.nn.Module) -> int:
    """The first position: RoBERTa and similar models count from padding_idx + 1."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1
