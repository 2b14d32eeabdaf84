"""What padding does that is read: the checkpoint is run without a mask, in each way in which masks are lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.pooling import pool
from embaudit.questions.parity.compare import LEFT, KindDifference, apart

if TYPE_CHECKING:
    import torch

# Servers pad to the longest text of a batch, or to a multiple of one of these.
PADDED_TO = (1, 8, 16, 32, 64, 128)
# What explains a difference leaves no more than this part of it.
CLEARLY_LESS = 4
# How it is said that the width of padding grows, and of so many texts in their order it must hold: who was asked for a
# longer one before these has padded the first of them to that.
SO_FAR, MOST = "pads texts to the longest so far", 0.9
MASK_ADVICE = "Give the network a mask (attention_mask) that is 0 where padding stands, and pool by the same mask."


def padding_cause(checkpoint: Checkpoint, held: KindDifference, batched: np.ndarray, near: float) -> str | None:
    """Which use of padding gives these vectors, if any does, and leaves clearly less than there was to explain."""
    sequences = checkpoint.tokenize(held.texts)
    longest = max(len(ids) for ids in sequences)
    padded = _Padded(checkpoint)
    for widest in sorted({-(-longest // by) * by for by in PADDED_TO} | {min(checkpoint.max_length, 4 * longest)}):
        for how, masks in PADDING.items():
            vectors = padded.encode(sequences, widest, masks)
            if vectors.shape != batched.shape:
                continue
            if np.nan_to_num(apart(vectors, batched), nan=2.0).max() <= min(near, held.worst / CLEARLY_LESS):
                return how
    return None


def padding_so_far(checkpoint: Checkpoint, texts: Sequence[str], vectors: np.ndarray, rounding: float) -> str:
    """Whether each text was padded to the longest one until then, as the end of a sentence; empty if not.

    Args:
        texts: in the order in which they were asked for, each alone.
        vectors: (n, D) what came; NaN where nothing did.
        rounding: up to where two vectors differ by rounding.
    """
    sequences = checkpoint.tokenize(texts)
    widths = list(accumulate(map(len, sequences), max))
    places = [place for place, ids in enumerate(sequences) if len(ids) < widths[place]]
    places = [place for place in places if np.isfinite(vectors[place]).all()]
    padded = _Padded(checkpoint)
    for how, masks in PADDING.items():
        made = [padded.encode([sequences[place]], widths[place], masks)[0] for place in places]
        if not made or np.shape(made) != vectors[places].shape:
            return ""
        near = np.nan_to_num(apart(np.array(made), vectors[places]), nan=2.0) <= max(LEFT, rounding)
        if near.mean() >= MOST:
            return f"after longer ones: it {SO_FAR}, and {how}"
    return ""


# What the network attends to and what pooling reads, of the mask (B, n).
Masks = Callable[["torch.Tensor"], tuple["torch.Tensor", "torch.Tensor"]]
PADDING: Mapping[str, Masks] = {
    "counts padding in the mean": lambda mask: (mask, mask | 1),
    "attends to padding and counts it in the mean": lambda mask: (mask | 1, mask | 1),
    "attends to padding": lambda mask: (mask | 1, mask),
}


class _Padded(Encoder):
    """Encodes sequences padded to one width, with other masks than they should have."""

    def encode(self, sequences: Sequence[Sequence[int]], width: int, masks: Masks) -> np.ndarray:
        import torch

        checkpoint = self.checkpoint
        rows = []
        for ids in sequences:
            batch = torch.full((1, width), self._pad_id(), device=checkpoint.device)
            batch[0, : len(ids)] = torch.tensor(ids)
            mask = (torch.arange(width, device=checkpoint.device) < len(ids)).long()[None]
            attended, pooled = masks(mask)
            with torch.inference_mode():
                given = checkpoint.inputs(batch, mask) | {"attention_mask": attended}
                states = checkpoint.model(**given).last_hidden_state
                vectors = checkpoint.after_pooling(
                    pool(states, pooled, checkpoint.recipe.pooling, checkpoint.prompt.unpooled)
                )
            rows.append(vectors[0].float().cpu().numpy())
        return np.array(rows)
