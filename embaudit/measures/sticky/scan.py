"""The scan: every token inserted into scoring sentences, narrowed from many tokens with one draw to few with all.

One encode of I(s2, t, n) is compared with *every* scoring sentence s1, not only with its own partner: 15 draws
then give 15 × 15 points at the price of 15. Measured on all-MiniLM-L6-v2 (1 500 tokens, halves of 7 draws), the
split-half correlation of the slope rises from .69 to .80 by that, and one draw alone puts 97 % of the tokens of
lowest retention among its lowest 3 % (benchmarks/README.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.errors import MeasureError
from embaudit.measures.sticky.insertion import OPERATORS, Draw, make_draw
from embaudit.measures.sticky.pairs import SentencePair
from embaudit.measures.sticky.scores import MIN_VARIANCE, pull, retention

MEASURE_VERSION = 2
TOKENS_PER_STEP = 1_024


@dataclass(frozen=True)
class ScanInputs:
    """What all tokens of a scan share.

    Attributes:
        draws: K draws, operators in rotation over the scoring pairs.
        anchors: (S, D) float32, unit vectors of the scoring pairs' first sentences.
        before: (K, S) float64, similarity of each draw's sentence, cut and without copies, to each anchor.
        u: mean pairwise token similarity.
    """

    draws: tuple[Draw, ...]
    anchors: np.ndarray
    before: np.ndarray
    u: float


def prepare_scan(encoder: Encoder, pairs: Sequence[SentencePair], u: float, copies: int, seed: int) -> ScanInputs:
    """Encode what does not depend on the token.

    Raises:
        MeasureError: if no pair of the sample lies below u; there the definition has nothing to measure.
    """
    draws = tuple(
        make_draw(encoder.checkpoint, pair.second, OPERATORS[index % len(OPERATORS)], copies, seed)
        for index, pair in enumerate(pairs)
    )
    anchors = unit_rows(encoder.encode_texts([pair.first for pair in pairs]))
    baselines = unit_rows(encoder.encode_ids([draw.baseline for draw in draws]))
    before = baselines.astype(np.float64) @ anchors.astype(np.float64).T
    require_below_u(before, u)
    return ScanInputs(draws, anchors, before, u)


def require_below_u(before: np.ndarray, u: float) -> None:
    """Raise unless some similarity lies below u, and the similarities differ: slopes need a spread."""
    if np.var(before) <= MIN_VARIANCE:
        raise MeasureError(
            f"All sentence pairs have the same similarity ({before.flat[0]:.4f}): how much of it is kept "
            "cannot be told.",
            kept="The other measures' results are kept.",
            next_step="Give pairs of different similarity.",
        )
    if not (before < u).any():
        raise MeasureError(
            f"No sentence pair lies below u = {u:.4f}: the lowest similarity in the sample is {before.min():.4f}, so "
            "that there is nothing to be pulled up.",
            kept="The other measures' results are kept.",
            next_step="Give unrelated sentences (--corpus sts=FILE, --pairs FILE), or leave it out (--measures socm).",
        )


def scan_tokens(
    encoder: Encoder,
    inputs: ScanInputs,
    token_ids: np.ndarray,
    draws: Sequence[int],
    progress: Progress = no_progress,
) -> np.ndarray:
    """Similarities after insertion, (T, len(draws), S) float32: token × draw × anchor.

    A value depends on its token and draw alone, to 1e-6 in float32: not on the other tokens or the batch.
    """
    import torch

    anchors = torch.from_numpy(inputs.anchors).to(encoder.checkpoint.device)
    after = np.empty((len(token_ids), len(draws), len(inputs.anchors)), dtype=np.float32)
    for place, draw in enumerate(draws):
        for start in range(0, len(token_ids), TOKENS_PER_STEP):
            part = token_ids[start : start + TOKENS_PER_STEP]
            vectors = encoder.encode_dense(torch.from_numpy(inputs.draws[draw].insert(part)))
            vectors = torch.nn.functional.normalize(vectors, dim=1)
            after[start : start + len(part), place] = (vectors @ anchors.T).cpu().numpy()
            progress(len(part))
    return after


@dataclass(frozen=True)
class ScanScores:
    """One value a token for each protocol; (T,) each."""

    pull: np.ndarray
    slope: np.ndarray


def score_tokens(inputs: ScanInputs, draws: Sequence[int], after: np.ndarray) -> ScanScores:
    """Pull and retention of tokens from their draws.

    Args:
        draws: which draws ``after`` holds.
        after: (T, len(draws), S).
    """
    before = inputs.before[list(draws)].ravel()
    points = after.reshape(len(after), -1)
    return ScanScores(pull(before, points, inputs.u), retention(before, points).slope)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1 in float32; cosine similarity is then a product."""
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def split_half_reliability(inputs: ScanInputs, draws: Sequence[int], after: np.ndarray) -> tuple[float, float]:
    """Correlation of the scores from even draws with those from odd draws: (pull, slope); NaN below four draws."""
    if len(draws) < 4 or len(after) < 3:
        return float("nan"), float("nan")
    halves = [score_tokens(inputs, draws[start::2], np.ascontiguousarray(after[:, start::2])) for start in (0, 1)]
    return (
        float(np.corrcoef(halves[0].pull, halves[1].pull)[0, 1]),
        float(np.corrcoef(halves[0].slope, halves[1].slope)[0, 1]),
    )
