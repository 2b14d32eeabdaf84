"""Validation: shortlisted tokens and controls, inserted into fresh pairs.

A *point* is one (pair, operator). ``embaudit.measures.sticky.effects`` reads effects off what is
measured here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from embaudit.checkpoint import Encoder
from embaudit.checkpoint.encoder import Progress, no_progress
from embaudit.measures.sticky.insertion import OPERATORS, Operator, make_draw
from embaudit.measures.sticky.pairs import SentencePair
from embaudit.measures.sticky.scan import TOKENS_PER_STEP, require_below_u, unit_rows


@dataclass(frozen=True)
class ValidationInputs:
    """P points, one for each (pair, operator): operators are all three for each pair, or rotate over the pairs.

    Attributes:
        firsts: (pairs, D) float32, unit vectors of the pairs' first sentences.
        before: (P,) float64, similarity of the first sentence and the cut second one, without copies.
    """

    pairs: tuple[SentencePair, ...]
    points: tuple[tuple[int, Operator], ...]
    firsts: np.ndarray
    before: np.ndarray
    u: float

    @property
    def clusters(self) -> np.ndarray:
        """(P,) cluster of each point; pairs that share a sentence are one cluster, resampled together."""
        owner: dict[str, int] = {}
        cluster = list(range(len(self.pairs)))
        for index, pair in enumerate(self.pairs):
            for sentence in (pair.first, pair.second):
                if sentence in owner and cluster[owner[sentence]] != cluster[index]:
                    merged, gone = cluster[owner[sentence]], cluster[index]
                    cluster = [merged if name == gone else name for name in cluster]
                owner.setdefault(sentence, index)
        return np.unique([cluster[pair] for pair, _ in self.points], return_inverse=True)[1]

    def at(self, points: np.ndarray) -> ValidationInputs:
        """The same with some of the points only."""
        return replace(self, points=tuple(self.points[point] for point in points), before=self.before[points])


def prepare_validation(
    encoder: Encoder,
    pairs: Sequence[SentencePair],
    u: float,
    copies: int,
    seed: int,
    *,
    rotate_operators: bool,
) -> ValidationInputs:
    """Choose the points and encode what does not depend on the token.

    Raises:
        MeasureError: if no pair lies below u.
    """
    firsts = unit_rows(encoder.encode_texts([pair.first for pair in pairs]))
    cut = [make_draw(encoder.checkpoint, pair.second, "suffix", copies, seed).baseline for pair in pairs]
    seconds = unit_rows(encoder.encode_ids(cut))
    similarity = np.einsum("pd,pd->p", firsts, seconds, dtype=np.float64)
    require_below_u(similarity, u)
    points = tuple(
        (index, operator)
        for index in range(len(pairs))
        for operator in ((OPERATORS[index % len(OPERATORS)],) if rotate_operators else OPERATORS)
    )
    return ValidationInputs(tuple(pairs), points, firsts, similarity[[pair for pair, _ in points]], u)


def common_points(inputs: ValidationInputs, pairs: int) -> np.ndarray:
    """(C,) indices of the points that every candidate gets: one operator, by turns, on pairs spread over the range.

    All points where the sample has no more pairs than that.
    """
    of_pair: dict[int, list[int]] = {}
    for point, (pair, _) in enumerate(inputs.points):
        of_pair.setdefault(pair, []).append(point)
    if pairs >= len(of_pair):
        return np.arange(len(inputs.points))
    by_similarity = sorted(of_pair, key=lambda pair: (inputs.before[of_pair[pair][0]], pair))
    spread = np.linspace(0, len(by_similarity) - 1, pairs).round().astype(int)
    turns = [of_pair[by_similarity[place]] for place in spread]
    return np.sort([points[turn % len(points)] for turn, points in enumerate(turns)])


def validate_tokens(
    encoder: Encoder,
    inputs: ValidationInputs,
    token_ids: np.ndarray,
    copies: int,
    seed: int,
    progress: Progress = no_progress,
) -> np.ndarray:
    """Similarities after insertion, (T, P) float32."""
    import torch

    after = np.empty((len(token_ids), len(inputs.points)), dtype=np.float32)
    for place, (pair, operator) in enumerate(inputs.points):
        draw = make_draw(encoder.checkpoint, inputs.pairs[pair].second, operator, copies, seed)
        first = torch.from_numpy(inputs.firsts[pair]).to(encoder.checkpoint.device)
        for start in range(0, len(token_ids), TOKENS_PER_STEP):
            part = token_ids[start : start + TOKENS_PER_STEP]
            vectors = torch.nn.functional.normalize(encoder.encode_dense(torch.from_numpy(draw.insert(part))), dim=1)
            after[start : start + len(part), place] = (vectors @ first).cpu().numpy()
            progress(len(part))
    return after
