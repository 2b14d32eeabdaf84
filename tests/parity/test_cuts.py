"""Wherever a server cuts long texts, and whatever it counts in, that place is found from their vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import ENGLISH

from embaudit.checkpoint import Checkpoint
from embaudit.questions.parity import cuts
from embaudit.questions.parity.compare import apart
from embaudit.questions.parity.cuts import likely_cuts
from embaudit.questions.parity.foreign import CHARACTERS, WORDS, CutPieces
from embaudit.questions.parity.readings import Reading, Windows, cut_after, declared, in_pieces, with_limit
from embaudit.questions.parity.requested import FRACTIONS
from embaudit.questions.parity.vectors import Maker, PoolingVariant


class BagOfTokens(Maker):
    """The mean of random vectors of a text's tokens: in place of a network, which would take seconds."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint, 48)
        self.table = np.random.default_rng(0).normal(size=(checkpoint.vocabulary_size, 48))
        self.most = 0

    def pool(self, asked: Iterable[tuple[Reading, Sequence[Windows]]]) -> None:
        self.most = max([self.most, *(len(some) for _, windows in asked for some in windows)])

    def vectors(self, reading: Reading, making: PoolingVariant, windows: Sequence[Windows]) -> np.ndarray:
        found = []
        for some in windows:
            weights = [one.weight if making.by_length else 1 for one in some]
            found.append(np.average([self.table[list(one.ids)].mean(axis=0) for one in some], axis=0, weights=weights))
        return np.array(found)


def texts_of(words: Sequence[int]) -> list[str]:
    generator = np.random.default_rng(1)
    # Of one piece or two, so that no word is a token.
    known = [*ENGLISH.split(), *("river" + word for word in ENGLISH.split() if len(word) > 5)]
    return [" ".join(generator.choice(known, count)) + "." for count in words]


# Most are read whole by every way to cut in the table below.
TEXTS = texts_of([*range(1, 21), 24, 29, 38, 43, 52, 61, 70, 81, 95])
MEAN = PoolingVariant()
Cut = Callable[[Reading], Reading]
WAYS: dict[str, Cut] = {
    "on the right": lambda reading: with_limit(reading, 27, "right"),
    "on the left": lambda reading: with_limit(reading, 31, "left"),
    "with the end token": lambda reading: with_limit(reading, 33, "all"),
    "windows of tokens": lambda reading: with_limit(reading, 30, "windows"),
    "after characters": lambda reading: cut_after(reading, CHARACTERS, 131),
    "after words": lambda reading: cut_after(reading, WORDS, 25),
    "windows of characters": lambda reading: in_pieces(reading, CutPieces(CHARACTERS, 137)),
    "windows of words": lambda reading: in_pieces(reading, CutPieces(WORDS, 27)),
    "the last window of characters": lambda reading: in_pieces(reading, CutPieces(CHARACTERS, 139, only_last=True)),
    "the last window of words": lambda reading: in_pieces(reading, CutPieces(WORDS, 26, only_last=True)),
    "windows that overlap": lambda reading: in_pieces(reading, CutPieces(WORDS, 30, 4)),
    "windows that overlap and run on": lambda reading: in_pieces(reading, CutPieces(WORDS, 34, 9, runs_on=True)),
    "characters that overlap": lambda reading: in_pieces(reading, CutPieces(CHARACTERS, 190, 40)),
    "own tokens that overlap": lambda reading: in_pieces(
        reading, CutPieces(cuts._own(reading.checkpoint), 37, 8, runs_on=True)
    ),
}


@pytest.fixture(autouse=True)
def _no_other_vocabularies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuts, "usable", list)


def found_of(checkpoint: Checkpoint, wanted: np.ndarray, texts: Sequence[str] = TEXTS) -> list[Reading]:
    maker, reading = BagOfTokens(checkpoint), declared(checkpoint)
    distances = apart(maker.vectors(reading, MEAN, reading.windows(texts)), wanted)
    found = list(likely_cuts(maker, reading, MEAN, texts, wanted, distances, FRACTIONS))
    # What is tried leaves no text in more windows than are worth it.
    assert maker.most <= cuts.MOST_WINDOWS * cuts.MOST_OVERLAP
    return found


def vectors_of(checkpoint: Checkpoint, reading: Reading, making: PoolingVariant = MEAN) -> np.ndarray:
    return BagOfTokens(checkpoint).vectors(reading, making, reading.windows(TEXTS))


@pytest.mark.parametrize("way", WAYS)
def test_a_cut_is_found_wherever_it_is_and_nothing_is_tried_after_it(served_checkpoint: Checkpoint, way: str) -> None:
    true = WAYS[way](declared(served_checkpoint))
    windows = true.windows(TEXTS)
    *others, last = found_of(served_checkpoint, vectors_of(served_checkpoint, true))
    assert last.windows(TEXTS) == windows, last.said
    assert all(one.windows(TEXTS) != windows for one in others)


@pytest.mark.parametrize("way", ["windows of tokens", "windows of words"])
def test_windows_may_count_by_their_length(served_checkpoint: Checkpoint, way: str) -> None:
    true = WAYS[way](declared(served_checkpoint))
    *_, last = found_of(served_checkpoint, vectors_of(served_checkpoint, true, PoolingVariant(by_length=True)))
    assert last.windows(TEXTS) == true.windows(TEXTS), last.said


def test_what_is_no_cut_of_long_texts_is_not_looked_for(served_checkpoint: Checkpoint) -> None:
    reading = declared(served_checkpoint)
    wanted = vectors_of(served_checkpoint, reading)
    assert found_of(served_checkpoint, wanted) == []
    for others in (np.arange(len(TEXTS)) % 10 != 9, np.arange(len(TEXTS)) < 5):
        # Of most texts, or of short ones.
        wrong = np.where(others[:, None], -wanted, wanted)
        assert found_of(served_checkpoint, wrong) == []


def test_of_long_texts_that_are_otherwise_no_cut_explains_them(served_checkpoint: Checkpoint) -> None:
    wanted = vectors_of(served_checkpoint, declared(served_checkpoint))
    wanted[20:] = np.random.default_rng(2).normal(size=wanted[20:].shape)
    for one in found_of(served_checkpoint, wanted):
        assert (apart(vectors_of(served_checkpoint, one), wanted)[20:] > 0.1).all()


@given(st.integers(0, 50), st.integers(0, 3_000), st.integers(-100, 3_200), st.integers(1, 3))
def test_the_nearest_of_a_range_is_found_at_its_ends_too(low: int, span: int, wanted: int, power: int) -> None:
    asked: list[int] = []

    def distances(numbers: Sequence[int]) -> np.ndarray:
        asked.extend(numbers)
        return np.abs(np.array(numbers) - wanted, dtype=float) ** power

    best = min(range(low, low + span + 1), key=lambda one: abs(one - wanted))
    assert cuts._nearest(low, low + span, distances) == (best, abs(best - wanted) ** power)
    # None is tried twice, and of a range that is too long for all of them, few.
    assert len(asked) == len({*asked}) <= min(span + 1, 200)
    assert {low, low + span} <= {*asked} <= {*range(low, low + span + 1)}


@pytest.mark.parametrize(("worth", "rounds"), [(2.9, 1), (3.0, 2), (np.inf, 2)])
def test_where_a_few_all_leave_too_much_none_between_them_is_tried(worth: float, rounds: int) -> None:
    asked: list[list[int]] = []

    def distances(numbers: Sequence[int]) -> np.ndarray:
        asked.append(list(numbers))
        return 3 + np.abs(np.array(numbers) - 66) / 10

    # Every second number from 2 on, then those between the best of them.
    assert cuts._nearest(2, 66, distances, worth) == (66, 3.0)
    assert asked[0] == [*range(2, 67, 2)]
    assert asked[1:] == [[61, 63, 65]][: rounds - 1]
