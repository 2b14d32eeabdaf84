"""Where long texts are cut, told from the vector of one: any number of tokens, characters or words.

``readings`` tries the limits that servers usually have. This closes in on any other: the vector of a long text that is
read to a wrong length comes nearer to the wanted one the nearer that length is. That goes for whatever is counted: what
is read up to a number of characters is nearly what is read up to some number of tokens. So the checkpoint's own tokens
are tried first, and other units only if these come near, and around there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.tokenizer import NO_LIMIT, position_limit
from embaudit.questions.parity.compare import EXACT, apart
from embaudit.questions.parity.foreign import CHARACTERS, WORDS, CutPieces, Unit, text_unit, usable
from embaudit.questions.parity.readings import Reading, Side, Windows, cut_after, in_pieces, with_limit
from embaudit.questions.parity.requested import Form
from embaudit.questions.parity.vectors import Maker, PoolingVariant

# Lengths that are tried at once, evenly spread over what is left; and around how many of the best it is gone on.
POINTS, KEPT = 33, 3
# Windows share at most half; how often size and overlap are looked for, each with the other.
MOST_OVERLAP, TURNS = 2, 3
# Own tokens come near a cut in another unit if they leave at most this share of what no cut leaves, and of several ways
# to cut, those that leave at most so many times as much as the best. Where a few lengths all leave more than the last,
# none between them is tried.
NEAR, CLOSE, PROMISING = 0.5, 2, 0.7
# Where more texts than this share are far off, it is not that long ones are cut.
FAR_AT_MOST = 0.5
# A cut shows well in texts so many times as long as the first that is cut, if they are at least this share as far off
# as the farthest. That first one is cut near its end, so that these are not cut into more windows than so many.
LONGER, LONGEST, SHOWS, MOST_WINDOWS = 1.5, 5.0, 0.5, 8
# Nobody cuts to less.
SHORTEST = 4


@dataclass(frozen=True)
class CutWay:
    """A way to cut texts: how long a text is, the reading that cuts at so many, and the side, of own tokens."""

    length: Callable[[str], int]
    reading: Callable[[int], Reading]
    side: Side | None = None


@dataclass(frozen=True)
class _FoundCut:
    """The number at which a way to cut comes nearest to one text's vector.

    Attributes:
        place: of the text.
        left: what it leaves, of what no cut leaves.
    """

    number: int
    place: int
    left: float


def likely_cuts(
    maker: Maker,
    reading: Reading,
    making: PoolingVariant,
    texts: Sequence[str],
    wanted: np.ndarray,
    distances: np.ndarray,
    form: Form,
) -> Iterator[Reading]:
    """Readings that cut where the longest text that is far off would have to be cut.

    Args:
        reading, making: that give the wanted vectors of other texts; nothing is cut but at the declared limit.
        wanted: (n, D) the other's vectors.
        distances: (n,) 1 − cosine of the texts' vectors so made and the wanted ones.
    """
    far = distances > EXACT
    if far.mean() > FAR_AT_MOST or not far.any():
        return
    is_whole = np.isfinite(distances) & [_tokens(reading, text) <= reading.limit for text in texts]
    search = _Search(maker, making, form, texts, wanted, distances, is_whole)
    found = []
    for own, others in _families(reading):
        if any(search.may_be(cut) for cut in (own, *others())):
            first = search.of_own(own)
            yield own.reading(first.number)
            if search.explains(own.reading(first.number)):
                return
            found.append((first, own, others))
    found.sort(key=lambda one: one[0].left)
    for first, own, others in found:
        # What is read up to somewhere costs least to look for.
        if own.side != "right" and first.left > min(NEAR, CLOSE * found[0][0].left):
            continue
        for cut in others():
            number = search.beside(cut, first.place)
            if number is not None:
                yield cut.reading(number)
                if search.explains(cut.reading(number)):
                    return
    if found and found[0][1].side == "windows" and found[0][0].left <= NEAR and _may_be_cut(reading):
        for unit in (_own(reading.checkpoint), *_units(reading)):
            for one in search.overlapping(unit, reading, found[0][0].place):
                yield one
                if search.explains(one):
                    return


@dataclass(frozen=True)
class _Search:
    """Closes in on the number at which texts are cut.

    Attributes:
        is_whole: (n,) whether a text is within the declared limit: beyond it, a cut by the client does not show.
    """

    maker: Maker
    making: PoolingVariant
    form: Form
    texts: Sequence[str]
    wanted: np.ndarray
    distances: np.ndarray
    is_whole: np.ndarray

    @property
    def far(self) -> np.ndarray:
        return np.asarray(self.distances > EXACT)

    def of_own(self, cut: CutWay) -> _FoundCut:
        """Where one of the far texts would be cut: one that is cut well before its end."""
        lengths = np.array([cut.length(text) for text in self.texts])
        places = np.flatnonzero(self.far & (2 * lengths >= np.median(lengths[self.far])))
        places = places[np.argsort(lengths[places], kind="stable")]
        much = lengths[places] / lengths[places[0]]
        longer = places[(much >= LONGER) & (much <= LONGEST)]
        # Where the cut shows, a shorter text costs less.
        shows = longer[self.distances[longer] >= SHOWS * self.distances[longer].max(initial=0)]
        place = int(shows[0] if len(shows) else places[-1])
        low = max(SHORTEST, int(lengths[place]) // MOST_WINDOWS)
        # The first that is cut is longer than the cut; in other units somewhat shorter, perhaps.
        high = max(low, int(min(lengths[place], LONGER * lengths[places[0]])))
        whole = float(self.distances[place])
        distances = _CutDistances(self, cut.reading, place)
        number, distance = _nearest(low, high, distances, worth=PROMISING * whole)
        return _FoundCut(number, place, distance / whole)

    def may_be(self, cut: CutWay) -> bool:
        """Whether most texts that are far off are longer than all that are read whole."""
        return self._first_longer(cut)[1] is not None

    def beside(self, cut: CutWay, place: int) -> int | None:
        """Where the same text would be cut in other units: beyond what is read whole, within the first that is not.

        None if most texts that are far off are no longer than those that are read whole.
        """
        read, first = self._first_longer(cut)
        if first is None:
            return None
        high = cut.length(self.texts[first])
        worth = PROMISING * float(self.distances[place])
        return _nearest(read, high, _CutDistances(self, cut.reading, place), worth)[0]

    def overlapping(self, unit: Unit, reading: Reading, place: int) -> Iterator[Reading]:
        """Windows that overlap: where the first one ends, and where the second one starts.

        Most clients begin a window wherever there is text left: then texts up to the second one's start are read whole,
        and of the next longer one only that start matters. Others stop once a window reaches the end.
        """
        cut = _counted(reading, unit, lambda number: reading)
        read, first = self._first_longer(cut)
        if first is None:
            return
        low, high = max(read, SHORTEST), max(cut.length(self.texts[first]), SHORTEST + 1)

        def windows(size: int, start: int, runs_on: bool = False) -> Reading:
            return in_pieces(reading, CutPieces(unit, size, size - start, runs_on))

        def nearest(low: int, high: int, windows: Callable[[int], Reading], shown: int) -> tuple[int, float]:
            return _nearest(low, high, _CutDistances(self, windows, shown))

        start, _ = nearest(low, high - 1, lambda start: windows(high, start, True), first)
        size, _ = nearest(start + 1, MOST_OVERLAP * start, lambda size: windows(size, start, True), place)
        yield windows(size, start, True)
        start = low - 1
        for _ in range(TURNS):
            size, left = nearest(max(low, start + 1), high, partial(windows, start=start), first)
            if left <= EXACT:
                break
            least = -(-size // MOST_OVERLAP)
            start, _ = nearest(least, size - 1, partial(windows, size), first)
        yield windows(size, start)

    def _first_longer(self, cut: CutWay) -> tuple[int, int | None]:
        """How much is read whole, and the shortest text that is longer and far off; None if most of those are not."""
        lengths = np.array([cut.length(text) for text in self.texts])
        read = int(lengths[~self.far & self.is_whole].max(initial=1))
        longer = np.flatnonzero(self.far & (lengths > read))
        if 2 * len(longer) < self.far.sum():
            return read, None
        return read, int(longer[lengths[longer].argmin()])

    def explains(self, reading: Reading) -> bool:
        """Whether a reading gives the vectors of all texts."""
        windows = reading.windows(self.texts)
        # Nearly all fail on the one that shows most.
        farthest = int(np.nan_to_num(self.distances).argmax())
        return all(self._gives(reading, windows, places) for places in ([farthest], range(len(windows))))

    def _gives(self, reading: Reading, windows: Sequence[Windows], places: Sequence[int]) -> bool:
        some, wanted = [windows[place] for place in places], self.wanted[list(places)]
        self.maker.pool([(reading, some)])
        return any(
            bool((apart(self.form.write(made[:, : self.maker.dimension], wanted), wanted) <= EXACT).all())
            for making in _makings(self.making, reading)
            if (made := self.maker.vectors(reading, making, some)) is not None
        )


def _makings(making: PoolingVariant, reading: Reading) -> tuple[PoolingVariant, ...]:
    """The making, and what else may be done to the vectors of windows."""
    return (making, replace(making, by_length=True)) if reading.averages else (making,)


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
            for way in _makings(making, one):
                made = maker.vectors(one, way, window)
                if made is not None:
                    distance = apart(search.form.write(made[:, : maker.dimension], goal), goal)[0]
                    found[row] = min(found[row], np.nan_to_num(distance, nan=2.0))
        return found


def _nearest(
    low: int, high: int, distances: Callable[[Sequence[int]], np.ndarray], worth: float = np.inf
) -> tuple[int, float]:
    """The number in [low, high] whose distance is smallest, and that: closed in on around the best so far.

    Args:
        worth: of what is more than this, the best so far is given.
    """
    known: dict[int, float] = {}
    spans = [(low, high)]
    while True:
        points = np.concatenate([np.linspace(*span, POINTS).astype(int) for span in spans])
        new = sorted({int(point) for point in points} - known.keys())
        known |= dict(zip(new, distances(new).tolist(), strict=True)) if new else {}
        best = min(known, key=lambda number: known[number])
        if not new or known[best] <= EXACT or known[best] > worth:
            return best, known[best]
        tried = sorted(known)
        nearest = sorted(range(len(tried)), key=lambda place: known[tried[place]])[:KEPT]
        spans = [(tried[max(place - 1, 0)], tried[min(place + 1, len(tried) - 1)]) for place in nearest]


def _may_be_cut(reading: Reading) -> bool:
    """Whether its client does not cut texts into pieces yet."""
    return all(aspect != "pieces" for aspect, _ in reading.differs)


def _own(checkpoint: Checkpoint) -> Unit:
    """The checkpoint's own tokens, counted by a client."""
    return Unit("own tokens", lambda text: checkpoint.prompted_ids([text])[0], tuple, gives_ids=True)


def _tokens(reading: Reading, text: str) -> int:
    """A text's tokens, if nothing were cut."""
    return sum(len(window.ids) for window in with_limit(reading, NO_LIMIT, "right").windows([text])[0])


def _families(reading: Reading) -> Iterator[tuple[CutWay, Callable[[], Iterator[CutWay]]]]:
    """Ways to cut that come near each other: by the checkpoint's own tokens, and those in other units."""
    positions = position_limit(reading.checkpoint.model) or NO_LIMIT

    def tokens(side: Side) -> CutWay:
        most = NO_LIMIT if side == "windows" else positions
        return CutWay(
            lambda text: min(_tokens(reading, text), most), lambda number: with_limit(reading, number, side), side
        )

    def first() -> Iterator[CutWay]:
        yield tokens("all")
        # Token ids are cut as the checkpoint's own.
        if _may_be_cut(reading) and reading.pieces.unit == CHARACTERS:
            for unit in _units(reading):
                yield _counted(reading, unit, partial(cut_after, reading, unit))

    def pieces(only_last: bool) -> Iterator[CutWay]:
        def windows(unit: Unit, number: int) -> Reading:
            return in_pieces(reading, CutPieces(unit, number, only_last=only_last))

        if _may_be_cut(reading):
            for unit in _units(reading):
                yield _counted(reading, unit, partial(windows, unit))

    yield tokens("right"), first
    yield tokens("left"), lambda: pieces(only_last=True)
    yield tokens("windows"), lambda: pieces(only_last=False)


def _counted(reading: Reading, unit: Unit, cut: Callable[[int], Reading]) -> CutWay:
    return CutWay(lambda text: len(unit.split(reading.sent(text))), cut)


def _units(reading: Reading) -> Iterator[Unit]:
    """What the client may count in; where it sends ids, these."""
    if reading.pieces.unit != CHARACTERS:
        yield reading.pieces.unit
        return
    yield from (CHARACTERS, WORDS)
    yield from (text_unit(name) for name in usable())
