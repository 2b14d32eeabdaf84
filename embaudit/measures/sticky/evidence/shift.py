"""The paper's first experiment (arXiv 2507.18171, §3): the effect of appending n copies on a fixed set of pairs.

Distributions of ΔSim = Sim(s1, I(s2, t, n)) − Sim(s1, s2), suffix, for sticky and ordinary tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.measures.sticky.insertion import SentencePair, make_draw
from embaudit.measures.sticky.points import unit_rows

MEASURE_VERSION = 1


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
