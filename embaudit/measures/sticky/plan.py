"""How a search spends its encodes: on which tokens, which of them as the pilot, which candidates and controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.scores import Protocol, Scores
from embaudit.measures.sticky.search import MIN_PILOT
from embaudit.words.errors import MeasureError

ORDINARY_ORIGINS = ("word", "subword")
# Of the budget: the pilot tells where to look and how many bad tokens there are, the rest finds the worst ones.
PILOT_SHARE = 1 / 3
# If every token gets all draws, this many random ones stand for all of them in the costlier statistics.
EXHAUSTIVE_PILOT = 3_000
FIRST_DRAWS = 2
# Share of a stage's tokens that go on to the next: with half, so few get all draws that tokens of moderate loss are
# crowded out; with more, too few are measured in the first stage (benchmarks/README.md).
GOING_ON = 0.65


@dataclass(frozen=True)
class SearchedTokens:
    """The tokens that a search chooses among, and how many are eligible.

    Attributes:
        token_ids: ascending; all eligible ones, unless a limit is set.
        pilot: a random sample of ``token_ids`` that gets all draws.
        stages: (draws so far, number of tokens that get them) of each stage of the search among the others.
    """

    token_ids: np.ndarray
    pilot: np.ndarray
    stages: tuple[tuple[int, int], ...]
    eligible: int

    @property
    def is_exhaustive(self) -> bool:
        return len(self.pilot) + self.stages[-1][1] == len(self.token_ids)


def eligible_tokens(tokens: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Ids that the ``definition`` and ``retention`` protocols scan: every reachable or special token."""
    return np.array(
        [token["token_id"] for token in tokens if token["is_reachable"] or token["category"] == "special"],
        dtype=np.int64,
    )


def choose_tokens(
    tokens: Sequence[Mapping[str, Any]], budget: int | None, draws: int, limit: int | None, seed: int
) -> SearchedTokens:
    """All eligible tokens, or a random sample of them if a limit is set, and how the budget is spent on them.

    Args:
        budget: number of encodes; None: every token gets all draws.

    Raises:
        MeasureError: if nothing can be scanned.
    """
    eligible = eligible_tokens(tokens)
    count = len(eligible) if limit is None else min(limit, len(eligible))
    if count < 1:
        raise MeasureError(
            f"There is no token to scan: {len(eligible)} of {len(tokens)} are reachable or special, and the limit is "
            f"{limit}.",
            next_step="Raise it: --set sticky.limit_tokens=N" if limit is not None else "Look at its tokenizer.",
        )
    # The pilot is the first of a random order, so it is a random sample of these tokens, and of all eligible ones.
    chosen = np.random.default_rng([seed, len(eligible)]).choice(len(eligible), size=count, replace=False)
    pilot, stages = spend(budget, count, draws)
    return SearchedTokens(eligible[np.sort(chosen)], eligible[np.sort(chosen[:pilot])], stages, len(eligible))


def spend(budget: int | None, tokens: int, draws: int) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Number of tokens in the pilot, and the stages for the others: draws double while tokens become fewer.

    The pilot gets a third of the budget, but at least ``MIN_PILOT`` tokens. At each stage, the same share r of the
    tokens goes on: ``GOING_ON``, or more if the budget allows it with all N other tokens in the first stage, so that
    Σ (d_i − d_{i−1}) · N · r^i is the rest of the budget. If the budget is too small for that, N is smaller.
    """
    if budget is None or tokens * draws <= budget:
        pilot = min(tokens, EXHAUSTIVE_PILOT)
        return pilot, ((draws, tokens - pilot),)
    pilot = min(tokens, max(MIN_PILOT, int(PILOT_SHARE * budget / draws)))
    if pilot == tokens:
        return pilot, ((draws, 0),)
    left, others = budget - pilot * draws, tokens - pilot
    in_all = [FIRST_DRAWS * 2**stage for stage in range(draws.bit_length()) if FIRST_DRAWS * 2**stage < draws]
    in_all.append(draws)
    steps = np.diff([0, *in_all])

    def cost(share: float) -> float:
        return float(steps @ share ** np.arange(len(steps)))

    share = GOING_ON
    first = min(others, int(max(left, 0) / cost(share)))
    if first == others and cost(1.0) * others > left:
        from scipy.optimize import brentq

        share = max(share, brentq(lambda r: cost(r) * others - left, 0.0, 1.0))
    return pilot, tuple((d, int(first * share**stage)) for stage, d in enumerate(in_all))


def is_ordinary(token: Mapping[str, Any]) -> bool:
    """Whether a token is a word or a part of one, and its decoded text is encoded as the same token."""
    return bool(token["category"] == "ok" and token["origin"] in ORDINARY_ORIGINS)


def choose_controls(tokens: Sequence[Mapping[str, Any]], candidates: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Ordinary tokens, the same for every token that is compared with them; no candidate is among them.

    They are the first of one random order of the vocabulary: one more candidate replaces at most one of them, so that
    a token's loss depends on the other candidates as little as possible.

    Raises:
        MeasureError: if the vocabulary has no ordinary token outside the candidates.
    """
    taken = set(candidates.tolist())
    ordinary = [token["token_id"] for token in tokens if is_ordinary(token)]
    in_order = np.random.default_rng([seed, len(tokens), 1]).permutation(np.array(ordinary, dtype=np.int64))
    chosen = [token for token in in_order.tolist() if token not in taken][:count]
    if not chosen:
        raise MeasureError("The vocabulary has no ordinary word or sub-word to compare sticky tokens with.")
    return np.array(sorted(chosen), dtype=np.int64)


def choose_shortlists(token_ids: np.ndarray, scores: Scores, length: int) -> dict[Protocol, list[int]]:
    """The ``length`` worst tokens by each protocol, among those that got all draws; ascending ids.

    Their union is validated. The lists are kept apart because the adaptive threshold compares a protocol's own
    candidates: quartiles over two lists of different tokens would measure the gap between the lists.
    """
    worst_first: dict[Protocol, np.ndarray] = {
        "definition": np.argsort(-np.nan_to_num(scores.pull, nan=-np.inf), kind="stable"),
        "retention": np.argsort(np.nan_to_num(scores.slope, nan=np.inf), kind="stable"),
    }
    return {protocol: sorted(token_ids[order[:length]].tolist()) for protocol, order in worst_first.items()}


def rank(draws: np.ndarray, badness: np.ndarray) -> np.ndarray:
    """Ranks from 1: tokens with more draws first, and among them the worst first; undefined values last."""
    order = np.lexsort((np.arange(len(draws)), -np.nan_to_num(badness, nan=-np.inf), -draws))
    ranks = np.empty(len(draws), dtype=np.int64)
    ranks[order] = np.arange(1, len(draws) + 1)
    return ranks


def shortlist_length(settings: StickySettings, searched: int) -> int:
    """Number of tokens on the shortlist of one protocol."""
    length = max(1, ceil(settings.shortlist_share * searched))
    return length if settings.max_shortlist is None else min(length, settings.max_shortlist)
