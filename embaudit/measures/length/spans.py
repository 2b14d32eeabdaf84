"""Which part of a text stands for which length: bins of natural lengths, and one growing span a text for the controls.

Lengths count a text's own tokens; special tokens come on top. Every control cuts the same span, so that at one length
truncation, windows and input embeddings have seen the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from embaudit.keys import content_key

BIN_WIDTH = 100
# A length is compared on so many texts at least, where there are so many.
MIN_SPANS = 10


@dataclass(frozen=True)
class LengthBin:
    """[low, high) tokens before truncation; ``length`` is what the controls are cut to for it."""

    low: int
    high: int

    @property
    def length(self) -> int:
        """The middle: what a text of this bin has, more or less."""
        return (self.low + self.high) // 2


def length_bins(limit: int, width: int = BIN_WIDTH) -> list[LengthBin]:
    """[0, width), [width, 2·width), … up to ``limit`` tokens, which closes the last one.

    Args:
        limit: most of its own tokens that the model can read of a text: positions without the special tokens.
    """
    edges = [*range(0, limit, width), limit]
    # A last bin of a few tokens would hold no text: it is joined to the one before.
    if len(edges) > 2 and edges[-1] - edges[-2] < width // 4:
        del edges[-2]
    return [LengthBin(low, high) for low, high in pairwise(edges)]


def longest_common(lengths: Sequence[int], asked: Sequence[int]) -> int | None:
    """The longest of some lengths that ten texts have (or all that have the shortest one, where they are fewer).

    Comparing lengths on the same texts takes texts that have the longest of them; one rare long text must not
    decide alone.

    Args:
        lengths: of the texts, in their own tokens.
        asked: lengths to compare.

    Returns:
        None where fewer than two texts have even the shortest.
    """
    sizes = np.asarray(lengths)
    shortest = int((sizes >= min(asked)).sum()) if len(asked) else 0
    if shortest < 2:
        return None
    fewest = min(MIN_SPANS, shortest)
    return max(length for length in asked if int((sizes >= length).sum()) >= fewest)


def spans_of(contents: Sequence[Sequence[int]], longest: int, most: int, seed: int) -> list[list[int]]:
    """One span of ``longest`` tokens from each of the first ``most`` texts that have so many."""
    spans = []
    for ids in [ids for ids in contents if len(ids) >= longest][:most]:
        start = span_start(ids, longest, seed)
        spans.append(list(ids[start : start + longest]))
    return spans


def span_start(ids: Sequence[int], longest: int, seed: int) -> int:
    """Where the span of a text starts: drawn by the seed and the text itself, so that it depends on no other text."""
    room = len(ids) - longest
    if room < 1:
        return 0
    draw = int(content_key(seed=seed, ids=list(map(int, ids))), 16)
    return int(np.random.default_rng(draw).integers(0, room + 1))


def windows_of(ids: Sequence[int], size: int) -> list[list[int]]:
    """Consecutive pieces of ``size`` tokens; the last may be shorter."""
    return [list(ids[start : start + size]) for start in range(0, len(ids), size)]


def evenly(bins: Sequence[LengthBin], most: int) -> list[LengthBin]:
    """At most so many of the bins, the first and the last among them."""
    if len(bins) <= most:
        return list(bins)
    return [bins[round(place * (len(bins) - 1) / (most - 1))] for place in range(most)]
