"""How a search spends its encodes, and what it has found so far.

The plan: on which tokens, which of them as the pilot, which candidates and controls. The tally: each token's latest
score and rank, and the shortlists' miss rate on the pilot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

import numpy as np

from embaudit.measures.sticky import StickySettings
from embaudit.measures.sticky.moments import Scores
from embaudit.measures.sticky.search import MIN_PILOT, miss_rate
from embaudit.measures.sticky.tables import Protocol
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
            f"There is no token to scan: {len(eligible)} of {len(tokens)} are reachable or special"
            + ("." if limit is None else f", and the limit is {limit}."),
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


@dataclass(frozen=True)
class SearchFound:
    """What a search found, beside the scores.

    Attributes:
        rungs: how many tokens got at least each number of draws.
        shortlists: by protocol, the ids of its candidates.
        lowest: the tokens that retain least, worst first.
        reliability, prediction: by protocol, the rank correlation of two halves of the draws, and of what the
            embeddings predict, with intervals.
        misses: by protocol, the miss rate on the pilot; None for an exhaustive search, which misses nothing.
        pilot_dropped: the tokens of the pilot that the search would not have given all draws: a random sample of all
            that it dropped.
    """

    rungs: list[dict[str, int]]
    shortlists: dict[Protocol, list[int]]
    lowest: list[int]
    reliability: dict[str, dict[str, float | None]]
    prediction: dict[str, dict[str, float | None]]
    misses: dict[str, dict[str, Any] | None]
    pilot_dropped: list[int]


class ScoreBoard:
    """Scores of tokens with their numbers of draws; a token's later score replaces an earlier one."""

    def __init__(self) -> None:
        self._scored: dict[int, tuple[int, float, float, bool]] = {}

    def add(self, token_ids: np.ndarray, draws: int, scores: Scores, *, is_pilot: bool = False) -> None:
        for token, pull, slope in zip(token_ids, scores.pull, scores.slope, strict=True):
            self._scored[int(token)] = (draws, float(pull), float(slope), is_pilot)

    @property
    def tokens(self) -> int:
        return len(self._scored)

    def rungs(self) -> list[dict[str, int]]:
        """How many tokens got at least each number of draws."""
        spent = Counter(draws for draws, *_ in self._scored.values())
        return [
            {"draws": draws, "tokens": sum(count for other, count in spent.items() if other >= draws)}
            for draws in sorted(spent)
        ]

    def lowest_slopes(self, count: int) -> list[int]:
        """The tokens with the lowest retention, worst first; tokens with more draws precede those that were dropped."""
        tokens, draws, _, slopes = self._columns()
        return tokens[np.argsort(rank(draws, -slopes))][:count].tolist()

    def rows(self, shortlists: Mapping[Any, Sequence[int]]) -> list[dict[str, Any]]:
        """Rows of ``sticky_score``, by ascending id."""
        tokens, draws, pulls, slopes = self._columns()
        pull_rank, slope_rank = rank(draws, pulls), rank(draws, -slopes)
        return [
            {
                "token_id": int(token),
                "draws": int(draws[i]),
                "pull": None if np.isnan(pulls[i]) else float(pulls[i]),
                "slope": None if np.isnan(slopes[i]) else float(slopes[i]),
                "pull_rank": int(pull_rank[i]),
                "slope_rank": int(slope_rank[i]),
                "shortlisted_by": "+".join(name for name, listed in shortlists.items() if token in listed) or None,
                "is_pilot": self._scored[int(token)][3],
            }
            for i, token in enumerate(tokens)
        ]

    def _columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        tokens = np.array(sorted(self._scored), dtype=np.int64)
        draws, pulls, slopes = (np.array([self._scored[int(t)][field] for t in tokens]) for field in range(3))
        return tokens, draws, pulls, slopes


def misses_of(
    shortlists: Mapping[Any, Sequence[int]], pilot: np.ndarray, survives: np.ndarray | None
) -> dict[str, dict[str, Any] | None]:
    """Each protocol's miss rate on the pilot; None for an exhaustive search, which misses nothing."""
    if survives is None:
        return dict.fromkeys(shortlists)
    found = {protocol: miss_rate(np.isin(pilot, listed), survives) for protocol, listed in shortlists.items()}
    return {protocol: {**asdict(misses), "rate": misses.rate} for protocol, misses in found.items()}
