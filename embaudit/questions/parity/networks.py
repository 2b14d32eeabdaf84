"""The same weights in a network of another configuration: another base of rotary positions, another window.

Servers and exports that do not know a line of config.json compute with the default. Weights are shared, not copied.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.streamed import is_in_files

if TYPE_CHECKING:
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
