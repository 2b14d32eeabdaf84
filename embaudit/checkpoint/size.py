"""How large a network is, in what a token costs: time by the parameters it is multiplied with, memory by width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# What the widest state of a batch on a CPU may take. Batches of 2 048 tokens are within it up to a width of 3 072 (BERT
# base); a batch of a wider network is as fast with fewer tokens, since each takes more operations.
WIDEST_STATE = 2_048 * 3_072 * 4


def multiplied(model: torch.nn.Module) -> int:
    """Parameters that each token is multiplied with: all matrices but tables of embeddings.

    Of experts, all are counted, though a token meets a few of them.
    """
    return sum(matrix.numel() for matrix in _matrices(model))


def tokens_within(model: torch.nn.Module, most: int) -> int:
    """How many tokens a batch may have, so that its widest state is no larger than usual."""
    widest = max((max(matrix.shape[-2:]) for matrix in _matrices(model)), default=1)
    return max(1, min(most, WIDEST_STATE // (4 * widest)))


def _matrices(model: torch.nn.Module) -> Iterator[torch.nn.Parameter]:
    """Each one once, whatever shares it."""
    import torch

    tables = {
        id(parameter)
        for module in model.modules()
        if isinstance(module, torch.nn.Embedding)
        for parameter in module.parameters(recurse=False)
    }
    return (one for one in model.parameters() if one.dim() > 1 and id(one) not in tables)
