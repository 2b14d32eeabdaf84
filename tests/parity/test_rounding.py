"""What half precision may do, and what it may not, whatever the processor: by distances worked out by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from benchmarks.serving.server import Served, serving
from embaudit.embedders.endpoint.recognise import open_endpoint
from embaudit.measures.quality.lengths import Declared, length_findings
from embaudit.questions.parity.asking import BatchingCheck, ask_in_a_batch, ask_otherwise
from embaudit.questions.parity.compare import HALF, SAME, KindDifference, compare_kind, is_rounding, rounding_of
from embaudit.questions.parity.explain import Explanation, _Way
from embaudit.questions.parity.findings import finding_of_asking
from embaudit.questions.parity.readings import Reading
from embaudit.questions.parity.vectors import PoolingVariant

Vectors = Callable[[list[str]], np.ndarray]


def difference(kind: str, distances: Sequence[float], ratio: float = 1.0) -> KindDifference:
    count = len(distances)
    known = np.ones(count, dtype=bool)
    return KindDifference(kind, ("x",) * count, np.array(distances), np.full(count, ratio), known, {})


@pytest.mark.parametrize(
    ("kinds", "is_half"),
    [
        ({"plain": [2e-5, 3e-5], "digits": [1e-4], "scripts": [5e-4, 1e-5]}, True),
        # More than half of a kind's texts come out bit for bit.
        ({"plain": [0, 0, 3e-5], "digits": [1e-4], "scripts": [0, 0, 0, 2e-5]}, True),
        # A whole kind as in float32: what moves the others is a defect.
        ({"plain": [0, 0, 1e-14], "digits": [1e-4], "scripts": [2e-5]}, False),
        ({"plain": [1e-13], "digits": [1e-13], "scripts": [1e-3]}, False),
        # One kind a thousand times as far as the others.
        ({"plain": [1e-6], "digits": [1e-6], "scripts": [1e-3]}, False),
        ({"plain": [2e-5], "digits": [5e-3]}, False),
        ({}, False),
    ],
)
def test_rounding_is_everywhere_and_even(kinds: dict[str, list[float]], is_half: bool) -> None:
    assert is_rounding([difference(*one) for one in kinds.items()]) is is_half


@pytest.mark.parametrize(("ratio", "is_half"), [(1.0036, True), (0.9964, True), (1.02, False)])
def test_a_length_that_is_divided_by_in_bfloat16_is_rounded_to_eight_bits(ratio: float, is_half: bool) -> None:
    """Vectors that torch normalises in bfloat16 have lengths from .9963 to 1.0035."""
    assert is_rounding([difference("plain", [2e-5], ratio), difference("digits", [3e-5], ratio)]) is is_half
    vectors = np.eye(8)[:4] * np.array([1.0, ratio, 1.0, 1.0])[:, None] + 1e-3
    (finding,) = length_findings([vectors], [], Declared(is_served=True), {})
    assert finding.level == ("ok" if is_half else "look")


@pytest.mark.parametrize(
    ("alone", "expected"),
    [([1e-13], SAME), ([5e-7], SAME), ([1.4e-5], 1.4e-4), ([1e-3], HALF), ([0.3], HALF), ([], HALF)],
)
def test_what_a_batch_may_move_follows_from_what_rounding_moves_alone(alone: list[float], expected: float) -> None:
    assert rounding_of([difference("plain", alone)] if alone else []) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("batched", "rounding", "level"),
    [
        ([0, 0, 0, 1e-7], SAME, "ok"),
        # A server in half precision, of which most texts come out bit for bit, and one does not.
        ([0, 0, 0, 1.4e-5], 1.4e-4, "look"),
        ([0, 0, 0, 1.4e-5], HALF, "look"),
        # The same of one in float32 is padding that is read.
        ([0, 0, 0, 5e-4], SAME, "problem"),
        # Batches alone in half precision.
        ([2e-5, 3e-5, 2e-4, 1e-5], SAME, "look"),
        ([0, 0, 0, 3e-3], HALF, "problem"),
    ],
)
def test_what_a_batch_does_is_judged_by_the_servers_precision(
    batched: list[float], rounding: float, level: str
) -> None:
    asked = BatchingCheck("in a batch of mixed length", difference("asking", batched), rounding=rounding)
    assert finding_of_asking(asked).level == level


def vector(text: str) -> np.ndarray:
    """Of the text in lower case, as an uncased tokenizer reads it."""
    seed = int.from_bytes(hashlib.blake2b(text.lower().encode(), digest_size=4).digest())
    return np.random.default_rng(seed).normal(size=64)


TEXTS = ["gold", "Gold", "iron and gold", "IRON and gold", "river", "a long day", "snow", "blue paint"]


def alone(texts: list[str]) -> np.ndarray:
    return np.array([vector(text) for text in texts])


def noisy(texts: list[str], size: float = 0.006) -> np.ndarray:
    """Every third text of a batch is rounded otherwise, by 1 − cosine of 2e-5."""
    rows = alone(texts)
    if len(texts) > 1:
        rows[::3] += size * np.random.default_rng(0).normal(size=rows[::3].shape)
    return rows


BATCHES: dict[str, tuple[Vectors, float, str, str]] = {
    "faithful": (alone, SAME, "ok", ""),
    "rounded, most bit for bit, and two texts of one vector": (noisy, HALF, "look", ""),
    "turned around": (lambda texts: alone(texts)[::-1], SAME, "problem", "in another order"),
    "turned around in half precision": (lambda texts: noisy(texts)[::-1], HALF, "problem", "in another order"),
    "sorted by length": (lambda texts: alone(sorted(texts, key=len)), SAME, "problem", "in another order"),
    # Among texts of one vector, no order is another one.
    "two of one vector exchanged": (lambda texts: alone([*texts[1::-1], *texts[2:]]), SAME, "ok", ""),
    "the first for all": (lambda texts: alone(texts[:1] * len(texts)), SAME, "problem", "the vectors of others"),
    "something else": (lambda texts: alone([f"{len(texts)}{text}" for text in texts]), SAME, "problem", ""),
}


@pytest.mark.parametrize("name", BATCHES)
def test_an_order_is_claimed_only_where_no_text_has_its_own_vector(name: str) -> None:
    encode, rounding, level, cause = BATCHES[name]
    batch_only = lambda texts: encode(texts) if len(texts) > 1 else alone(texts)  # noqa: E731
    with serving(Served(batch_only)) as address, open_endpoint(address) as endpoint:
        asked = ask_in_a_batch(endpoint, TEXTS, alone(TEXTS), rounding=rounding)
    assert finding_of_asking(asked).level == level
    assert cause in asked.cause if cause else asked.cause == ""


def test_every_way_to_ask_is_judged_by_the_precision() -> None:
    with serving(Served(noisy)) as address, open_endpoint(address) as endpoint:
        found = list(ask_otherwise(endpoint, None, TEXTS, alone(TEXTS), rounding=1e-3))
    assert {one.rounding for one in found} == {1e-3}
    assert {finding_of_asking(one).level for one in found} == {"ok", "look"}


def test_noise_is_what_the_served_vectors_above_have() -> None:
    held = compare_kind("plain", TEXTS, alone(TEXTS), noisy(TEXTS), {})
    assert (held.median, 1e-5 < held.worst < 1e-4) == (0, True)


def way(*distances: float, changes: int = 0) -> _Way:
    reading = Reading.__new__(Reading)
    object.__setattr__(reading, "differs", ("x",) * changes)
    return _Way(reading, PoolingVariant(), np.array(distances))


@pytest.mark.parametrize(
    ("other", "is_better"),
    [
        # Rounding lies around the limit and moves a text over it: nothing that is worth a word.
        ((0.98e-4, 2e-4, 3e-4), False),
        ((1e-6, 2e-4, 3e-4), True),
        ((1.02e-4, 2e-4, 1e-5), True),
        ((0.9e-4, 2e-2, 3e-4), False),
    ],
)
def test_another_use_must_bring_a_text_clearly_nearer(other: tuple[float, ...], is_better: bool) -> None:
    assert way(*other, changes=1).beats(way(1.02e-4, 2e-4, 3e-4)) is is_better


@pytest.mark.parametrize(
    ("left", "is_complete"),
    [
        ({"plain": 1e-9, "digits": 5e-5}, True),
        # As half precision leaves it.
        ({"plain": 8e-5, "digits": 6e-4}, True),
        ({"plain": 1e-12, "digits": 6e-4}, False),
        ({"plain": 8e-5, "digits": 6e-3}, False),
    ],
)
def test_an_explanation_may_leave_what_half_precision_rounds(left: dict[str, float], is_complete: bool) -> None:
    assert Explanation(("takes cls instead of mean pooling",), left).is_complete is is_complete
