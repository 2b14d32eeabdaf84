"""Summaries of pairs: averages, intervals, quantiles, surfaces, and cells by length."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from random_clouds import clouds_from, random_texts, table_of

from embaudit.measures.socm.clouds import TokenCloud
from embaudit.measures.socm.lengths import EDGES, LengthCells, TraceCorrelation, length_correlation
from embaudit.measures.socm.pairs import PairBlock, all_pairs, given_pairs
from embaudit.measures.socm.summary import LEVELS, QUANTILE_ACCURACY, QUANTILES, QuantileSketch, Surface, summarise
from embaudit.words.errors import MeasureError


def test_traces_above_two_are_reported_and_not_clipped() -> None:
    texts = [np.array([[1.0, 8.0], [1.0, -8.0]]), np.array([[1.0, 0.1], [1.0, -0.1]])]
    clouds = clouds_from(texts)
    summary = summarise(np.array([cloud.trace for cloud in clouds]), all_pairs(clouds))
    assert summary.trace_max == pytest.approx(64)
    assert summary.share_trace_above_bound == 0.5
    assert summary.socm_max > 1


def test_summary_equals_the_plain_averages_and_the_jackknife_by_hand() -> None:
    clouds = clouds_from(random_texts(5, 8, 6))
    table = table_of(clouds)
    summary = summarise(np.array([cloud.trace for cloud in clouds]), all_pairs(clouds))
    values = np.array(list(table.values()))
    assert (summary.texts, summary.pairs) == (8, 28)
    assert [summary.d_mu_mean, summary.d_sigma_mean, summary.socm_mean] == pytest.approx(values.mean(0).tolist())
    assert (summary.socm_min, summary.socm_max) == (values[:, 2].min(), values[:, 2].max())
    # Leave one text out, average the rest, and again.
    without = [np.mean([v[2] for pair, v in table.items() if left not in pair]) for left in range(8)]
    error = np.sqrt(7 / 8 * np.square(np.array(without) - np.mean(without)).sum())
    assert summary.socm_low == pytest.approx(summary.socm_mean - 1.96 * error)
    assert summary.socm_high == pytest.approx(summary.socm_mean + 1.96 * error)


def test_the_interval_of_a_list_leaves_out_its_queries_in_turn() -> None:
    """Five queries with two, three or four passages each: pairs of one query are one draw."""
    clouds = {cloud.position: cloud for cloud in clouds_from(random_texts(7, 20, 6))}
    first = np.repeat(np.arange(5), (2, 3, 2, 4, 3))
    second = np.arange(6, 20)
    block = given_pairs(clouds, first, second)
    traces = np.full(20, np.nan)
    for position, cloud in clouds.items():
        traces[position] = cloud.trace
    summary = summarise(traces, [block], resample="firsts")
    without = np.array([block.socm[first != query].mean() for query in range(5)])
    error = np.sqrt(4 / 5 * np.square(without - without.mean()).sum())
    assert summary.socm_low == pytest.approx(block.socm.mean() - 1.96 * error)
    assert summary.socm_high == pytest.approx(block.socm.mean() + 1.96 * error)


def test_too_few_texts_have_no_interval() -> None:
    clouds = clouds_from(random_texts(5, 3, 6))
    summary = summarise(np.array([cloud.trace for cloud in clouds]), all_pairs(clouds))
    assert (summary.socm_low, summary.socm_high) == (None, None)


def test_undefined_texts_are_counted_and_left_out_of_every_average() -> None:
    clouds = clouds_from(random_texts(5, 9, 6))
    kept = [cloud for cloud in clouds if cloud.position not in (0, 8)]
    traces = np.array([np.nan if cloud.position in (0, 8) else cloud.trace for cloud in clouds])
    summary = summarise(traces, all_pairs(kept))
    values = np.array(list(table_of(kept).values()))
    assert (summary.texts, summary.undefined, summary.pairs) == (7, 2, 21)
    assert summary.socm_mean == pytest.approx(values[:, 2].mean())
    assert summary.trace_mean == pytest.approx(np.nanmean(traces))
    # The same texts without the gaps have the same interval.
    closed = clouds_from([cloud.tokens for cloud in kept])
    again = summarise(np.array([cloud.trace for cloud in closed]), all_pairs(closed))
    assert (summary.socm_low, summary.socm_high) == pytest.approx((again.socm_low, again.socm_high))


def test_no_pairs_at_all_is_an_error() -> None:
    with pytest.raises(MeasureError, match="no pair"):
        summarise(np.ones(3), [])


def test_quantiles_of_the_summary_are_those_of_the_pairs() -> None:
    clouds = clouds_from(random_texts(2, 25, 6))
    summary = summarise(np.array([cloud.trace for cloud in clouds]), all_pairs(clouds))
    values = np.array(list(table_of(clouds).values()))[:, 2]
    found = [getattr(summary, name) for name in QUANTILES]
    assert found == pytest.approx(np.quantile(values, np.array(LEVELS) / 100).tolist(), rel=QUANTILE_ACCURACY)


@given(values=arrays(np.float64, st.integers(1, 60), elements=st.floats(0, 1e6)), share=st.floats(0, 1))
@settings(max_examples=200)
def test_the_sketch_is_as_accurate_as_it_says(values: np.ndarray, share: float) -> None:
    sketch = QuantileSketch()
    for part in np.array_split(values, 3):
        sketch.add(part)
    assert sketch.quantile(share) == pytest.approx(np.quantile(values, share), rel=1.01 * QUANTILE_ACCURACY, abs=2e-9)


def test_rounding_below_zero_counts_as_zero_and_no_values_have_no_quantile() -> None:
    sketch = QuantileSketch()
    with pytest.raises(ValueError, match="no values"):
        sketch.quantile(0.5)
    sketch.add(np.array([-1e-17, 0.0, 1e-12, 5.0]))
    assert (sketch.quantile(0), sketch.quantile(0.5)) == (0, 0)
    assert sketch.quantile(1) == pytest.approx(5, rel=QUANTILE_ACCURACY)


def test_the_surface_is_the_mean_of_powers() -> None:
    clouds = clouds_from(random_texts(4, 9, 6))
    surface = Surface((0.0, 0.5, 1.0, 3.0))
    blocks = list(surface.passing(all_pairs(clouds)))
    assert sum(len(block.socm) for block in blocks) == 36
    values = table_of(clouds).values()
    for alpha, beta, mean in surface.means():
        expected = np.mean([(1 - d_mu) ** alpha * max(d_sigma, 0) ** beta for d_mu, d_sigma, _ in values])
        assert mean == pytest.approx(expected)
    means = {(alpha, beta): mean for alpha, beta, mean in surface.means()}
    assert means[0, 0] == 1
    assert means[1, 1] == pytest.approx(np.mean([socm for _, _, socm in values]))


def test_the_surface_takes_rounding_below_zero() -> None:
    surface = Surface((0.5,))
    tiny = np.array([-1e-17])
    one = np.array([0])
    assert list(surface.passing([PairBlock(one, one, 1 - tiny, tiny, tiny)]))
    assert surface.means() == [(0.5, 0.5, 0.0)]


def test_every_pair_of_a_text_counts_for_it_once() -> None:
    """The jackknife over texts of a list that names some texts often, by hand."""
    clouds = {cloud.position: cloud for cloud in clouds_from(random_texts(3, 6, 5))}
    listed = [*combinations(range(5), 2), (5, 0)]
    block = given_pairs(clouds, [i for i, _ in listed], [j for _, j in listed])
    summary = summarise(np.array([clouds[k].trace for k in range(6)]), [block])
    without = np.array(
        [np.mean([v for (i, j), v in zip(listed, block.socm, strict=True) if k not in (i, j)]) for k in range(6)]
    )
    error = np.sqrt(5 / 6 * np.square(without - without.mean()).sum())
    assert summary.socm_high - summary.socm_mean == pytest.approx(1.96 * error)


# ---- by length ----


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
