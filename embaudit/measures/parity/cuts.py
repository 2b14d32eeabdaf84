"""Where long texts are cut, told from the vector of one: any number of tokens, characters or words.

``readings`` tries the limits that servers usually have. This closes in on any other: the vector of a long text that is
read to a wrong length comes nearer to the wanted one the nearer that length is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from embaudit.checkpoint.tokenizer import NO_LIMIT, position_limit
from embaudit.measures.parity.compare import apart
from embaudit.measures.parity.forms import Form
from embaudit.measures.parity.readings import (
    Reading,
    Side,
    cut_after_characters,
    cut_after_words,
    with_limit,
    without_limit,
)
from embaudit.measures.parity.vectors import Maker, Making

# Lengths that are tried at once, evenly spread over what is left.
POINTS = 9
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
        place = int(np.where(far, lengths, -1).argmax())
        shortest = max(1, int(lengths[~far & (lengths <= lengths[place])].max(initial=1)))

        def distances(numbers: Sequence[int], place: int = place, cut: Callable[[int], Reading] = cut) -> np.ndarray:
            readings = [cut(number) for number in numbers]
            windows = [one.windows([texts[place]]) for one in readings]
            maker.pool(zip(readings, windows, strict=True))
            found = []
            for one, window in zip(readings, windows, strict=True):
                made = maker.vectors(one, making, window)
                goal = wanted[place : place + 1]
                found.append(
                    2.0 if made is None else float(apart(form.write(made[:, : maker.dimension], goal), goal)[0])
                )
            return np.nan_to_num(found, nan=2.0)

        yield cut(_nearest(shortest, int(lengths[place]), distances))


def _nearest(low: int, high: int, distances: Callable[[Sequence[int]], np.ndarray]) -> int:
    """The number in [low, high] whose distance is smallest, closed in on from points around the best so far."""
    known: dict[int, float] = {}
    while True:
        new = [
            number for number in np.unique(np.linspace(low, high, POINTS).astype(int)).tolist() if number not in known
        ]
        if not new:
            return min(known, key=lambda number: known[number])
        known |= dict(zip(new, distances(new).tolist(), strict=True))
        tried = sorted(known)
        best = tried.index(min(tried, key=lambda number: known[number]))
        low, high = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]


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
