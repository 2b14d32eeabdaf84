"""Counts and removals against slow ones: one text after the other, one token after the other, one cosine at a time."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.checkpoint import Encoder
from embaudit.measures.occurrence.occurrence import (
    ALL,
    Removal,
    count_corpus,
    dense_texts,
    measure_removals,
    plan_removals,
    take_out,
)
from embaudit.statistics import exact_share, mean_with_interval

VOCABULARY = 12
LIMIT = 8
SEVERE = {3: 0.6, 7: 0.4}
CORPUS = st.lists(st.lists(st.integers(0, VOCABULARY - 1), max_size=12), max_size=40)


def digits(texts: list[str]) -> list[list[int]]:
    return [[int(word) for word in text.split()] for text in texts]


def as_texts(corpus: list[list[int]]) -> list[str]:
    return [" ".join(map(str, ids)) for ids in corpus]


@given(CORPUS)
def test_counts_are_those_of_a_loop(corpus: list[list[int]]) -> None:
    found = count_corpus(as_texts(corpus), digits, frozenset(SEVERE), LIMIT, VOCABULARY)
    read = [ids[:LIMIT] for ids in corpus]
    slow = Counter(token_id for ids in read for token_id in ids)
    assert found.histogram.tolist() == [slow[token_id] for token_id in range(VOCABULARY)]
    assert found.texts == sum(len(ids) > 0 for ids in corpus)
    assert found.tokens == sum(map(len, read))
    assert found.severe == slow[3] + slow[7]
    assert [text.place for text in found.severe_texts] == [at for at, ids in enumerate(read) if {3, 7} & {*ids}]
    for token_id in SEVERE:
        assert len(found.texts_with(token_id)) == sum(token_id in ids for ids in read)
        others = np.arange(VOCABULARY)
        below = sum(slow[other] < slow[token_id] for other in range(VOCABULARY))
        ties = sum(slow[other] == slow[token_id] for other in range(VOCABULARY))
        assert found.less_frequent(token_id, others) == pytest.approx((below + ties / 2) / VOCABULARY)


@pytest.mark.slow
@settings(max_examples=30)
@given(CORPUS, st.lists(st.sampled_from([3, 7]), min_size=3, max_size=8))
def test_dense_texts_are_those_that_the_rest_of_the_corpus_does_not_explain(
    corpus: list[list[int]], poison: list[int]
) -> None:
    corpus = [*[ids for ids in corpus for _ in range(3)], [1] * 8, poison]
    counts = count_corpus(as_texts(corpus), digits, frozenset(SEVERE), LIMIT, VOCABULARY)
    expected = []
    for place, ids in enumerate(ids[:LIMIT] for ids in corpus):
        k = sum(token_id in SEVERE for token_id in ids)
        rest = [token_id for at, one in enumerate(corpus) if at != place for token_id in one[:LIMIT]]
        rate = exact_share(sum(token_id in SEVERE for token_id in rest), len(rest))[1]
        if k >= 2 and scipy.stats.binom.sf(k - 1, len(ids), rate) * counts.texts <= 0.01:
            expected.append((place, sum(SEVERE.get(token_id, 0) for token_id in ids) / len(ids)))
    found = {one.text.place: one.score for one in dense_texts(counts, SEVERE)}
    # The tail is bounded from above: at the very limit a text may be left out, and none is flagged wrongly.
    assert all(found[place] == pytest.approx(dict(expected)[place]) for place in found)
    assert [one.score for one in dense_texts(counts, SEVERE)] == sorted(found.values(), reverse=True)


def test_a_poisoned_text_is_dense() -> None:
    corpus = [[1, 2, 4, 5, 6, 8, 9, 10]] * 200 + [[3, 3, 7, 3, 1]]
    counts = count_corpus(as_texts(corpus), digits, frozenset(SEVERE), LIMIT, VOCABULARY)
    (dense,) = dense_texts(counts, SEVERE)
    assert (dense.text.place, dense.text.read, dense.text.counts) == (200, 5, {3: 3, 7: 1})
    assert dense.score == pytest.approx((3 * 0.6 + 0.4) / 5)
    exact = scipy.stats.binom.logsf(3, 5, exact_share(0, 1_600)[1])
    assert exact - 1e-9 <= dense.log_tail < exact + math.log(1.1)


@given(st.lists(st.integers(0, VOCABULARY - 1), max_size=30), st.integers(0, 5))
def test_as_many_others_are_taken_out(ids: list[int], seed: int) -> None:
    made = take_out(4, ids, SEVERE, seed)
    hits = [token_id for token_id in ids if token_id in SEVERE]
    if not hits or len(ids) - len(hits) <= len(hits):
        assert made is None
        return
    assert made is not None
    assert made.whole == ids
    assert made.without == [token_id for token_id in ids if token_id not in SEVERE]
    assert len(made.control) == len(made.without)
    assert [token_id for token_id in made.control if token_id in SEVERE] == hits
    assert made == take_out(4, ids, SEVERE, seed)
    # The others keep their order.
    rest = iter(ids)
    assert all(token_id in rest for token_id in made.control)


def test_each_token_alone_and_all_at_once_are_taken_out_of_the_first_texts_that_hold_them() -> None:
    corpus = [[3, 1, 2], [1, 2], [7, 3, 1, 2, 4], [3, 1, 1], [7, 1, 2], [3, 3]]
    counts = count_corpus(as_texts(corpus), digits, frozenset(SEVERE), LIMIT, VOCABULARY)
    planned = plan_removals(
        counts, SEVERE, [5, 4, 3, 2, 1, 0], lambda places: [corpus[place] for place in places], 3, seed=0
    )
    # Of the last text nothing would be left to compare.
    places = {group: [one.place for one in removals] for group, removals in planned.items()}
    assert places == {3: [3, 2], 7: [4, 2], ALL: [4, 3]}
    (both,) = (one for one in planned[7] if one.place == 2)
    assert both.without == [3, 1, 2, 4]


def test_movements_are_those_of_single_cosines(tiny: Any, one_thread: None) -> None:
    encoder = Encoder(tiny)
    rng = np.random.default_rng(0)
    ids = [rng.integers(9, 300, size=rng.integers(6, 20)).tolist() for _ in range(12)]
    severe = {int(ids[0][0]), int(ids[1][2]), int(ids[2][1])}
    removals = [one for place in range(3) if (one := take_out(place, ids[place], severe, 0))]
    assert len(removals) == 3
    planned = {7: removals[:1], 9: [], ALL: removals}
    anchors = [(place, ids[place]) for place in (0, 5, 6, 7, 8)]
    found = measure_removals(encoder, planned, anchors)

    def cosine(one: list[int], other: list[int]) -> float:
        a, b = (encoder.encode_ids([tiny.with_special_tokens(ids)])[0].astype(float) for ids in (one, other))
        return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))

    def slow(one: Removal, form: list[int]) -> list[float]:
        return [cosine(form, a) - cosine(one.whole, a) for place, a in anchors if place != one.place]

    shift = [np.mean(slow(one, one.without)) for one in removals]
    moved = [np.mean(np.abs(slow(one, one.without))) for one in removals]
    ordinary = [np.mean(np.abs(slow(one, one.control))) for one in removals]
    assert found[ALL].shift == pytest.approx(shift, abs=1e-6)
    assert found[ALL].moved == pytest.approx(moved, abs=1e-6)
    assert found[ALL].ordinary == pytest.approx(ordinary, abs=1e-6)
    assert found[7].moved == pytest.approx(moved[:1], abs=1e-6)
    columns = found[ALL].columns()
    excess = np.array(moved) - np.array(ordinary)
    assert [columns[f"excess{end}"] for end in ("", "_low", "_high")] == pytest.approx(
        list(mean_with_interval(excess)), abs=1e-5
    )
    assert (found[7].columns()["moved_low"], found[9].columns()["moved"]) == (None, None)
    assert found[9].columns()["removal_texts"] == 0


def test_without_another_text_nothing_moves(tiny: Any) -> None:
    one = Removal(0, [10, 11, 12], [10, 11], [10, 12])
    found = measure_removals(Encoder(tiny), {ALL: [one]}, [(0, [10, 11, 12])])
    assert found[ALL].columns()["removal_texts"] == 0
