"""Where long texts are cut, told from the vector of one: any number of tokens, characters or words.

``readings`` tries the limits that servers usually have. This closes in on any other: the vector of a long text that is
read to a wrong length comes nearer to the wanted one the nearer that length is. That goes for whatever is counted: what
is read up to a number of characters is nearly what is read up to some number of tokens. So the checkpoint's own tokens
are tried first, and other units only if these come near, and around there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from embaudit.checkpoint.tokenizer import NO_LIMIT, position_limit
from embaudit.comparisons.parity.compare import EXACT, apart
from embaudit.comparisons.parity.foreign import text_unit, usable
from embaudit.comparisons.parity.forms import Form
from embaudit.comparisons.parity.readings import (
    Reading,
    Side,
    cut_after,
    in_pieces,
    with_limit,
    without_limit,
)
from embaudit.comparisons.parity.units import CHARACTERS, WORDS, Pieces, Unit
from embaudit.comparisons.parity.vectors import Maker, Making

# Lengths that are tried at once, evenly spread over what is left; and around how many of the best it is gone on.
POINTS, KEPT = 33, 3
# Own tokens come near a cut in another unit if they leave at most this share of what no cut leaves; that other unit is
# then looked for this far around.
NEAR, AROUND = 0.5, 0.15
# Where more texts than this share are far off, it is not that long ones are cut.
FAR_AT_MOST = 0.9
# A text so many times as long as the cut shows it better than one that loses a word.
LONGER = 1.5


@dataclass(frozen=True)
class Cut:
    """A way to cut texts: how long a text is, and the reading that cuts at so many."""

    length: Callable[[str], int]
    reading: Callable[[int], Reading]


@dataclass(frozen=True)
class _Found:
    """The number at which a way to cut comes nearest to one text's vector.

    Attributes:
        place: of the text.
        share: of it that this is.
        distance: that it leaves.
        is_near: whether that is much less than what no cut leaves.
    """

    number: int
    place: int
    share: float
    distance: float
    is_near: bool


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
    if far.mean() > FAR_AT_MOST or not far.any():
        return
    search = _Search(maker, making, form, texts, wanted, far)
    for own, others in _families(reading):
        first = search.nearest(own)
        if first is None:
            continue
        yield own.reading(first.number)
        if first.distance <= EXACT:
            return
        if not first.is_near:
            continue
        for cut in others():
            found = search.nearest(cut, first)
            if found is not None:
                yield cut.reading(found.number)
                if found.distance <= EXACT:
                    return


@dataclass(frozen=True)
class _Search:
    """Closes in on the number at which texts are cut."""

    maker: Maker
    making: Making
    form: Form
    texts: Sequence[str]
    wanted: np.ndarray
    far: np.ndarray

    def nearest(self, cut: Cut, near: _Found | None = None) -> _Found | None:
        """Where the far texts are cut, if most of them can be: those that are not far are read as a whole.

        Args:
            near: what another unit has found.
        """
        lengths = np.array([cut.length(text) for text in self.texts])
        read = max(1, int(lengths[~self.far].max(initial=1)))
        beyond = np.flatnonzero(self.far & (lengths > read))
        if 2 * len(beyond) < self.far.sum():
            return None
        beyond = beyond[np.argsort(lengths[beyond], kind="stable")]
        for at in beyond:
            low, high = read, int(lengths[at])
            longer = [place for place in beyond if lengths[place] >= LONGER * high]
            place = int(longer[0] if longer else beyond[-1])
            if near is not None:
                place = near.place
                expected = near.share * lengths[place]
                low = max(low, int(expected * (1 - AROUND)) - 2)
                high = min(int(lengths[place]), int(expected * (1 + AROUND)) + 2)
                if low > high:
                    return None
            distances = _CutDistances(self, cut.reading, place)
            number, distance = _nearest(low, high, distances)
            # Texts that are read as a whole say no more than that the limit is beyond them.
            if number < lengths[at] or near is not None:
                (uncut,) = distances([int(lengths[place])])
                share = number / int(lengths[place])
                return _Found(number, place, share, distance, distance <= NEAR * uncut)
            read = number
        return None


@dataclass(frozen=True)
class _CutDistances:
    """1 − cosine of one text's vector, cut at some lengths, to the wanted one."""

    search: _Search
    cut: Callable[[int], Reading]
    place: int

    def __call__(self, numbers: Sequence[int]) -> np.ndarray:
        search = self.search
        maker, making = search.maker, search.making
        readings = [self.cut(number) for number in numbers]
        windows = [one.windows([search.texts[self.place]]) for one in readings]
        maker.pool(zip(readings, windows, strict=True))
        goal = search.wanted[self.place : self.place + 1]
        found = np.full(len(numbers), 2.0)
        for row, (one, window) in enumerate(zip(readings, windows, strict=True)):
            makings = (making, replace(making, by_length=True)) if one.averages else (making,)
            for way in makings:
                made = maker.vectors(one, way, window)
                if made is not None:
                    distance = apart(search.form.write(made[:, : maker.dimension], goal), goal)[0]
                    found[row] = min(found[row], np.nan_to_num(distance, nan=2.0))
        return found


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


def _families(reading: Reading) -> Iterator[tuple[Cut, Callable[[], Iterator[Cut]]]]:
    """Ways to cut that come near each other: by the checkpoint's own tokens, and those in other units."""
    uncut = without_limit(reading)
    checkpoint = uncut.checkpoint
    whole = with_limit(uncut, NO_LIMIT, "right")
    positions = position_limit(checkpoint.model) or NO_LIMIT
    may_cut = sum(aspect == "text" for aspect, _ in uncut.differs) < 2
    is_cut = any(aspect == "pieces" for aspect, _ in uncut.differs)

    def every_token(text: str) -> int:
        return sum(len(window.ids) for window in whole.windows([text])[0])

    def tokens(side: Side) -> Cut:
        length = every_token if side == "windows" else lambda text: min(every_token(text), positions)
        return Cut(length, lambda number: with_limit(uncut, number, side))

    def first() -> Iterator[Cut]:
        yield tokens("all")
        if may_cut and not is_cut:
            # Token ids are cut as the checkpoint's own.
            for unit in (one for one in _units(uncut) if not one.gives_ids):
                yield _counted(uncut, unit, lambda number, unit=unit: cut_after(uncut, unit, number))

    def pieces(only_last: bool) -> Iterator[Cut]:
        if not is_cut:
            for unit in _units(uncut):
                yield _counted(
                    uncut,
                    unit,
                    lambda number, unit=unit: in_pieces(uncut, Pieces(unit, number, only_last=only_last)),
                )

    yield tokens("right"), first
    yield tokens("left"), lambda: pieces(only_last=True)
    yield tokens("windows"), lambda: pieces(only_last=False)


def _counted(reading: Reading, unit: Unit, cut: Callable[[int], Reading]) -> Cut:
    return Cut(lambda text: len(unit.split(reading.sent(text))), cut)


def _units(reading: Reading) -> Iterator[Unit]:
    """What the client may count in; where it sends ids, these."""
    if reading.pieces.unit.gives_ids:
        yield reading.pieces.unit
        return
    yield from (CHARACTERS, WORDS)
    yield from (text_unit(name) for name in usable())
