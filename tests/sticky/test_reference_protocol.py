"""The ``reference`` protocol: glued texts, scores and values against loops over the formula, golden figures."""

from __future__ import annotations

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_points import cosines

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.measures.sticky.insertion import OPERATORS
from embaudit.measures.sticky.inspect import (
    ReferenceInputs,
    decoded,
    distances,
    insert_text,
    inspect_reference,
    operator_scores,
    pairs_below,
    prepare_reference,
    shortlist,
    sticky_scores,
    validation_values,
)

pytestmark = pytest.mark.usefixtures("one_thread")

# The first pair stands twice, and two pairs share a second sentence, as in the published lists.
PAIRS = [
    ("the river is long", "two ships were found in the north"),
    ("a king and his army", "gold"),
    ("the river is long", "two ships were found in the north"),
    ("snow fell all night", "gold"),
]
TOKENS = ["gold", "##ing", "river", "日", "."]

sentences = st.lists(st.text("abcde", min_size=1, max_size=5), max_size=8)


def test_prefix_and_suffix_are_glued() -> None:
    assert insert_text("a  b", "xy", "prefix", 3, 0) == ["xya  b", "xyxya  b", "xyxyxya  b"]
    assert insert_text("a  b", "xy", "suffix", 3, 0) == ["a  bxy", "a  bxyxy", "a  bxyxyxy"]


@given(words=sentences, copies=st.integers(1, 8), seed=st.integers(0, 100))
@settings(max_examples=80)
def test_random_adds_one_copy_at_a_time_and_moves_no_word(words: list[str], copies: int, seed: int) -> None:
    texts = insert_text(" ".join(words), "X", "random", copies, seed)
    assert len(texts) == copies
    former = list(words)
    for number, text in enumerate(texts, start=1):
        now = text.split(" ")
        assert now.count("X") == number
        assert [word for word in now if word != "X"] == words
        assert former in [now[:place] + now[place + 1 :] for place in range(len(now)) if now[place] == "X"]
        former = now


@given(words=sentences, seed=st.integers(0, 100))
@settings(max_examples=40)
def test_random_places_are_the_same_for_every_token_and_come_again(words: list[str], seed: int) -> None:
    sentence = " ".join(words)
    texts = insert_text(sentence, "X", "random", 8, seed)
    assert [text.replace("Y", "X") for text in insert_text(sentence, "Y", "random", 8, seed)] == texts
    # Between the two another sentence is drawn: no stream of random numbers is shared.
    insert_text("some other sentence", "X", "random", 8, seed)
    assert insert_text(sentence, "X", "random", 8, seed) == texts


def test_places_depend_on_seed_and_sentence() -> None:
    def places(sentence: str, seed: int) -> list[int]:
        last = insert_text(sentence, "X", "random", 8, seed)[-1].split()
        return [place for place, word in enumerate(last) if word == "X"]

    ten, other = "a b c d e f g h i j", "a b c d e f g h i k"
    assert len({tuple(places(ten, seed)) for seed in range(20)}) >= 18
    assert sum(places(ten, seed) != places(other, seed) for seed in range(20)) >= 18
    # Every gap of a sentence can take a copy, its two ends included.
    firsts = {insert_text("a b c", "X", "random", 1, seed)[0] for seed in range(80)}
    assert firsts == {"X a b c", "a X b c", "a b X c", "a b c X"}


def slow_distances(encoder: Encoder, pairs: list[tuple[str, str]], tokens: list[str], seed: int) -> np.ndarray:
    """One text at a time; index 0 of the last axis is d_0."""

    @cache
    def vector(text: str) -> np.ndarray:
        return encoder.encode_texts([text])[0].astype(np.float64)

    def distance(first: str, second: str) -> float:
        a, b = vector(first), vector(second)
        return 1 - float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    found = np.empty((len(tokens), len(pairs), 3, 9))
    for t, token in enumerate(tokens):
        for p, (first, second) in enumerate(pairs):
            for o, operator in enumerate(OPERATORS):
                texts = [second, *insert_text(second, token, operator, 8, seed)]
                found[t, p, o] = [distance(first, text) for text in texts]
    return found


@pytest.fixture(scope="module")
def slow(tiny: Checkpoint) -> np.ndarray:
    return slow_distances(Encoder(tiny), PAIRS, TOKENS, 3)


@pytest.fixture(scope="module")
def measured(tiny: Checkpoint) -> tuple[ReferenceInputs, np.ndarray]:
    inputs = prepare_reference(Encoder(tiny), PAIRS, 8, 3)
    return inputs, distances(Encoder(tiny), inputs, TOKENS)


def test_distances_are_those_of_encoding_each_text_alone(
    slow: np.ndarray, measured: tuple[ReferenceInputs, np.ndarray]
) -> None:
    inputs, after = measured
    assert after.shape == (5, 4, 3, 8)
    assert np.abs(after - slow[..., 1:]).max() <= 1e-5
    assert np.abs(inputs.before - slow[0, :, 0, 0]).max() <= 1e-5
    assert slow.std() > 0.01


def test_a_sentence_that_several_pairs_have_is_encoded_once(tiny: Checkpoint) -> None:
    encoder = Encoder(tiny)
    inputs = prepare_reference(encoder, PAIRS, 8, 3)
    assert inputs.seconds == ("two ships were found in the north", "gold")
    assert inputs.second_of.tolist() == [0, 1, 0, 1]
    encoder.texts = 0
    done: list[int] = []
    distances(encoder, inputs, TOKENS, done.append)
    assert inputs.texts_per_token == 2 * 3 * 8
    assert encoder.texts == sum(done) == 5 * inputs.texts_per_token


def test_steps_of_tokens_do_not_show(
    tiny: Checkpoint, measured: tuple[ReferenceInputs, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, after = measured
    monkeypatch.setattr("embaudit.measures.sticky.inspect.TEXTS_PER_STEP", 100)
    # Two tokens a step on a processor, all five where batches are large.
    assert np.abs(distances(Encoder(tiny, 64), inputs, TOKENS) - after).max() <= 1e-6
    assert np.abs(distances(Encoder(tiny, 4_096), inputs, TOKENS) - after).max() <= 1e-6


def test_operators_can_be_measured_alone(tiny: Checkpoint, measured: tuple[ReferenceInputs, np.ndarray]) -> None:
    inputs, after = measured
    alone = distances(Encoder(tiny), inputs, TOKENS, operators=["random"])
    assert alone.shape == (5, 4, 1, 8)
    assert np.abs(alone[:, :, 0] - after[:, :, 2]).max() <= 1e-6
    of_all = operator_scores(Encoder(tiny), inputs, TOKENS, after)
    assert of_all.shape == (5, 3)
    assert sticky_scores(Encoder(tiny), inputs, TOKENS, after) == pytest.approx(of_all @ [0.35, 0.35, 0.30])
    assert operator_scores(Encoder(tiny), inputs, TOKENS, after[:, :, 2:])[:, 0] == pytest.approx(of_all[:, 2])


def test_only_random_depends_on_the_seed(tiny: Checkpoint, measured: tuple[ReferenceInputs, np.ndarray]) -> None:
    after = measured[1]
    other = distances(Encoder(tiny), prepare_reference(Encoder(tiny), PAIRS, 8, 4), TOKENS)
    assert np.abs(other[:, :, :2] - after[:, :, :2]).max() <= 1e-6
    assert np.abs(other[:, 0, 2] - after[:, 0, 2]).max() > 1e-3


def slow_score(d: np.ndarray, alone: float) -> float:
    """The formula of one (pair, operator), step by step."""
    fall_sum = falls = rise_sum = rises = 0.0
    for earlier, later in pairwise(d):
        step = float(later - earlier)
        if step < 0:
            fall_sum, falls = fall_sum - step, falls + 1
        elif step > 0:
            rise_sum, rises = rise_sum + step, rises + 1
    return (fall_sum + 0.1 * falls + 0.1 * alone) / (rise_sum + 0.05 * rises + 0.01)


def test_scores_against_a_loop_over_the_formula(
    tiny: Checkpoint, measured: tuple[ReferenceInputs, np.ndarray], slow: np.ndarray
) -> None:
    inputs, after = measured
    encoder = Encoder(tiny)
    expected = []
    for t, token in enumerate(TOKENS):
        total = 0.0
        for p, (first, _) in enumerate(PAIRS):
            a, b = (encoder.encode_texts([text])[0].astype(np.float64) for text in (token, first))
            alone = 1 - float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
            # The fast distances: a step of 1e-7 may fall in one and rise in the other.
            paths = [[inputs.before[p], *after[t, p, o]] for o in range(3)]
            prefix, suffix, random = (slow_score(np.array(path), alone) for path in paths)
            total += 0.35 * prefix + 0.35 * suffix + 0.30 * random
        expected.append(total / len(PAIRS))
    assert sticky_scores(encoder, inputs, TOKENS, after) == pytest.approx(expected, rel=1e-5)


def plain_inputs(before: list[float]) -> ReferenceInputs:
    count = len(before)
    return ReferenceInputs(("s",) * count, np.arange(count), np.empty((count, 0)), np.array(before), 8, 0)


def test_values_against_a_loop(measured: tuple[ReferenceInputs, np.ndarray], slow: np.ndarray) -> None:
    values = validation_values(*measured)
    for t in range(len(TOKENS)):
        shares = [
            sum(sum(slow[t, p, o, 1:]) / 8 < slow[t, p, o, 0] for p in range(len(PAIRS))) / len(PAIRS) for o in range(3)
        ]
        assert values[t] == pytest.approx((4 * shares[0] + 4 * shares[1] + 3 * shares[2]) / 11)


def test_values_by_hand() -> None:
    after = np.full((1, 4, 3, 8), 0.6)
    # Prefix: every pair falls. Suffix: one pair of four. Random: a mean that equals d_0 is no fall.
    after[0, :, 0] = 0.4
    after[0, 2, 1] = [0.1, 0.1, 0.1, 0.1, 0.9, 0.9, 0.9, 0.8]
    after[0, :, 2] = 0.5
    assert validation_values(plain_inputs([0.5] * 4), after)[0] == pytest.approx((4 * 1 + 4 * 0.25) / 11)


def test_a_step_from_falling_to_rising_is_worth_points(tiny: Checkpoint) -> None:
    inputs = prepare_reference(Encoder(tiny), PAIRS[:1], 8, 0)
    falling = inputs.before[0] - np.linspace(0.01, 0.08, 8)
    turned = falling.copy()
    turned[-1] = falling[-2] + 1e-9
    after = np.stack([np.tile(falling, (1, 3, 1)), np.tile(turned, (1, 3, 1))])
    all_falls, one_rise = sticky_scores(Encoder(tiny), inputs, ["gold", "gold"], after)
    assert all_falls > 80
    assert one_rise < all_falls / 5


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=300))
@settings(max_examples=40)
def test_the_shortlist_is_at_or_above_the_98th_percentile(scores: list[float]) -> None:
    ordered = sorted(scores)
    place = 0.98 * (len(ordered) - 1)
    low, high = ordered[int(place)], ordered[min(int(place) + 1, len(ordered) - 1)]
    cut = low + (place - int(place)) * (high - low)
    listed = shortlist(np.array(scores))
    assert int(np.argmax(scores)) in listed
    assert all(scores[t] >= cut - 1e-9 for t in listed)
    assert all(scores[t] <= cut + 1e-9 for t in range(len(scores)) if t not in listed)
    assert listed.tolist() == sorted(listed.tolist())


@given(count=st.integers(3, 60), wanted=st.integers(1, 60), u=st.floats(-0.9, 0.9), seed=st.integers(0, 1_000))
@settings(max_examples=60)
def test_the_published_choice_lies_below_u(count: int, wanted: int, u: float, seed: int) -> None:
    similarity = cosines(count, seed)
    chosen = pairs_below(similarity, u, wanted, np.random.default_rng(seed))
    every = similarity[np.triu_indices(count, 1)]
    lowest = every.min()
    if lowest >= u:
        assert chosen == []
        return
    values = [similarity[pair] for pair in chosen]
    high = lowest + 0.8 * (u - lowest)
    assert len(chosen) == min(wanted, int((every <= high).sum()))
    assert values == sorted(values)
    assert values[0] == pytest.approx(lowest)
    assert max(values) <= high + 1e-12 < u
    assert len({frozenset(pair) for pair in chosen}) == len(chosen)


Golden = dict[str, Any]


@pytest.fixture(scope="module")
def golden(shared: Path) -> Golden:
    return json.loads((shared / "golden" / "std_reference_all_minilm_l6_v2.json").read_text("utf-8"))


def published(shared: Path, name: str) -> list[dict[str, str]]:
    return json.loads((shared / "data" / "std" / name).read_text("utf-8"))


def as_pairs(entries: list[dict[str, str]]) -> list[tuple[str, str]]:
    return [(entry["sentence1"], entry["sentence2"]) for entry in entries]


def test_golden_pair_similarities(encoder: Encoder, shared: Path, golden: Golden) -> None:
    entries = [
        *published(shared, "minilm_scoring_pairs_5.json"),
        *published(shared, "minilm_verification_pairs_250.json")[::10],
    ]
    inputs = prepare_reference(encoder, as_pairs(entries))
    expected = [float(entry["similarity"]) for entry in entries]
    assert len(expected) == 30
    assert np.abs(1 - inputs.before - expected).max() <= golden["scoring_pairs"]["similarity_tolerance"]


def random_part(encoder: Encoder, inputs: ReferenceInputs, texts: list[str]) -> np.ndarray:
    """The random operator's distances alone, (T, P, n): a third of what ``distances`` encodes."""
    inserted = [
        one
        for text in texts
        for second in inputs.seconds
        for one in insert_text(second, text, "random", inputs.copies, inputs.seed)
    ]
    vectors = encoder.encode_texts(inserted).reshape(len(texts), len(inputs.seconds), inputs.copies, -1)
    vectors = (vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)).astype(np.float64)[:, inputs.second_of]
    return 1 - np.einsum("tpnd,pd->tpn", vectors, inputs.firsts)


@pytest.mark.slow
@pytest.mark.usefixtures("all_threads")
def test_golden_scores(minilm: Checkpoint, encoder: Encoder, shared: Path, golden: Golden) -> None:
    """The published random third came from one global stream: it is one draw from the distribution over our seeds.

    A pair's random path without a rising step is worth about five points, so that a score moves by multiples of
    five with the seed; between the jumps, and in the other two thirds, the figures agree to half a point.
    """
    pairs = as_pairs(published(shared, "minilm_scoring_pairs_5.json"))
    tokens = golden["sticky_score"]["tokens"]
    expected = np.array([token["score"] for token in tokens])
    texts = [decoded(minilm, token["id"]) for token in tokens]
    after = distances(encoder, prepare_reference(encoder, pairs, 8, 0), texts)
    scores = []
    for seed in range(8):
        inputs = prepare_reference(encoder, pairs, 8, seed)
        if seed:
            after[:, :, 2] = random_part(encoder, inputs, texts)
        scores.append(sticky_scores(encoder, inputs, texts, after))
    ours = np.array(scores)
    assert (ours.min(axis=0) - 1 <= expected).all()
    assert (expected <= ours.max(axis=0) + 1).all()
    # Measured: 0.48 at most, 0.07 in the median.
    assert np.abs(ours - expected).min(axis=0).max() <= 0.6
    # Measured: 0.55; a score of one seed is off by 0.59 in the median.
    assert np.median(np.abs(np.median(ours, axis=0) - expected)) <= 1
    assert np.median(np.abs(ours - expected)) <= 2


@pytest.mark.slow
@pytest.mark.usefixtures("all_threads")
def test_golden_validation_values(encoder: Encoder, shared: Path, golden: Golden) -> None:
    tokens = golden["validation_value"]["tokens"][::13]
    assert len(tokens) == 4
    pairs = as_pairs(published(shared, "minilm_verification_pairs_250.json"))
    vocabulary = [
        {"token_id": token["id"], **dict.fromkeys(("token", "text", "category", "is_reachable", "origin", "script"))}
        for token in tokens
    ]
    found = inspect_reference(encoder, pairs, None, [token["id"] for token in tokens], vocabulary, 8, 0)
    for token, row in zip(tokens, found, strict=True):
        assert (row["id"], row["inserted"], row["score"]) == (token["id"], token["token"], None)
        assert row["value"] == pytest.approx(token["value"], abs=golden["validation_value"]["tolerance"]), token
