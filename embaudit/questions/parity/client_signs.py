"""What texts say of the client that sent them, where no reading explains its vectors: headers, another tokenizer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.questions.parity.compare import HALF, KindDifference, apart
from embaudit.questions.parity.texts import ROLES

# A header is less of a long text than of a short one: by so much, where it is read and averaged.
LESS = 0.5
SHORTEST, LONGEST = 12, 200


def has_headers(kinds: Sequence[KindDifference]) -> bool:
    """Whether every text is moved, and short ones by more than long ones."""
    plainly = [kind for kind in kinds if kind.kind not in ROLES]
    texts = [text for kind in plainly for text in kind.texts]
    distances = np.concatenate([kind.distances for kind in plainly])
    lengths = np.array([len(text) for text in texts])
    known = np.isfinite(distances)
    short, long = (distances[known & chosen] for chosen in (lengths <= SHORTEST, lengths >= LONGEST))
    if not (len(short) and len(long) and distances[known].min() > HALF):
        return False
    return bool(np.median(long) < LESS * np.median(short))


def has_other_ids(checkpoint: Checkpoint, texts: Mapping[str, Sequence[str]], theirs: Mapping[str, np.ndarray]) -> bool:
    """Whether texts that are the same to the checkpoint's tokenizer have different vectors.

    Args:
        theirs: (n, D) the other's vectors by kind.
    """
    plainly = [kind for kind in texts if kind not in ROLES]
    groups: dict[tuple[int, ...], list[np.ndarray]] = {}
    for kind in plainly:
        for ids, row in zip(checkpoint.tokenize(texts[kind]), theirs[kind], strict=True):
            if ids and np.isfinite(row).all():
                groups.setdefault(tuple(ids), []).append(row)
    return any(
        np.nan_to_num(apart(np.array(rows[:1] * (len(rows) - 1)), np.array(rows[1:]))).max() > HALF
        for rows in groups.values()
        if len(rows) > 1
    )
