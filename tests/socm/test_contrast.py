"""Listed pairs against random pairs of the same texts: who meets whom, and the paired interval by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_clouds import by_definition, clouds_from, random_texts

from embaudit.measures.socm.lengths import DISTANCES, contrasts, strangers


@given(queries=st.lists(st.integers(0, 8), max_size=40))
def test_every_pair_meets_a_stranger_and_every_passage_is_met_once(queries: list[int]) -> None:
    partner = strangers(queries)
    most = max((queries.count(one) for one in queries), default=0)
    if partner is None:
        assert 2 * most > len(queries) or not queries
        return
    assert sorted(partner) == list(range(len(queries)))
    assert all(queries[place] != queries[other] for place, other in enumerate(partner))


def test_differences_are_of_means_and_leave_out_queries() -> None:
    texts = random_texts(3, 17, 6)
    clouds = {cloud.position: cloud for cloud in clouds_from(texts)}
    first, second = [0, 1, 1, 2, 3, 4, 4, 3, 2, 0], list(range(5, 15))
    partner = strangers(first)
    assert partner is not None
    listed = np.array([by_definition(texts[i], texts[j]) for i, j in zip(first, second, strict=True)])
    random = np.array([by_definition(texts[i], texts[second[p]]) for i, p in zip(first, partner, strict=True)])
    found = {one.distance: one for one in contrasts(clouds, first, second, partner)}
    assert tuple(found) == DISTANCES
    for name, column in (("d_mu", 0), ("d_sigma", 1), ("socm", 2)):
        one, change = found[name], listed[:, column] - random[:, column]
        assert (one.pairs, one.queries) == (10, 5)
        assert one.listed_mean == pytest.approx(listed[:, column].mean(), abs=1e-6)
        assert one.difference == pytest.approx(change.mean(), abs=1e-6)
        without = np.array([change[np.array(first) != query].mean() for query in range(5)])
        error = np.sqrt(4 / 5 * np.square(without - without.mean()).sum())
        assert one.difference_high == pytest.approx(change.mean() + 1.96 * error, abs=1e-6)
        assert one.difference_low == pytest.approx(change.mean() - 1.96 * error, abs=1e-6)


def test_passages_that_answer_their_own_query_are_nearer() -> None:
    """Each passage is its query's cloud, moved a little."""
    queries = random_texts(4, 12, 8, longest=6, offset=0.8)
    texts = [*queries, *(X + 0.01 for X in queries)]
    clouds = {cloud.position: cloud for cloud in clouds_from(texts)}
    first, second = list(range(12)), list(range(12, 24))
    partner = strangers(first)
    assert partner is not None
    by_name = {one.distance: one for one in contrasts(clouds, first, second, partner)}
    for name in ("d_mu", "d_sigma"):
        assert by_name[name].difference_high is not None
        assert by_name[name].difference_high < 0


def test_a_list_of_one_query_has_no_strangers() -> None:
    assert strangers([]) is None
    assert strangers([1]) is None
    assert strangers([1, 1, 2]) is None
    assert strangers([1, 2]) == [1, 0]
