"""How the effect grows with the number of copies: pull and retention at n = 1, 2, 4, 8, 16.

For each n the content is cut so that all copies survive, and ρ_0 is that of the same cut; loss compares with the
ordinary tokens at the same n. Definitions: ``embaudit.measures.sticky.scores``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.errors import MeasureError, NotMeasurable
from embaudit.measures.sticky.pairs import SentencePair
from embaudit.measures.sticky.scores import pull, retention
from embaudit.measures.sticky.validation import common_points, prepare_validation, validate_tokens

MEASURE_VERSION = 1


def doses_that_fit(checkpoint: Checkpoint, doses: Sequence[int]) -> list[int]:
    """The doses that leave room for at least one token of the sentence."""
    return [copies for copies in doses if copies < checkpoint.content_limit]


def dose_rows(
    encoder: Encoder,
    pairs: Sequence[SentencePair],
    tokens: np.ndarray,
    controls: np.ndarray,
    u: float,
    doses: Sequence[int],
    most_pairs: int,
    seed: int,
    progress: Progress = no_progress,
) -> list[dict[str, Any]]:
    """One row a token and dose.

    Args:
        tokens, controls: ids; the loss of both is against the controls' median slope.
        most_pairs: so many of the pairs, spread over their similarities, one operator each.

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
            inputs = prepare_validation(encoder, pairs, u, copies, seed, rotate_operators=True)
        except MeasureError as error:
            # Cut to make room for many copies, the pairs may all come to lie above u.
            raise NotMeasurable(error.happened, next_step=error.next_step) from error
        inputs = inputs.at(common_points(inputs, most_pairs))
        after = validate_tokens(encoder, inputs, every, copies, seed, progress)
        pulls, slopes = pull(inputs.before, after, u), retention(inputs.before, after).slope
        ordinary = np.median(slopes[len(tokens) :])
        rows += [
            {
                "token_id": int(token),
                "role": "candidate" if place < len(tokens) else "control",
                "copies": copies,
                "points": len(inputs.points),
                "pull": None if np.isnan(pulls[place]) else float(pulls[place]),
                "slope": float(slopes[place]),
                "loss": float(1 - slopes[place] / ordinary),
            }
            for place, token in enumerate(every)
        ]
    return rows
