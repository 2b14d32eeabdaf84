"""How a search spends its encodes: which tokens, which of them as a pilot, which candidates and controls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from embaudit.errors import MeasureError
from embaudit.measures.sticky.scan import ScanScores
from embaudit.measures.sticky.scores import PROTOCOLS, Protocol
from embaudit.measures.sticky.settings import StickySettings

# Tokens that a reader would call ordinary; controls are drawn from them.
ORDINARY_ORIGINS = ("word", "subword")


@dataclass(frozen=True)
class ScannedTokens:
    """The tokens that a search looks at, and how many would have been eligible.

    Attributes:
        pilot: a random part of ``token_ids`` that gets all draws; empty where every token does.
    """

    token_ids: np.ndarray
    pilot: np.ndarray
    eligible: int


def eligible_tokens(tokens: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Ids that the ``definition`` and ``retention`` protocols scan: every reachable or special token."""
    return np.array(
        [token["token_id"] for token in tokens if token["is_reachable"] or token["category"] == "special"],
        dtype=np.int64,
    )


def choose_tokens(
    tokens: Sequence[Mapping[str, Any]], settings: StickySettings, limit: int | None, seed: int
) -> ScannedTokens:
    """All eligible tokens, or a random part of them where a limit or the encode budget allows no more.

    Raises:
        MeasureError: if nothing can be scanned.
    """
    eligible = eligible_tokens(tokens)
    most = len(eligible) if limit is None else min(limit, len(eligible))
    if settings.most_encodes is not None:
        most = bisect_right(range(most + 1), settings.most_encodes, key=lambda n: planned_encodes(settings, n)) - 1
    if most < 1:
        raise MeasureError(
            f"There is no token to scan: {len(eligible)} of {len(tokens)} are reachable or special, and the budget "
            f"allows {max(most, 0)}.",
            next_step="Raise most_encodes in the profile, or --limit-tokens.",
        )
    # The first of a random order are the pilot: it is a random sample of the tokens, and of the vocabulary.
    chosen = np.random.default_rng([seed, len(eligible)]).choice(len(eligible), size=most, replace=False)
    pilot = ceil(settings.pilot_share * most) if settings.search == "sequential" else 0
    return ScannedTokens(eligible[np.sort(chosen)], eligible[np.sort(chosen[:pilot])], len(eligible))


def choose_controls(tokens: Sequence[Mapping[str, Any]], candidates: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Ordinary tokens, the same for every token they are compared with; no candidate is among them.

    The first of one random order of the vocabulary: another candidate moves at most one of them, so that a token's
    loss hangs on the other candidates as little as can be.

    Raises:
        MeasureError: if the vocabulary has no ordinary token outside the candidates.
    """
    taken = set(candidates.tolist())
    ordinary = [
        token["token_id"] for token in tokens if token["category"] == "ok" and token["origin"] in ORDINARY_ORIGINS
    ]
    in_order = np.random.default_rng([seed, len(tokens), 1]).permutation(np.array(ordinary, dtype=np.int64))
    chosen = [token for token in in_order.tolist() if token not in taken][:count]
    if not chosen:
        raise MeasureError("The vocabulary has no ordinary word or sub-word to compare sticky tokens with.")
    return np.array(sorted(chosen), dtype=np.int64)


def choose_shortlists(
    token_ids: np.ndarray, scores: ScanScores, scanned: int, settings: StickySettings
) -> dict[Protocol, list[int]]:
    """Each protocol's share of the scanned tokens, from those that got all draws; ascending ids.

    Their union is validated. The lists are kept apart because the adaptive threshold compares a protocol's own
    candidates: quartiles over two lists of different tokens would measure the gap between the lists.
    """
    length = shortlist_length(settings, scanned)
    worst_first: dict[Protocol, np.ndarray] = {
        "definition": np.argsort(-np.nan_to_num(scores.pull, nan=-np.inf), kind="stable"),
        "retention": np.argsort(np.nan_to_num(scores.slope, nan=np.inf), kind="stable"),
    }
    return {protocol: sorted(token_ids[order[:length]].tolist()) for protocol, order in worst_first.items()}


def rank(draws: np.ndarray, badness: np.ndarray) -> np.ndarray:
    """Ranks from 1: tokens of later rungs first, and among them the worst first; undefined values last."""
    order = np.lexsort((np.arange(len(draws)), -np.nan_to_num(badness, nan=-np.inf), -draws))
    ranks = np.empty(len(draws), dtype=np.int64)
    ranks[order] = np.arange(1, len(draws) + 1)
    return ranks


def points_per_token(settings: StickySettings) -> int:
    """(pair, operator) points that validating one token takes, if all the pairs wanted are found."""
    return settings.validation_pairs * (1 if settings.rotate_operators else 3)


def shortlist_length(settings: StickySettings, scanned: int) -> int:
    """Tokens on the shortlist of one protocol."""
    length = max(1, ceil(settings.shortlist_share * scanned))
    return length if settings.longest_shortlist is None else min(length, settings.longest_shortlist)


def tokens_kept(settings: StickySettings, share: float, scanned: int) -> int:
    """How many tokens a rung keeps: its share of all, and never fewer than twice what both shortlists hold."""
    return max(ceil(share * scanned), 2 * len(PROTOCOLS) * shortlist_length(settings, scanned))


def rungs_of(settings: StickySettings, draws: int) -> list[tuple[int, float | None]]:
    """(draws in all, share of the tokens that goes on) of each rung; the last one brings all there are."""
    if settings.search == "exhaustive":
        return [(draws, None)]
    rungs: list[tuple[int, float | None]] = [(rung.draws, rung.keep) for rung in settings.rungs if rung.draws < draws]
    return [*rungs, (draws, None)]


def planned_scan_encodes(settings: StickySettings, tokens: int) -> int:
    """Encodes of a scan of so many tokens, if all the scoring pairs wanted are found."""
    if settings.search == "exhaustive":
        return tokens * settings.scoring_pairs
    pilot = ceil(settings.pilot_share * tokens)
    left, done, encodes = tokens - pilot, 0, pilot * settings.scoring_pairs
    for draws, keep in rungs_of(settings, settings.scoring_pairs):
        encodes += left * (draws - done)
        done = draws
        left = left if keep is None else min(left, tokens_kept(settings, keep, tokens))
    return encodes


def planned_encodes(settings: StickySettings, tokens: int) -> int:
    """Encodes of a scan of so many tokens and of its validation, if every candidate goes all the way."""
    candidates = len(PROTOCOLS) * shortlist_length(settings, tokens)
    return planned_scan_encodes(settings, tokens) + (settings.controls + candidates) * points_per_token(settings)
