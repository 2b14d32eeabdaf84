"""Bookkeeping of a search: each token's latest score and rank, and the shortlists' miss rate on the pilot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from embaudit.measures.sticky.plan import rank
from embaudit.measures.sticky.scores import Protocol, Scores
from embaudit.measures.sticky.search import miss_rate


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
