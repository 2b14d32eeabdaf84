"""Shards of tokens: what one call of a sharded step works on."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from embaudit.steps.results import NOT_IN_KEY

# What few tokens are divided into, so that several workers have a share, where each shard has work for seconds.
SHARDS, ENCODES_PER_SHARD = 8, 4_096


class TokenShard(BaseModel):
    """Some of the tokens of a scan, and what its progress shows.

    Attributes:
        label: what is done, the same for all shards.
        total: work of all shards together, in encodes (tokens for the reference protocol).
    """

    model_config = ConfigDict(frozen=True)

    token_ids: tuple[int, ...]
    label: Annotated[str, NOT_IN_KEY]
    number: Annotated[int, NOT_IN_KEY]
    total: Annotated[int, NOT_IN_KEY]


def token_shards(token_ids: np.ndarray, size: int, total: int, label: str) -> list[dict[str, Any]]:
    """Shards of ``size`` tokens each.

    Args:
        total, label: the same for all shards (``TokenShard``).
    """
    return [
        {
            "shard": TokenShard(
                token_ids=token_ids[start : start + size].tolist(), number=number, total=total, label=label
            )
        }
        for number, start in enumerate(range(0, len(token_ids), size))
    ]
