"""Figures of clouds of vectors: against slow definitions, what they are blind to, and clouds whose answer is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import cos, exp, log, pi, sin, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ortho_group, skew
from sklearn.covariance import ledoit_wolf

from embaudit.measures.geometry.figures import occurrences, pair_cosines
from embaudit.measures.geometry.geometry import FIGURES, GROUPS, TOP_DIMENSIONS, Geometry, measure_geometry
from embaudit.measures.length.spans import MeanCosine, mean_cosine, unit_vectors
from embaudit.statistics import NORMAL, student_quantile
from embaudit.words.errors import MeasureError
from embaudit.words.estimate import Estimate

K = 10


def gaussian(N: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(N, d)).astype(np.float32)


def skewed(N: int, d: int, seed: int = 0) -> np.ndarray:
    """Directions of falling variance around a mean that is not 0."""
    return (gaussian(N, d, seed) * np.linspace(2, 0.2, d) + np.linspace(0.8, 0, d)).astype(np.float32)


def values(geometry: Geometry) -> dict[str, float | None]:
    return {name: figure.value for name, figure in geometry.figures.items()}


def number(geometry: Geometry, name: str) -> float:
    value = geometry.figures[name].value
    assert value is not None
    return value


# ---- slow and obvious ----


def by_definition(vectors: np.ndarray, k: int) -> dict[str, float]:
    """Every figure pair by pair and text by text, IsoScore* in the steps of its paper with scikit-learn's shrinkage."""
    X = [[float(x) for x in row] for row in vectors]
    N, d = len(X), len(X[0])
    units = [[x / sqrt(sum(y * y for y in row)) for x in row] for row in X]
    pairs = list(combinations(range(N), 2))

    def cosine(a: int, b: int) -> float:
        return sum(x * y for x, y in zip(units[a], units[b], strict=True))

    mean = sum(cosine(a, b) for a, b in pairs) / len(pairs)
    by_dimension = [sum(units[a][i] * units[b][i] for a, b in pairs) / len(pairs) for i in range(d)]
    apart = [sum((x - y) ** 2 for x, y in zip(units[a], units[b], strict=True)) for a, b in pairs]

    own = np.linalg.svd(vectors - vectors.mean(axis=0, dtype=np.float64), compute_uv=False) ** 2
    singular = np.linalg.svd(vectors.astype(np.float64), compute_uv=False)

    shrunk, _ = ledoit_wolf(vectors.astype(np.float64))
    scaled = np.linalg.eigvalsh(shrunk)
    scaled = sqrt(d) * scaled / np.linalg.norm(scaled)
    defect = np.linalg.norm(scaled - 1) / sqrt(2 * (d - sqrt(d)))
    in_use = (d - defect**2 * (d - sqrt(d))) ** 2 / d**2

    counts = [0] * N
    for a in range(N):
        for b in sorted((b for b in range(N) if b != a), key=lambda b: -cosine(a, b))[:k]:
            counts[b] += 1
    return {
        "mean_cosine": mean,
        "isoscore": (d * in_use - 1) / (d - 1),
        "effective_rank": exp(sum(-p * log(p) for p in own / own.sum() if p > 1e-14)),
        "rankme": exp(sum(-p * log(p) for p in singular / singular.sum() if p > 1e-14)),
        "uniformity": log(sum(exp(-2 * one) for one in apart) / len(apart)),
        **{f"variance_{first}": own[:first].sum() / own.sum() for first in (1, 3, 10)},
        "top_dimension_share": max(by_dimension) / mean,
        "hubness_skewness": float(skew(counts)),
        "anti_hubs": counts.count(0) / N,
    }


# More texts than dimensions, and fewer.
@pytest.mark.parametrize(("N", "d", "k"), [(40, 6, 10), (24, 40, 3)])
def test_figures_are_their_definitions(N: int, d: int, k: int) -> None:
    vectors = skewed(N, d)
    found = measure_geometry(vectors, k)
    assert values(found) == pytest.approx(by_definition(vectors, k), rel=1e-9)
    assert found.shrinkage == pytest.approx(ledoit_wolf(vectors.astype(np.float64))[1], rel=1e-9)


def test_dimensions_contribute_the_mean_cosine() -> None:
    vectors = skewed(40, 6)
    vectors[:, 4] += 9
    found = measure_geometry(vectors, K)
    assert found.top[0].dimension == 4
    assert sum(one.contribution for one in found.top) == pytest.approx(number(found, "mean_cosine"))
    assert sum(one.share or 0.0 for one in found.top) == pytest.approx(1)
    first = found.top[0]
    coordinate = unit_vectors(vectors)[:, 4]
    products = [a * b for a, b in combinations(coordinate, 2)]
    assert first.contribution == pytest.approx(np.mean(products))
    assert (first.mean, first.deviation) == pytest.approx((coordinate.mean(), coordinate.std()))
    assert first.share == number(found, "top_dimension_share") > 0.5
    assert found.dimensions_for_half == 1


def test_half_of_the_cosine_may_take_several_dimensions() -> None:
    vectors = np.ones((30, 20), dtype=np.float32) + 0.01 * gaussian(30, 20)
    found = measure_geometry(vectors, K)
    # Twenty equal ones, up to noise.
    assert found.dimensions_for_half in (10, 11)
    assert len(found.top) == TOP_DIMENSIONS
    shares = [one.share or 0.0 for one in found.top]
    assert shares == sorted(shares, reverse=True)


# ---- what does not matter ----


@settings(max_examples=15)
@given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3))
def test_neither_rotation_nor_scale_matters(seed: int, scale: float) -> None:
    vectors = skewed(30, 5, seed).astype(np.float64)
    rotated = scale * vectors @ ortho_group.rvs(5, random_state=np.random.default_rng(seed))
    before, after = (values(measure_geometry(one, 4)) for one in (vectors, rotated))
    for name in set(FIGURES) - {"top_dimension_share"}:
        assert after[name] == pytest.approx(before[name], rel=1e-6, abs=1e-9), name
    assert values(measure_geometry(scale * vectors, 4)) == pytest.approx(before, rel=1e-6)


@settings(max_examples=15)
@given(seed=st.integers(0, 1000))
def test_the_order_of_texts_matters_to_intervals_alone(seed: int) -> None:
    vectors = skewed(30, 5)
    order = np.random.default_rng(seed).permutation(30)
    before, after = (measure_geometry(one, 4) for one in (vectors, vectors[order]))
    assert values(after) == pytest.approx(values(before), rel=1e-9)


# ---- clouds whose answer is known ----


def test_an_isotropic_cloud() -> None:
    found = measure_geometry(gaussian(1000, 50), K)
    assert number(found, "isoscore") == pytest.approx(1, abs=0.01)
    assert found.shrinkage == pytest.approx(1, abs=0.15)
    assert number(found, "mean_cosine") == pytest.approx(0, abs=0.005)
    assert number(found, "effective_rank") == pytest.approx(50, rel=0.03)
    assert number(found, "rankme") == pytest.approx(50, rel=0.03)
    assert number(found, "variance_10") == pytest.approx(0.2, abs=0.1)
    # E exp(−4(1 − cos)) over the sphere is near exp(−4 + 8/d).
    assert number(found, "uniformity") == pytest.approx(-4 + 8 / 50, abs=0.02)


def test_a_cloud_along_one_direction() -> None:
    direction = unit_vectors(gaussian(1, 50, 3))
    found = measure_geometry(gaussian(1000, 1, 1) * direction, K)
    assert number(found, "isoscore") == pytest.approx(0, abs=1e-3)
    assert number(found, "effective_rank") == pytest.approx(1, abs=1e-6)
    assert number(found, "rankme") == pytest.approx(1, abs=1e-6)
    assert number(found, "variance_1") == number(found, "variance_3") == pytest.approx(1)


@pytest.mark.parametrize("dimensions", [2, 5])
def test_equal_variance_in_some_dimensions_is_so_many_ranks(dimensions: int) -> None:
    vectors = np.zeros((4000, 20), dtype=np.float32)
    vectors[:, :dimensions] = gaussian(4000, dimensions)
    found = measure_geometry(vectors[:1000], K)
    assert number(found, "effective_rank") == pytest.approx(dimensions, rel=0.01)
    # (PR − 1)/(d − 1) with PR as many.
    assert number(found, "isoscore") == pytest.approx((dimensions - 1) / 19, rel=0.02)


def test_orthogonal_texts_are_as_uniform_as_pairs_of_right_angles() -> None:
    found = measure_geometry(np.eye(30, dtype=np.float32), K)
    assert number(found, "uniformity") == pytest.approx(-4)
    assert number(found, "mean_cosine") == pytest.approx(0)
    assert number(found, "rankme") == pytest.approx(30)
    assert number(found, "effective_rank") == pytest.approx(29)


@pytest.mark.parametrize("k", [1, 4, 10])
def test_occurrences_are_those_of_sorted_neighbours(k: int) -> None:
    vectors = gaussian(300, 4)
    sorted_neighbours = np.argsort(-pair_cosines(unit_vectors(vectors)), axis=1)[:, :k]
    expected = np.bincount(sorted_neighbours.ravel(), minlength=300)
    assert occurrences(pair_cosines(unit_vectors(vectors)), k).tolist() == expected.tolist()


def test_a_small_variance_is_measured_and_rounding_is_not() -> None:
    noise = gaussian(200, 8).astype(np.float64)
    assert number(measure_geometry(1 + 1e-5 * noise, K), "variance_10") == pytest.approx(1)
    assert measure_geometry(1 + 1e-8 * noise, K).figures["variance_10"].value is None


def test_one_text_is_near_all_others() -> None:
    """A hub in the middle of texts at right angles to each other, and a ring in which all are alike."""
    N = 40
    star = np.eye(N, dtype=np.float64)
    star[0] = 1
    counts = occurrences(pair_cosines(unit_vectors(star)), 1)
    assert counts[0] == N - 1
    ring = np.array([(cos(2 * pi * i / N), sin(2 * pi * i / N)) for i in range(N)])
    assert occurrences(pair_cosines(unit_vectors(ring)), 2).tolist() == [2] * N
    hub = measure_geometry(np.vstack([star, star[1:]]), 1)
    assert number(hub, "anti_hubs") < number(measure_geometry(star, 1), "anti_hubs")
    assert number(measure_geometry(star, 1), "hubness_skewness") == pytest.approx(skew(counts))
    # Where all are alike nothing is skewed.
    found = measure_geometry(ring, 2)
    assert (found.figures["hubness_skewness"].value, found.figures["anti_hubs"].value) == (None, 0)


# ---- what has no value ----


def test_one_text_has_no_figure() -> None:
    found = measure_geometry(gaussian(1, 8), K)
    assert (found.texts, found.dimension, found.undefined) == (1, 8, list(FIGURES))
    assert (found.shrinkage, found.dimensions_for_half, found.top) == (None, None, [])


def test_few_texts_have_no_hubs_and_no_intervals() -> None:
    assert measure_geometry(skewed(20, 4), K).undefined == ["hubness_skewness", "anti_hubs"]
    found = measure_geometry(skewed(9, 4), K)
    assert all(figure.low is None and figure.high is None for figure in found.figures.values())
    # Without a third of the texts there are too few for hubs.
    hubs = measure_geometry(skewed(21, 4), K).figures["hubness_skewness"]
    assert hubs.value is not None
    assert hubs.low is None


def test_texts_that_are_all_one_have_no_directions() -> None:
    same = np.repeat(gaussian(1, 8), 30, axis=0) * (1 + 1e-8 * gaussian(30, 8))
    found = measure_geometry(same.astype(np.float64), K)
    assert {"isoscore", "effective_rank", "variance_1", "variance_3", "variance_10"} <= set(found.undefined)
    assert found.shrinkage is None
    assert number(found, "mean_cosine") == pytest.approx(1)
    assert number(found, "uniformity") == pytest.approx(0, abs=1e-6)


def test_texts_that_repel_have_no_shares() -> None:
    both = skewed(20, 4)
    found = measure_geometry(np.vstack([both, -both]), K)
    assert number(found, "mean_cosine") < 0
    assert (found.figures["top_dimension_share"].value, found.dimensions_for_half) == (None, None)
    assert {one.share for one in found.top} == {None}


def test_one_dimension_has_no_isotropy() -> None:
    assert "isoscore" in measure_geometry(np.arange(1, 31, dtype=np.float32)[:, None], K).undefined


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_vector_without_direction_is_an_error_that_names_it(value: float) -> None:
    vectors = skewed(30, 4)
    vectors[7] = value
    with pytest.raises(MeasureError, match="Vector 7 of 30 has no direction"):
        measure_geometry(vectors, K)


# ---- intervals ----


def test_up_to_as_many_texts_as_groups_each_is_left_out_alone() -> None:
    vectors = skewed(GROUPS, 6)
    found = measure_geometry(vectors, K).figures["mean_cosine"]
    other = mean_cosine(vectors)
    assert found.value == pytest.approx(other.mean)
    assert width(found) == pytest.approx(width(other) * student_quantile(GROUPS) / NORMAL)


def width(figure: Estimate | MeanCosine) -> float:
    assert figure.low is not None
    assert figure.high is not None
    return figure.high - figure.low


def test_variance_shares_have_students_interval_of_their_influence() -> None:
    """Text by text, with the directions of the texts that its fold leaves out."""
    vectors = skewed(60, 6).astype(np.float64)
    found = measure_geometry(vectors, K).figures
    # The blocks were dealt into groups for the jackknife before.
    generator = np.random.default_rng(60)
    generator.permutation(60)
    fold = generator.permutation(60) % 5
    parts = []
    for text, x in enumerate(vectors):
        others = vectors[fold != fold[text]]
        off = x - others.mean(axis=0)
        along = np.linalg.svd(others - others.mean(axis=0))[2] @ off
        parts.append((*(sum(along[:k] ** 2) for k in (1, 3)), sum(off**2)))
    for place, name in enumerate(("variance_1", "variance_3")):
        share = sum(part[place] for part in parts) / sum(part[2] for part in parts)
        influence = [(part[place] - share * part[2]) / np.mean([one[2] for one in parts]) for part in parts]
        half = student_quantile(60) * np.std(influence, ddof=1) / sqrt(60)
        assert width(found[name]) == pytest.approx(2 * half)
        assert (found[name].value or 0) - half == pytest.approx(found[name].low)
    # Six directions are all there are: nothing is uncertain.
    assert (found["variance_10"].value, found["variance_10"].low) == (pytest.approx(1), None)


def test_hubness_leaves_out_thirds() -> None:
    """Every deal sorted anew, against neighbours that are sorted once."""
    vectors, k = skewed(45, 6), 4
    found = measure_geometry(vectors, k).figures["hubness_skewness"]
    generator = np.random.default_rng(45)
    for _ in range(2):
        generator.permutation(45)
    variances = []
    for _ in range(25):
        third = generator.permutation(45) % 3
        left = [vectors[third != part] for part in range(3)]
        skews = [skew(occurrences(pair_cosines(unit_vectors(rows)), k)) for rows in left]
        variances.append(2 / 3 * sum((one - np.mean(skews)) ** 2 for one in skews))
    assert found.value is not None
    half = 1.96 * sqrt(np.mean(variances)) / sqrt(1 + found.value**2)
    ends = [np.sinh(np.arcsinh(found.value) + sign * half) for sign in (-1, 1)]
    assert [found.low, found.high] == pytest.approx(ends)


@pytest.mark.slow
def test_neighbours_widen_an_interval_if_texts_are_read_in_order() -> None:
    """Ten sentences of each article say no more than one: the blocks keep them together."""
    few = skewed(GROUPS, 6)
    many = np.repeat(few, 10, axis=0) + 1e-3 * gaussian(10 * GROUPS, 6)
    for name in set(FIGURES) - {"hubness_skewness", "anti_hubs", "variance_10"}:
        of_few, drawn, in_order = (
            width(measure_geometry(vectors, K, in_order=in_order).figures[name])
            for vectors, in_order in ((few, False), (many, False), (many, True))
        )
        assert drawn < in_order / 2, name
        assert in_order == pytest.approx(of_few, rel=0.5), name


def test_a_group_that_is_a_text_larger_widens_no_interval() -> None:
    """Up to d texts a rank is nearly their number, so leaving out three is not leaving out two."""
    equal, unequal = (width(measure_geometry(gaussian(N, 200), K).figures["rankme"]) for N in (50, 58))
    assert unequal < 2 * equal


@pytest.mark.slow
def test_intervals_are_as_wide_as_draws_differ() -> None:
    """Draws of a tenth of a source in which the texts of an article follow each other."""
    generator = np.random.default_rng(0)
    articles = np.repeat(skewed(60, 8), 20, axis=0)
    source = articles + 0.7 * generator.normal(size=articles.shape)
    # One dimension leads: where two may, its share's interval is wider than its spread.
    source[:, 0] += 1
    # Draws without replacement differ by less: by √(1 − n/N).
    finite = sqrt(1 - 120 / len(source))
    draws = [
        measure_geometry(source[np.sort(generator.choice(len(source), 120, replace=False))], 3) for _ in range(100)
    ]
    for name in set(FIGURES) - {"variance_10"}:
        held, width_by_spread = coverage([one.figures[name] for one in draws], finite)
        assert held >= 0.88, name
        # Too wide before: 1.3 to 2.3, since draws in file order were grouped by article.
        assert 0.8 < width_by_spread < 1.4, name


def coverage(found: Sequence[Estimate], finite: float = 1.0) -> tuple[float, float]:
    """The share of intervals that hold the mean of all draws, and their standard errors over the draws' spread."""
    rows = [(one.value, one.low, one.high) for one in found]
    values, low, high = np.array([row for row in rows if None not in row], dtype=np.float64).T
    assert len(values) > 0.9 * len(found)
    target = values - (values - values.mean()) / finite
    held = ((low <= target) & (target <= high)).mean()
    return float(held), float((high - low).mean() / 2 / NORMAL / (values.std(ddof=1) / finite))


@pytest.mark.slow
def test_intervals_hold_the_mean_of_all_samples_as_often_as_they_say() -> None:
    samples = [measure_geometry(skewed(200, 16, seed), K) for seed in range(400)]
    for name in FIGURES:
        held, _ = coverage([one.figures[name] for one in samples])
        # Shares of the two largest dimensions are close here: either may be the largest, which only widens.
        assert 0.92 <= held <= 0.995, name
