"""How would the checkpoint have to be used to give the other's vectors?

A search from the declared reading: first other ways to make vectors of the same states, which cost one pass; then, for
the best readings so far, every alternative in one more respect, at most ``ROUNDS`` deep; last, any other length at
which long texts may be cut. A way counts as better if it brings more texts within ``LEFT``, or clearly lowers the mean
distance; of equals, the one that changes less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from embaudit.checkpoint import Checkpoint
from embaudit.questions.parity.compare import EXACT, HALF, HALF_LENGTH, LEFT, apart, rounds_as_half, spread
from embaudit.questions.parity.cuts import likely_cuts
from embaudit.questions.parity.foreign import untried
from embaudit.questions.parity.readings import Reading, Windows, alternatives, declared, uncut, whole_alternatives
from embaudit.questions.parity.requested import Form, forms_of
from embaudit.questions.parity.vectors import Maker, PoolingVariant

# By kind.
Texts = Mapping[str, Sequence[str]]
Vectors = Mapping[str, np.ndarray]
ROUNDS, WIDTH = 3, 3
# Texts of one kind that the search looks at; all are held against what it finds.
TEXTS_PER_KIND = 3
# A reading is first tried on so few texts that are still far off, short ones: most readings bring none of them nearer.
TRIED_FIRST, TRIED = 2, 8
# 1 − cosine that is as much as texts have that have nothing in common.
FAR_OFF = 0.5
# What changes every text is not looked for where more than this share of them are as they should be.
MATCHED_AT_MOST = 0.25
# Another way must lower the mean distance by this share to be worth a word, or that of some texts by this factor.
CLEARLY, CLEARLY_NEARER = 0.1, 3


@dataclass(frozen=True)
class Explanation:
    """The way to use the checkpoint that comes closest to the other's vectors.

    Attributes:
        differs: what is different from the declared way, each as the end of "it …"; empty if none comes closer.
        left: the largest 1 − cosine that remains, by kind.
        length: how its vectors' lengths differ from the declared ones, as the end of "it …"; empty if they do not.
        leaves: (n,) 1 − cosine that it leaves on other texts and the other's (n, D) vectors of them.
        has_headers: whether texts speak for something before each of them that differs from text to text.
        has_other_ids: whether they speak for another tokenizer.
        untried: what was not looked for, and what to type to have it; empty if it is complete.
    """

    differs: tuple[str, ...]
    left: Mapping[str, float]
    length: str = ""
    leaves: Callable[[Sequence[str], np.ndarray], np.ndarray] | None = field(default=None, compare=False, repr=False)
    untried: str = ""
    has_headers: bool = False
    has_other_ids: bool = False

    @property
    def worst(self) -> float:
        return max((value for value in self.left.values() if np.isfinite(value)), default=float("nan"))

    @property
    def is_complete(self) -> bool:
        """Whether it leaves nothing over, or no more than half precision rounds."""
        return self.worst <= LEFT or self.is_rounded

    @property
    def is_rounded(self) -> bool:
        """Whether what it leaves on every kind of text is what half precision leaves."""
        return self.worst > LEFT and rounds_as_half(np.array(list(self.left.values())))

    @property
    def is_near(self) -> bool:
        """Whether it is worth a word though it leaves something: on most kinds it leaves nothing, or nowhere much."""
        return self.worst < FAR_OFF or 2 * self.kinds_left <= len(self.left)

    @property
    def kinds_left(self) -> int:
        """How many kinds it leaves something on."""
        return sum(value > LEFT for value in self.left.values())

    @property
    def sentences(self) -> tuple[str, ...]:
        return (*self.differs, *((self.length,) if self.length else ()))

    def as_json(self) -> dict[str, object]:
        left = {kind: value if np.isfinite(value) else None for kind, value in self.left.items()}
        return {"differs": list(self.sentences), "left": left, "is_complete": self.is_complete, "untried": self.untried}


@dataclass(frozen=True)
class _Way:
    """One way to use the checkpoint, and how far it is from the other's vectors on the search's texts."""

    reading: Reading
    making: PoolingVariant
    distances: np.ndarray

    @cached_property
    def near(self) -> np.ndarray:
        """(n,) which texts it brings within ``LEFT``."""
        return self.distances <= LEFT

    @cached_property
    def matched(self) -> int:
        return int(np.count_nonzero(self.near))

    @cached_property
    def mean(self) -> float:
        """Mean of the square roots, so that a way that mends some texts is not outweighed by one that is far off.

        What is no more than the last digits is nothing: otherwise two changes that undo each other would come closer.
        """
        return float(_means(self.distances))

    @property
    def changes(self) -> int:
        return len(self.reading.differs) + self.making.changes

    def gains(self, other: _Way) -> int:
        """Texts that it brings within ``LEFT`` and the other does not, and that are clearly nearer so.

        Rounding in half precision lies around ``LEFT``, and moves a text from one side to the other by itself.
        """
        if not self.matched:
            return 0
        is_new = self.near & ~other.near
        return int((is_new & ~(self.distances * CLEARLY_NEARER > other.distances)).sum())

    def beats(self, other: _Way) -> bool:
        """Whether it is worth saying instead of another way."""
        gained, lost = self.gains(other), other.gains(self)
        if gained != lost:
            return gained > lost
        if self.changes > other.changes:
            return self.mean < other.mean * (1 - CLEARLY)
        return self.mean < other.mean * (1 - 1e-6)


def explain(checkpoint: Checkpoint, texts: Texts, theirs: Vectors, rounds: int = ROUNDS) -> Explanation:
    """Search for a way to use the checkpoint that gives the other's vectors.

    Args:
        texts: by kind.
        theirs: the other's (n, D) vectors by kind, each text asked alone; NaN where there is none.
        rounds: how many things may differ in how texts are read; 0 to look at what is made of the same states alone.
    """
    if not any(np.isfinite(rows).all(axis=1).any() for rows in theirs.values()):
        return Explanation((), {})
    found = []
    for form in forms_of(theirs, checkpoint.dimension):
        found.append(_explain(checkpoint, texts, theirs, form, rounds))
        if found[-1].is_complete:
            break
    best = min(found, key=lambda told: (not told.is_complete, told.kinds_left))
    return best if best.is_complete else replace(best, untried=untried())


def _explain(checkpoint: Checkpoint, texts: Texts, given: Vectors, form: Form, rounds: int) -> Explanation:
    """The same, of vectors whose numbers have this form."""
    theirs = {kind: form.read(rows) for kind, rows in given.items()}
    maker = Maker(checkpoint, next(iter(theirs.values())).shape[1])
    chosen, wanted = _chosen(texts, theirs)
    start = declared(checkpoint)
    ways = _best_of_each(maker, [start], chosen, wanted, form)
    for _ in range(rounds):
        best = ways[0]
        if best.matched == len(chosen):
            break
        found = list(ways)
        for way in ways:
            better = _nearer(maker, way, chosen, wanted, form)
            found += _best_of_each(maker, better, chosen, wanted, form)
        found = sorted(found, key=lambda way: (-way.matched, way.mean, way.changes))[:WIDTH]
        if not found[0].beats(best):
            ways = [best]
            break
        ways = found
    # One token more or less of a long text may leave less than counts, and on other texts more.
    if rounds and not (ways[0].distances <= EXACT).all():
        ways = _with_cuts(maker, ways, chosen, wanted, form)
    # Several may be as good on the search's few texts of each kind, and not on all. A lost end token of a long text may
    # move it by less than counts; without rounding, one of them leaves nothing at all.
    equals = [way for way in ways if way.matched == ways[0].matched]
    told = [_told(maker, way, texts, theirs, form) for way in equals]
    return min(told, key=lambda one: (one.kinds_left, not one.worst <= EXACT))


def _with_cuts(maker: Maker, ways: list[_Way], texts: Sequence[str], wanted: np.ndarray, form: Form) -> list[_Way]:
    """The ways, or better ones that cut long texts at a limit that is no usual one."""
    found = list(ways)
    # A usual limit near the true one may have been taken for it.
    starts = {one.differs: one for one in (uncut(way.reading) for way in ways)}
    for way in _best_of_each(maker, list(starts.values()), texts, wanted, form):
        readings = list(likely_cuts(maker, way.reading, way.making, texts, wanted, way.distances, form))
        found += _best_of_each(maker, readings, texts, wanted, form)
    # Of equals, a limit in tokens: it is tried first.
    found = sorted(found, key=lambda way: (-way.matched, round(way.mean, 5), way.changes))[:WIDTH]
    return found if found[0].beats(ways[0]) else ways


def _best_of_each(
    maker: Maker, readings: Sequence[Reading], texts: Sequence[str], wanted: np.ndarray, form: Form
) -> list[_Way]:
    """The best way to make vectors of each reading; the network runs once for all of them."""
    windows = [reading.windows(texts) for reading in readings]
    maker.pool(zip(readings, windows, strict=True))
    return [_best(maker, *read, wanted, form) for read in zip(readings, windows, strict=True)]


def _best(maker: Maker, reading: Reading, windows: Sequence[Windows], wanted: np.ndarray, form: Form) -> _Way:
    """The best way to make vectors of one reading."""
    best: _Way | None = None
    ways = list(maker.makings(reading))
    made = zip(ways, maker.in_each_way(reading, ways, windows), strict=True)
    given = [(way, form.write(rows[:, : maker.dimension], wanted)) for way, rows in made if rows is not None]
    distances = apart(np.array([rows for _, rows in given]), wanted) if given else np.empty((0, 1))
    for (making, _), some, mean in zip(given, distances, map(float, _means(distances)), strict=True):
        # What is no nearer and brings no text within ``LEFT`` beats nothing.
        if best is None or mean < best.mean or (some <= LEFT).any():
            way = _Way(reading, making, some)
            if best is None or way.beats(best):
                best = way
    # A dimension that nothing gives.
    return best or _Way(reading, PoolingVariant(), np.full(len(windows), np.nan))


def _means(distances: np.ndarray) -> np.ndarray:
    """(…) of (…, n) distances, as ``_Way.mean`` says; of a text without one, the largest."""
    known = np.fmin(distances, 2.0)
    return np.asarray(np.sqrt(np.where(known <= EXACT, 0.0, known)).mean(axis=-1))


def _chosen(texts: Texts, theirs: Vectors) -> tuple[list[str], np.ndarray]:
    """A few texts of each kind that have a vector, evenly spread."""
    chosen, rows = [], []
    for kind, some in texts.items():
        places = spread(np.flatnonzero(np.isfinite(theirs[kind]).all(axis=1)), TEXTS_PER_KIND)
        for place in places:
            chosen.append(some[place])
            rows.append(theirs[kind][place])
    return chosen, np.array(rows)


def _nearer(maker: Maker, way: _Way, texts: Sequence[str], wanted: np.ndarray, form: Form) -> list[Reading]:
    """Alternatives that bring texts nearer that are far off: the shortest two, then some more."""
    far = spread(np.flatnonzero(~(way.distances <= LEFT)), TRIED)
    by_length = far[np.argsort([len(texts[place]) for place in far], kind="stable")]
    readings = list(alternatives(way.reading))
    if way.matched <= MATCHED_AT_MOST * len(texts):
        whole = whole_alternatives(way.reading)
        if not way.reading.differs:
            # Many, of which one gives any text's vector; of blank ones clients make something else.
            one = next((place for place in by_length if any(map(str.isalnum, texts[place]))), by_length[0])
            most = max(HALF, CLEARLY * float(way.distances[one]))
            tried = _tried(maker, whole, np.array([one]), texts, wanted, form)
            whole = (each.reading for each in tried if each.distances[0] <= most)
        readings += whole
    for places in (by_length[:TRIED_FIRST], far):
        before = replace(way, distances=way.distances[places])
        tried = _tried(maker, readings, places, texts, wanted, form)
        readings = [each.reading for each in tried if each.beats(before)]
    return readings


def _tried(
    maker: Maker, readings: Iterable[Reading], places: np.ndarray, texts: Sequence[str], wanted: np.ndarray, form: Form
) -> list[_Way]:
    """The best ways of readings on some of the texts."""
    return _best_of_each(maker, list(readings), [texts[place] for place in places], wanted[places], form)


def _told(maker: Maker, best: _Way, texts: Texts, theirs: Vectors, form: Form) -> Explanation:
    """What the best way differs in, and what it leaves on every kind."""
    left: dict[str, float] = {}
    windows = {kind: best.reading.windows(some) for kind, some in texts.items()}
    maker.pool((best.reading, some) for some in windows.values())
    made = {kind: maker.vectors(best.reading, best.making, some) for kind, some in windows.items()}
    for kind, vectors in made.items():
        distances = np.array([np.nan])
        if vectors is not None:
            distances = apart(form.write(vectors[:, : maker.dimension], theirs[kind]), theirs[kind])
        left[kind] = float(np.nanmax(distances)) if np.isfinite(distances).any() else float("nan")
    differs = (*best.reading.said, *best.making.said(maker.kinds, maker.declared_pooling))
    widths = {vectors.shape[1] for vectors in made.values() if vectors is not None}
    if widths and min(widths) > maker.dimension:
        differs = (*differs, f"keeps the first {maker.dimension} of {min(widths)} dimensions")

    def leaves(texts: Sequence[str], vectors: np.ndarray) -> np.ndarray:
        wanted, windows = form.read(vectors), best.reading.windows(texts)
        maker.pool([(best.reading, windows)])
        given = maker.vectors(best.reading, best.making, windows)
        if given is None:
            return np.full(len(texts), np.nan)
        return apart(form.write(given[:, : maker.dimension], wanted), wanted)

    if form.said:
        return Explanation((*differs, form.said), left, leaves=leaves)
    return Explanation(differs, left, _length(maker, best, windows, theirs), leaves)


def _length(maker: Maker, best: _Way, windows: Mapping[str, Sequence[Windows]], theirs: Vectors) -> str:
    """How the lengths of the other's vectors come about; empty if as declared."""
    flat = [some for of_kind in windows.values() for some in of_kind]
    wanted = np.concatenate([np.linalg.norm(rows, axis=1) for rows in theirs.values()])
    several = np.array([len(some) > 1 for some in flat])
    ours = _lengths(maker, best, best.making, flat)
    if several.any() and ours is not None and not _is_same_length(ours, np.ones(len(ours))):
        return _length_of_averages(ours, wanted, several)
    return _length_of_each(maker, best, flat, ours, wanted)


def _length_of_averages(ours: np.ndarray, wanted: np.ndarray, several: np.ndarray) -> str:
    """What is done to averages of windows' vectors, which are shorter than these."""
    alone = ~several
    are_normalised = _is_same_length(np.ones(several.sum()), wanted[several])
    is_unit_alone = not alone.any() or _is_same_length(np.ones(alone.sum()), wanted[alone])
    if alone.any() and not _is_same_length(ours[alone], wanted[alone]):
        return "normalises its vectors" if are_normalised and is_unit_alone else "gives vectors of another length"
    if are_normalised:
        return "" if is_unit_alone else "normalises the averages"
    if _is_same_length(ours[several], wanted[several]):
        return "does not normalise the averages" if is_unit_alone else ""
    return "gives averages of another length"


def _length_of_each(
    maker: Maker, best: _Way, windows: Sequence[Windows], ours: np.ndarray | None, wanted: np.ndarray
) -> str:
    if ours is not None and _is_same_length(ours, wanted):
        return ""
    if _is_same_length(np.ones(len(wanted)), wanted):
        return "normalises its vectors"
    for place, kind in enumerate(maker.kinds):
        if kind == "Normalize" and place not in best.making.skipped:
            without = _lengths(maker, best, replace(best.making, skipped=(*best.making.skipped, place)), windows)
            if without is not None and _is_same_length(without, wanted):
                return "skips Normalize"
    return "gives vectors of another length"


def _lengths(maker: Maker, best: _Way, making: PoolingVariant, windows: Sequence[Windows]) -> np.ndarray | None:
    """(n,) of the vectors of texts; None if this making gives none."""
    rows = maker.vectors(best.reading, making, windows)
    return None if rows is None else np.asarray(np.linalg.norm(rows[:, : maker.dimension], axis=1))


def _is_same_length(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Whether all vectors have the same length, of those that both have."""
    both = np.isfinite(ours) & np.isfinite(theirs) & (ours > 0)
    return bool(both.any()) and bool(np.abs(theirs[both] / ours[both] - 1).max() <= HALF_LENGTH)
