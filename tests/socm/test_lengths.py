"""SOCM at equal length: cells and correlations of streamed pairs, against plain loops over all of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_clouds import clouds_from, random_texts, table_of

from embaudit.measures.socm.clouds import TokenCloud
from embaudit.measures.socm.lengths import EDGES, LengthCells, TraceCorrelation, length_correlation
from embaudit.measures.socm.pairs import PairBlock, all_pairs, given_pairs

BINS = tuple(range(len(EDGES)))


def arrays_of(clouds: list[TokenCloud]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([cloud.n for cloud in clouds]), np.array([cloud.trace for cloud in clouds])


def bin_of(n: int) -> int:
    return max(place for place, edge in enumerate(EDGES) if edge <= n)


def exhausted(blocks: Iterator[PairBlock]) -> int:
    return sum(len(block.socm) for block in blocks)


@pytest.fixture(scope="module")
def clouds() -> list[TokenCloud]:
    """Twelve texts of 1 to 40 tokens: three bins."""
    return clouds_from(random_texts(3, 12, 6, longest=40))


def test_cells_are_averages_over_the_pairs_of_two_bins(clouds: list[TokenCloud]) -> None:
    tokens, traces = arrays_of(clouds)
    lengths = LengthCells(tokens, traces)
    assert exhausted(lengths.passing(all_pairs(clouds))) == 66
    table = table_of(clouds)
    bins = {position: bin_of(cloud.n) for position, cloud in enumerate(clouds)}
    expected = {}
    for a, b in combinations_with_replacement(BINS, 2):
        inside = [pair for pair in table if sorted((bins[pair[0]], bins[pair[1]])) == [a, b]]
        if inside:
            expected[EDGES[a], EDGES[b]] = inside
    found = {(cell.shorter, cell.longer): cell for cell in lengths.cells()}
    assert set(found) == set(expected)
    assert len(found) == 6
    assert sum(cell.pairs for cell in found.values()) == 66
    for key, inside in expected.items():
        cell = found[key]
        named = sorted({position for pair in inside for position in pair})
        assert (cell.pairs, cell.texts) == (len(inside), len(named))
        values = np.array([table[pair] for pair in inside])
        assert [cell.d_mu_mean, cell.d_sigma_mean, cell.socm_mean] == pytest.approx(values.mean(0).tolist())
        assert cell.trace_mean == pytest.approx(np.mean([(traces[i] + traces[j]) / 2 for i, j in inside]))
        left = [[table[pair][2] for pair in inside if position not in pair] for position in named]
        if len(named) < 4 or not all(left):
            assert cell.socm_low is None
            continue
        without = np.array([np.mean(values) for values in left])
        error = np.sqrt((len(named) - 1) / len(named) * np.square(without - without.mean()).sum())
        assert (cell.socm_low, cell.socm_high) == pytest.approx(
            (cell.socm_mean - 1.96 * error, cell.socm_mean + 1.96 * error)
        )


def test_texts_of_one_bin_have_one_cell_that_is_the_whole() -> None:
    clouds = clouds_from(random_texts(5, 8, 6))
    lengths = LengthCells(*arrays_of(clouds))
    exhausted(lengths.passing(all_pairs(clouds)))
    (cell,) = lengths.cells()
    assert (cell.shorter, cell.longer, cell.pairs, cell.texts) == (1, 1, 28, 8)
    assert cell.socm_mean == pytest.approx(np.mean([values[2] for values in table_of(clouds).values()]))


def test_cells_of_a_list_leave_out_its_queries(clouds: list[TokenCloud]) -> None:
    by_position = dict(enumerate(clouds))
    first, second = np.repeat(np.arange(5), (2, 3, 2, 4, 3)), np.tile(np.arange(5, 12), 2)
    block = given_pairs(by_position, first, second)
    # One bin, so that the cell is the list.
    lengths = LengthCells(np.full(12, 20), arrays_of(clouds)[1], leave_out_firsts=True)
    exhausted(lengths.passing(iter([block])))
    (cell,) = lengths.cells()
    without = np.array([block.socm[first != query].mean() for query in range(5)])
    error = np.sqrt(4 / 5 * np.square(without - without.mean()).sum())
    assert (cell.texts, cell.pairs) == (12, 14)
    assert cell.socm_high == pytest.approx(block.socm.mean() + 1.96 * error)


@pytest.mark.parametrize("edge", EDGES[1:])
def test_a_bin_begins_at_its_edge(edge: int) -> None:
    block = given_pairs(dict(enumerate(clouds_from(random_texts(1, 2, 4)))), [0], [1])
    lengths = LengthCells(np.array([edge, edge - 1]), np.ones(2))
    exhausted(lengths.passing([block]))
    (cell,) = lengths.cells()
    assert cell.longer == edge
    assert cell.shorter == EDGES[EDGES.index(edge) - 1]


@given(seed=st.integers(0, 10**6), parts=st.integers(1, 9), shift=st.sampled_from([0.0, 1e6]))
@settings(max_examples=40)
def test_the_correlation_is_numpys_whatever_the_blocks(seed: int, parts: int, shift: float) -> None:
    generator = np.random.default_rng(seed)
    traces = generator.random(9) + shift
    first, second = np.array([(i, j) for j in range(9) for i in range(j)]).T
    socm = traces[first] + traces[second] + generator.normal(size=len(first))
    correlation = TraceCorrelation(traces)
    blocks = [
        PairBlock(first[part], second[part], socm[part], socm[part], socm[part])
        for part in np.array_split(np.arange(len(first)), parts)
    ]
    assert exhausted(correlation.passing(blocks)) == 36
    assert correlation.value() == pytest.approx(np.corrcoef(socm, traces[first] + traces[second])[0, 1], abs=1e-6)


def test_what_does_not_vary_has_no_correlation() -> None:
    one = np.array([0, 0, 1])
    two = np.array([1, 2, 2])
    correlation = TraceCorrelation(np.ones(3))
    exhausted(correlation.passing([PairBlock(one, two, np.ones(3), np.ones(3), np.array([0.1, 0.2, 0.3]))]))
    assert correlation.value() is None
    assert TraceCorrelation(np.ones(3)).value() is None
    assert length_correlation(np.array([3, 3, 3]), np.array([1.0, 2.0, 3.0])) is None


def test_the_correlation_with_length_leaves_undefined_texts_out() -> None:
    tokens, traces = np.array([3, 9, 4, 7]), np.array([0.5, np.nan, 1.0, 0.7])
    expected = np.corrcoef([3, 4, 7], [0.5, 1.0, 0.7])[0, 1]
    assert length_correlation(tokens, traces) == pytest.approx(expected)
