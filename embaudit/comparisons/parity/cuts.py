"""Where long texts are cut, told from the vector of one: any number of tokens, characters or words.

``readings`` tries the limits that servers usually have. This closes in on any other: the vector of a long text that is
read to a wrong length comes nearer to the wanted one the nearer that length is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from embaudit.checkpoint.tokenizer import NO_LIMIT, position_limit
from embaudit.comparisons.parity.compare import EXACT, apart
from embaudit.comparisons.parity.forms import Form
from embaudit.comparisons.parity.readings import (
    Reading,
    Side,
    cut_after_characters,
    cut_after_words,
    with_limit,
    without_limit,
)
from embaudit.comparisons.parity.vectors import Maker, Making

# Lengths that are tried at once, evenly spread over what is left; and around how many of the best it is gone on.
POINTS, KEPT = 33, 3
SIDES: tuple[Side, ...] = ("right", "all", "left")
# How long a text is, and the reading of its first, or last, so many.
Unit = tuple[Callable[[str], int], Callable[[int], Reading]]


def likely_cuts(
    maker: Maker,
    reading: Reading,
    making: Making,
    texts: Sequence[str],
    wanted: np.ndarray,
    far: np.ndarray,
    form: Form,
) -> Iterator[Reading]:
    """Readings that cut where the longest text that is far off would have to be cut.

    Args:
        reading, making: that give the wanted vectors of other texts.
        wanted: (n, D) the other's vectors.
        far: (n,) whether a text's vector is another one.
    """
    if far.all() or not far.any():
        return
    for length, cut in _units(reading):
        lengths = np.array([length(text) for text in texts])
        read = max(1, int(lengths[~far].max(initial=1)))
        best = None
        # Texts that are read as a whole say no more than that the limit is beyond them.
        for place in np.flatnonzero(far)[np.argsort(lengths[far], kind="stable")]:
            if lengths[place] <= read:
                continue
            best, distance = _nearest(
                read, int(lengths[place]), _CutDistances(maker, making, form, cut, texts, wanted, place)
            )
            if best < lengths[place]:
                break
            read = best
        if best is not None:
            yield cut(best)
            if distance <= EXACT:
                return


@dataclass(frozen=True)
class _CutDistances:
    """1 − cosine of one text's vector, cut at some lengths, to the wanted one."""

    maker: Maker
    making: Making
    form: Form
    cut: Callable[[int], Reading]
    texts: Sequence[str]
    wanted: np.ndarray
    place: int

    def __call__(self, numbers: Sequence[int]) -> np.ndarray:
        readings = [self.cut(number) for number in numbers]
        windows = [one.windows([self.texts[self.place]]) for one in readings]
        self.maker.pool(zip(readings, windows, strict=True))
        goal = self.wanted[self.place : self.place + 1]
        found = np.full(len(numbers), 2.0)
        for row, (one, window) in enumerate(zip(readings, windows, strict=True)):
            made = self.maker.vectors(one, self.making, window)
            if made is not None:
                found[row] = apart(self.form.write(made[:, : self.maker.dimension], goal), goal)[0]
        return np.nan_to_num(found, nan=2.0)


def _nearest(low: int, high: int, distances: Callable[[Sequence[int]], np.ndarray]) -> tuple[int, float]:
    """The number in [low, high] whose distance is smallest, and that: closed in on around the best so far."""
    known: dict[int, float] = {}
    spans = [(low, high)]
    while True:
        points = np.concatenate([np.linspace(*span, POINTS).astype(int) for span in spans])
        new = sorted({int(point) for point in points} - known.keys())
        known |= dict(zip(new, distances(new).tolist(), strict=True)) if new else {}
        best = min(known, key=lambda number: known[number])
        if not new or known[best] <= EXACT:
            return best, known[best]
        tried = sorted(known)
        nearest = sorted(range(len(tried)), key=lambda place: known[tried[place]])[:KEPT]
        spans = [(tried[max(place - 1, 0)], tried[min(place + 1, len(tried) - 1)]) for place in nearest]


def _units(reading: Reading) -> Iterator[Unit]:
    uncut = without_limit(reading)
    checkpoint, before = uncut.checkpoint, uncut.before
    whole = with_limit(uncut, NO_LIMIT, "right")
    positions = position_limit(checkpoint.model) or NO_LIMIT

    def tokens(text: str) -> int:
        return min(sum(len(ids) for ids in whole.windows([text])[0]), positions)

    for side in SIDES:
        yield tokens, lambda number, side=side: with_limit(uncut, number, side)  # type: ignore[misc]
    if sum(aspect == "text" for aspect, _ in uncut.differs) < 2:
        yield lambda text: len(before(text)), lambda number: cut_after_characters(uncut, number)
        yield lambda text: len(before(text).split(" ")), lambda number: cut_after_words(uncut, number)
