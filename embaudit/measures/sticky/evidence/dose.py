"""How the effect grows with the number of copies: pull and retention at n = 1, 2, 4, 8, 16.

For each n the content is cut so that all copies survive, and ρ_0 is that of the same cut; loss compares with the
ordinary tokens at the same n. Definitions: ``embaudit.measures.sticky.scores``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.errors import MeasureError, NotMeasurable
from embaudit.measures.sticky.moments import insert_tokens
from embaudit.measures.sticky.points import Points
from embaudit.measures.sticky.scores import score

MEASURE_VERSION = 2


def doses_that_fit(checkpoint: Checkpoint, doses: Sequence[int]) -> list[int]:
    """The doses that leave room for at least one token of the sentence."""
    return [copies for copies in doses if copies < checkpoint.content_limit]


def dose_rows(
    encoder: Encoder,
    points_at: Callable[[int], Points],
    tokens: np.ndarray,
    controls: np.ndarray,
    doses: Sequence[int],
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """One row a token and dose.

    Args:
        points_at: the same draws and anchors, with room for so many copies.
        tokens, controls: ids; the loss of both is against the controls' median slope.

    Raises:
        NotMeasurable: if no dose fits into the checkpoint's length limit, or at one no pair lies below u.
    """
    fitting = doses_that_fit(encoder.checkpoint, doses)
    if not fitting:
        raise NotMeasurable(
            f"Not even {min(doses)} copies fit into {encoder.checkpoint.max_length} tokens.",
            next_step="Give a larger --max-length.",
        )
    every = np.concatenate([tokens, controls])
    rows = []
    for copies in fitting:
        try:
            points = points_at(copies)
        except MeasureError as error:
            # Cut to make room for many copies, the pairs may all come to lie above u.
            raise NotMeasurable(error.happened, next_step=error.next_step) from error
        scores = score(points, insert_tokens(encoder, points, every, range(len(points.draws)), progress))
        ordinary = np.median(scores.slope[len(tokens) :])
        rows += [
            {
                "token_id": int(token),
                "role": "candidate" if place < len(tokens) else "control",
                "copies": copies,
                "points": points.count,
                "pull": None if np.isnan(scores.pull[place]) else float(scores.pull[place]),
                "slope": float(scores.slope[place]),
                "loss": float(1 - scores.slope[place] / ordinary),
            }
            for place, token in enumerate(every)
        ]
    return rows
