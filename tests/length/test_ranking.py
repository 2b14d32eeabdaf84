"""Queries against short and long documents: by loops over queries, documents and ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from embaudit.measures.length.bias import outranked


@given(seed=st.integers(0, 50), size=st.integers(4, 12), count=st.integers(1, 6))
def test_shares_are_counted(seed: int, size: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    # Of few directions, so that there are ties.
    documents = np.eye(3)[generator.integers(0, 3, size)] * generator.uniform(0.5, 2, (size, 1))
    queries = np.eye(3)[generator.integers(0, 3, count)]
    relevant = [{int(place): 1.0 for place in generator.choice(size, 2, replace=False)} for _ in range(count)]
    is_long = generator.random(size) < 0.5
    # A document that is the query itself neither answers it nor competes with what does.
    itself = [frozenset({int(generator.integers(size))}) - one.keys() for one in relevant]
    expected: dict[str, list[tuple[float, float]]] = {"short": [], "long": []}
    for query, own, left_out in zip(queries, relevant, itself, strict=True):
        for place in own:
            outranking: dict[bool, list[float]] = {False: [], True: []}
            for other in range(size):
                if other not in own and other not in left_out:
                    cosine, bar = (query @ documents[i] / np.linalg.norm(documents[i]) for i in (other, place))
                    outranking[bool(is_long[other])].append(1.0 if cosine > bar else 0.5 if cosine == bar else 0.0)
            if outranking[False] and outranking[True]:
                shares = (float(np.mean(outranking[False])), float(np.mean(outranking[True])))
                expected["long" if is_long[place] else "short"].append(shares)
    found = {one.relevant: one for one in outranked(documents, queries, relevant, is_long, 0, itself)}
    assert set(found) == {name for name, shares in expected.items() if shares}
    for name, one in found.items():
        by_short, by_long = np.mean(expected[name], axis=0)
        assert (one.pairs, one.low, one.high) == (len(expected[name]), None, None)
        assert (one.by_short, one.by_long, one.difference) == pytest.approx((by_short, by_long, by_short - by_long))


def test_short_noise_that_outranks_is_found_and_no_length_effect_is_not() -> None:
    generator = np.random.default_rng(0)
    documents = generator.normal(size=(400, 16))
    queries = documents[:40] + generator.normal(scale=1.5, size=(40, 16))
    relevant = [{place: 1.0} for place in range(40)]
    is_long = np.arange(400) % 2 == 0
    (long, short) = sorted(outranked(documents, queries, relevant, is_long, seed=1), key=lambda one: one.relevant)
    assert (long.pairs, long.units, short.pairs, short.units) == (20, 20, 20, 20)
    for one in (long, short):
        assert one.low is not None
        assert one.low < 0 < one.high  # type: ignore[operator]
    # A direction that all queries have, and of the documents only the short ones.
    shared = np.eye(16)[0] * 6
    documents[~is_long] += shared
    (long, short) = sorted(
        outranked(documents, queries + shared, relevant, is_long, seed=1), key=lambda one: one.relevant
    )
    assert long.low is not None
    assert long.low > 0.5


def test_queries_that_share_a_document_are_one_unit() -> None:
    generator = np.random.default_rng(0)
    documents, queries = generator.normal(size=(20, 4)), generator.normal(size=(12, 4))
    (one,) = outranked(documents, queries, [{0: 1.0}] * 12, np.arange(20) % 2 == 1, seed=0)
    assert (one.pairs, one.units, one.low) == (12, 1, None)
