"""Dose curve: pull and retention by number of copies, n = 1, 2, 4, 8, 16.

For each n, content is cut so that all copies survive, and ρ_0 uses the same cut; loss is relative to ordinary tokens
at the same n. Definitions: ``embaudit.measures.sticky.moments``.

The paper's first experiment (arXiv 2507.18171, §3): the effect of appending n copies on a fixed set of pairs.

Distributions of ΔSim = Sim(s1, I(s2, t, n)) − Sim(s1, s2), suffix, for sticky and ordinary tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.measures.sticky.insertion import SentencePair, make_draw
from embaudit.measures.sticky.moments import insert_tokens, score
from embaudit.measures.sticky.points import Points, unit_rows
from embaudit.words.errors import MeasureError, NotMeasurable

DOSE_VERSION = 2


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
    """One row per token and dose.

    Args:
        points_at: the same draws and anchors, with room for the given number of copies.
        tokens, controls: ids; the loss of both is relative to the controls' median slope.

    Raises:
        NotMeasurable: if no dose fits into the checkpoint's length limit, or no pair is below u at some dose.
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
            # Cutting content to make room for many copies may leave all pairs above u.
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


SHIFT_VERSION = 1


def similarity_shifts(
    encoder: Encoder,
    pairs: Sequence[SentencePair],
    token_ids: np.ndarray,
    copies: int,
    seed: int,
    progress: Progress = no_progress,
) -> tuple[np.ndarray, np.ndarray]:
    """Similarities before, (P,) float64, and after, (T, P) float64.

    A sentence that is second in several pairs is encoded once per token. ``before`` uses the same cut.
    """
    import torch

    seconds = list(dict.fromkeys(pair.second for pair in pairs))
    place = np.array([seconds.index(pair.second) for pair in pairs])
    draws = [make_draw(encoder.checkpoint, second, "suffix", copies, seed) for second in seconds]
    first_texts = list(dict.fromkeys(pair.first for pair in pairs))
    first_place = np.array([first_texts.index(pair.first) for pair in pairs])
    firsts = unit_rows(encoder.encode_texts(first_texts)).astype(np.float64)[first_place]
    plain = unit_rows(encoder.encode_ids([draw.baseline for draw in draws])).astype(np.float64)[place]
    after = np.empty((len(token_ids), len(pairs)))
    for index, draw in enumerate(draws):
        vectors = encoder.encode_dense(torch.from_numpy(draw.insert(token_ids)))
        unit = torch.nn.functional.normalize(vectors, dim=1).cpu().numpy().astype(np.float64)
        held = place == index
        after[:, held] = unit @ firsts[held].T
        progress(len(token_ids))
    return np.einsum("pd,pd->p", firsts, plain), after
