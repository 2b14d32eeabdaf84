"""Length bins for natural texts, and one growing span per text for the controls.

Lengths exclude special tokens. All controls cut the same span, so that at any length truncation, windows and input
embeddings see the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from embaudit.system.files import content_key

BIN_WIDTH = 100
# Each length is compared on at least this many texts, if available.
MIN_SPANS = 10


@dataclass(frozen=True)
class LengthBin:
    """[low, high) tokens before truncation; controls are cut to ``length``."""

    low: int
    high: int

    @property
    def length(self) -> int:
        """The midpoint, about the length of the bin's texts."""
        return (self.low + self.high) // 2


def length_bins(limit: int, width: int = BIN_WIDTH) -> list[LengthBin]:
    """[0, width), [width, 2·width), … up to and including ``limit`` tokens.

    Args:
        limit: the most tokens that the model can read: positions without special tokens.
    """
    edges = [*range(0, limit, width), limit]
    # A narrow last bin would contain no text, so merge it with the previous one.
    if len(edges) > 2 and edges[-1] - edges[-2] < width // 4:
        del edges[-2]
    return [LengthBin(low, high) for low, high in pairwise(edges)]


def longest_common(lengths: Sequence[int], asked: Sequence[int]) -> int | None:
    """The longest of the requested lengths that ten texts reach (or all that reach the shortest, if fewer).

    To compare lengths on the same texts, all texts must reach the longest one; a single long text should not
    determine it.

    Args:
        lengths: lengths of the texts, without special tokens.
        asked: lengths to compare.

    Returns:
        None if fewer than two texts reach even the shortest.
    """
    sizes = np.asarray(lengths)
    shortest = int((sizes >= min(asked)).sum()) if len(asked) else 0
    if shortest < 2:
        return None
    fewest = min(MIN_SPANS, shortest)
    return max(length for length in asked if int((sizes >= length).sum()) >= fewest)


def spans_of(contents: Sequence[Sequence[int]], longest: int, most: int, seed: int) -> list[list[int]]:
    """One span of ``longest`` tokens from each of the first ``most`` texts that are long enough."""
    spans = []
    for ids in [ids for ids in contents if len(ids) >= longest][:most]:
        start = span_start(ids, longest, seed)
        spans.append(list(ids[start : start + longest]))
    return spans


def span_start(ids: Sequence[int], longest: int, seed: int) -> int:
    """Random start of a text's span, which depends only on the seed and the text."""
    room = len(ids) - longest
    if room < 1:
        return 0
    draw = int(content_key(seed=seed, ids=list(map(int, ids))), 16)
    return int(np.random.default_rng(draw).integers(0, room + 1))


def windows_of(ids: Sequence[int], size: int) -> list[list[int]]:
    """Consecutive windows of ``size`` tokens; the last may be shorter."""
    return [list(ids[start : start + size]) for start in range(0, len(ids), size)]


def evenly(bins: Sequence[LengthBin], most: int) -> list[LengthBin]:
    """At most ``most`` of the bins, evenly spaced, including the first and the last."""
    if len(bins) <= most:
        return list(bins)
    return [bins[round(place * (len(bins) - 1) / (most - 1))] for place in range(most)]
