"""The same weights in a network of another configuration: another base of rotary positions, another window.

Servers and exports that do not know a line of config.json compute with the default. Weights are shared, not copied.

What padding does that is read: the checkpoint is run without a mask, in each way in which masks are lost.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.pooling import pool
from embaudit.checkpoint.streamed import is_in_files
from embaudit.questions.parity.compare import LEFT, KindDifference, apart

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


# What transformers takes where nothing is declared.
DEFAULT_BASE = 10_000.0
# Where configurations say how far local attention reaches, and by how much a window may be off: ModernBERT's reaches
# half of it to either side, and others' to one.
WINDOWS = {"local_attention": (2, -2), "sliding_window": (1, -1, 2, -2)}
# Of larger ones, another network takes long to make.
MOST_PARAMETERS = 1_000_000_000
_MADE: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()


def with_other_bases(checkpoint: Checkpoint) -> Iterator[tuple[str, Checkpoint]]:
    """The network with the default base of rotary positions, as the end of "it …"; nothing if it has that."""
    config = checkpoint.model.config
    declared = sorted(set(_bases(config)) - {DEFAULT_BASE})
    if not declared:
        return
    changed = copy.deepcopy(config)
    _set_bases(changed)
    was = " and ".join(f"{base:,.0f}" for base in declared)
    said = f"computes rotary positions with the base {DEFAULT_BASE:,.0f}, where config.json declares {was}"
    yield from _with(checkpoint, said, changed)


def with_other_windows(checkpoint: Checkpoint) -> Iterator[tuple[str, Checkpoint]]:
    """The network with another window of local attention; nothing if it has none."""
    config = checkpoint.model.config
    for name, off in WINDOWS.items():
        size = getattr(config, name, None)
        if isinstance(size, bool) or not isinstance(size, int) or size < 4:
            continue
        # One is the half of the other.
        if name == "sliding_window" and half_window(checkpoint.model) is not None:
            continue
        for by in off:
            changed = copy.deepcopy(config)
            setattr(changed, name, size + by)
            said = f"attends within a window of {size + by:,} tokens, where config.json declares {size:,} ({name})"
            yield from _with(checkpoint, said, changed)


def half_window(model: PreTrainedModel) -> int | None:
    """How many tokens before it and after it a token sees in layers with a window; None of a model without such."""
    size, kinds = getattr(model.config, "local_attention", None), getattr(model.config, "layer_types", None)
    is_local = isinstance(kinds, list) and "sliding_attention" in kinds
    return size // 2 if is_local and isinstance(size, int) and size >= 4 else None


def _bases(config: Any) -> Iterator[float]:
    """Every base of rotary positions that a configuration has: one, or one for each kind of layer."""
    parameters = getattr(config, "rope_parameters", None)
    if isinstance(parameters, dict):
        for one in (parameters, *parameters.values()):
            if isinstance(one, dict) and isinstance(one.get("rope_theta"), int | float):
                yield float(one["rope_theta"])
    elif isinstance(getattr(config, "rope_theta", None), int | float):
        yield float(config.rope_theta)


def _set_bases(config: Any) -> None:
    parameters = getattr(config, "rope_parameters", None)
    if isinstance(parameters, dict):
        for one in (parameters, *parameters.values()):
            if isinstance(one, dict) and "rope_theta" in one:
                one["rope_theta"] = DEFAULT_BASE
    else:
        config.rope_theta = DEFAULT_BASE


def _with(checkpoint: Checkpoint, said: str, config: Any) -> Iterator[tuple[str, Checkpoint]]:
    """The checkpoint in a network of this configuration; nothing if it cannot be made."""
    model = checkpoint.model
    if is_in_files(model) or sum(one.numel() for one in model.parameters()) > MOST_PARAMETERS:
        return
    made = _MADE.setdefault(model, {})
    if said not in made:
        made[said] = _made(model, config)
    if made[said] is not None:
        yield said, replace(checkpoint, model=made[said])


def _made(model: PreTrainedModel, config: Any) -> PreTrainedModel | None:
    import torch

    try:
        with torch.random.fork_rng(devices=[]):
            other = type(model)(config).to(device=model.device, dtype=model.dtype)
        # Sharing memory, where the same tensors are a copy otherwise.
        left = other.load_state_dict(model.state_dict(), strict=False, assign=True)
    except (AttributeError, RuntimeError, TypeError, ValueError):
        return None
    return None if left.missing_keys and not set(left.missing_keys) <= _not_in(model) else other.eval()


def _not_in(model: PreTrainedModel) -> set[str]:
    """What a state has no place for in the model itself, either."""
    return {name for name, _ in model.named_parameters()} - model.state_dict().keys()


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
