"""What later steps' keys are made of: the names of staged files, and the shards that tokens are cut into."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embaudit_tasks.results import Staged


def name_of(part: Staged) -> str:
    """A staged file's content key: the folder it lies in."""
    return part.path.rsplit("/", 2)[-2]


def names_of(parts: Sequence[Staged]) -> list[str]:
    return [name_of(part) for part in parts]


def shards_of(token_ids: np.ndarray, size: int) -> list[np.ndarray]:
    return [token_ids[start : start + size] for start in range(0, len(token_ids), size)]
