"""The dose curve and the paper's first experiment, against the validation and against single encodes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_points import cosines

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.measures.sticky.evidence.shape import dose_rows, doses_that_fit, similarity_shifts
from embaudit.measures.sticky.insertion import OPERATORS, SentencePair, make_draw, spread_pairs
from embaudit.measures.sticky.points import Points, every_against_every
from embaudit.words.errors import MeasureError, NotMeasurable

pytestmark = pytest.mark.usefixtures("one_thread")

SENTENCES = [
    "the king of the north",
    "gold and iron",
    "a drug test",
    "war ships found in winter",
    "the long river",
    "poem of the moon",
    "state bank of america",
    "two birds and a tree",
    "red and blue paint",
    "snow all night",
    "a red court",
    "music " * 80,
]
DRAWN, ANCHORS = SENTENCES[1::2], SENTENCES[::2]
TOKENS, CONTROLS = np.array([200, 8, 60]), np.array([100, 110, 120, 130])
U = 0.9


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors.astype(np.float64) / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_a_dose_fits_if_a_token_of_the_sentence_is_left(tiny: Checkpoint) -> None:
    assert tiny.content_limit == 62
    assert doses_that_fit(tiny, (1, 16, 61, 62, 100)) == [1, 16, 61]
    assert doses_that_fit(tiny, (62,)) == []


def points_at(encoder: Encoder, u: float = U) -> Callable[[int], Points]:
    return lambda copies: every_against_every(encoder, DRAWN, ANCHORS, u, copies, 3, groups=2)


def test_every_dose_against_single_encodes_at_that_number_of_copies(tiny: Checkpoint) -> None:
    encoder = Encoder(tiny)
    done: list[int] = []
    rows = dose_rows(encoder, points_at(encoder), TOKENS, CONTROLS, (1, 8, 16, 62), done.append)
    every = [*TOKENS.tolist(), *CONTROLS.tolist()]
    assert [(row["copies"], row["token_id"]) for row in rows] == [(n, token) for n in (1, 8, 16) for token in every]
    assert [row["role"] for row in rows[:7]] == ["candidate"] * 3 + ["control"] * 4
    # Six draws, one operator each, against six anchors.
    assert {row["points"] for row in rows} == {36}
    assert sum(done) == 3 * 7 * 6
    anchors = unit(encoder.encode_texts(ANCHORS))
    for start, copies in zip((0, 7, 14), (1, 8, 16), strict=True):
        before, after = [], [[] for _ in every]
        for place, sentence in enumerate(DRAWN):
            draw = make_draw(tiny, sentence, OPERATORS[place % 3], copies, 3)
            before += (unit(encoder.encode_ids([draw.baseline])) @ anchors.T).ravel().tolist()
            for values, token in zip(after, every, strict=True):
                alone = encoder.encode_ids([draw.insert(np.array([token]))[0].tolist()])
                values += (unit(alone) @ anchors.T).ravel().tolist()
        before, after = np.array(before), np.array(after)
        slopes = [float(np.polyfit(before, row, 1)[0]) for row in after]
        ordinary = sorted(slopes[3:])
        for place, row in enumerate(rows[start : start + 7]):
            below = before < U
            rho_t, rho_0 = np.abs(after[place][below] - U).mean(), np.abs(before[below] - U).mean()
            assert row["pull"] == pytest.approx(1 - rho_t / rho_0, abs=1e-5)
            assert row["slope"] == pytest.approx(slopes[place], abs=1e-4)
            assert row["loss"] == pytest.approx(1 - slopes[place] / ((ordinary[1] + ordinary[2]) / 2), abs=1e-3)


def test_more_copies_move_a_sentence_further(tiny: Checkpoint) -> None:
    encoder = Encoder(tiny)
    rows = dose_rows(encoder, points_at(encoder, 2.0), TOKENS, CONTROLS, (1, 4, 16))
    means = [np.mean([row["slope"] for row in rows if row["copies"] == n]) for n in (1, 4, 16)]
    assert all(earlier > later for earlier, later in pairwise(means))


def test_what_cannot_be_dosed_here_is_no_failure_of_the_audit(tiny: Checkpoint) -> None:
    with pytest.raises(NotMeasurable, match="No sentence pair lies below u"):
        dose_rows(Encoder(tiny), points_at(Encoder(tiny), -1.0), TOKENS, CONTROLS, (1,))
    with pytest.raises(NotMeasurable, match="Not even 62 copies fit into 64 tokens"):
        dose_rows(Encoder(tiny), points_at(Encoder(tiny)), TOKENS, CONTROLS, (62, 70))


def test_a_vector_that_is_no_number_is_a_failure_also_here(tiny: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(self: Encoder, ids: object) -> None:
        raise MeasureError("The checkpoint gives NaN or infinity for the token ids 1 2 3.")

    monkeypatch.setattr(Encoder, "encode_dense", damaged)
    with pytest.raises(MeasureError, match="NaN") as caught:
        dose_rows(Encoder(tiny), points_at(Encoder(tiny)), TOKENS, CONTROLS, (1,))
    assert not isinstance(caught.value, NotMeasurable)


REPEATING = [
    SentencePair(SENTENCES[0], SENTENCES[1], 0.0),
    SentencePair(SENTENCES[2], SENTENCES[11], 0.0),
    SentencePair(SENTENCES[3], SENTENCES[1], 0.0),
    SentencePair(SENTENCES[0], SENTENCES[4], 0.0),
]


def test_shifts_against_each_inserted_sentence_alone(tiny: Checkpoint) -> None:
    encoder = Encoder(tiny)
    before, after = similarity_shifts(encoder, REPEATING, TOKENS, 8, 0)
    assert (before.shape, after.shape, after.dtype) == ((4,), (3, 4), np.float64)
    for p, pair in enumerate(REPEATING):
        first = encoder.encode_texts([pair.first])[0].astype(np.float64)
        # The long sentence is cut to leave room for eight copies, before as after.
        content = tiny.content_ids(pair.second, limit=10_000)[: 62 - 8]
        rows = [content, *([*content, *[int(token)] * 8] for token in TOKENS)]
        vectors = [encoder.encode_ids([tiny.with_special_tokens(ids)])[0].astype(np.float64) for ids in rows]
        single = [float(first @ vector / np.linalg.norm(first) / np.linalg.norm(vector)) for vector in vectors]
        assert before[p] == pytest.approx(single[0], abs=1e-6)
        assert after[:, p] == pytest.approx(single[1:], abs=1e-6)
    assert np.abs(after - before).max() > 0.01


def test_a_repeated_second_sentence_is_encoded_once_a_token(tiny: Checkpoint) -> None:
    encoder = Encoder(tiny)
    done: list[int] = []
    similarity_shifts(encoder, REPEATING, TOKENS, 8, 0, done.append)
    # Three firsts and three seconds as they are, and three seconds for each of three tokens.
    assert encoder.texts == 3 + 3 + 3 * 3
    assert sum(done) == 3 * 3


def test_a_shift_depends_on_no_other_pair_or_token(tiny: Checkpoint) -> None:
    before, after = similarity_shifts(Encoder(tiny), REPEATING, TOKENS, 8, 0)
    some_before, some_after = similarity_shifts(Encoder(tiny), REPEATING[2:3], TOKENS[1:2], 8, 7)
    assert some_before[0] == pytest.approx(before[2], abs=1e-6)
    assert some_after[0, 0] == pytest.approx(after[1, 2], abs=1e-6)


@given(
    count=st.integers(2, 40),
    wanted=st.integers(0, 80),
    low=st.floats(-1, 1),
    width=st.floats(0, 1),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=120)
def test_spread_pairs_are_distinct_ascending_and_inside(
    count: int, wanted: int, low: float, width: float, seed: int
) -> None:
    similarity = cosines(count, seed)
    high = low + width
    chosen = spread_pairs(similarity, low, high, wanted, np.random.default_rng(seed))
    inside = [similarity[i, j] for i in range(count) for j in range(i + 1, count) if low <= similarity[i, j] <= high]
    values = [float(similarity[pair]) for pair in chosen]
    assert len(chosen) == min(wanted, len(inside))
    assert len({frozenset(pair) for pair in chosen}) == len(chosen)
    assert all(i != j for i, j in chosen)
    assert values == sorted(values)
    assert all(low <= value <= high for value in values)
    if len(chosen) > 1:
        # The first target is the low end of the range: the least similar pair is the nearest to it.
        assert values[0] == pytest.approx(min(inside))


def test_where_pairs_are_plenty_each_is_the_nearest_to_its_target() -> None:
    similarity = cosines(150, 3)
    every = similarity[np.triu_indices(150, 1)]
    targets = np.linspace(-0.2, 0.7, 25)
    chosen = spread_pairs(similarity, -0.2, 0.7, 25, np.random.default_rng(0))
    inside = every[(every >= -0.2) & (every <= 0.7)]
    assert len(chosen) == 25
    for target, pair in zip(targets, chosen, strict=True):
        assert abs(similarity[pair] - target) == pytest.approx(np.abs(inside - target).min())


def test_the_order_within_a_spread_pair_is_drawn_by_the_generator() -> None:
    similarity = cosines(60, 1)
    one, same, other = (spread_pairs(similarity, -1, 1, 200, np.random.default_rng(seed)) for seed in (0, 0, 1))
    assert one == same
    assert one != other
    assert [frozenset(pair) for pair in one] == [frozenset(pair) for pair in other]
    assert 60 < sum(i < j for i, j in one) < 140
