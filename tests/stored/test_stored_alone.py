"""What vectors show by themselves, beside slow references."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.questions.vectors.alone import VectorProfile, look_at_alone, precision_of
from embaudit.questions.vectors.findings import findings_alone
from embaudit.questions.vectors.forms import form_of_index
from embaudit.questions.vectors.neighbours import two_lengths, two_spaces
from embaudit.questions.vectors.profile import RowDraw, profile_of
from embaudit.statistics import exact_count
from embaudit.stores.store import RowBatch, Store


def index_of(vectors: np.ndarray, texts: list[str] | None = None, size: int = 97) -> Store:
    """An index in memory, read in batches of a few rows."""

    def batches() -> Iterator[RowBatch]:
        for start in range(0, len(vectors), size):
            part = vectors[start : start + size]
            own = None if texts is None else texts[start : start + size]
            yield RowBatch(start, len(part), {part.shape[1]: (np.arange(len(part)), part)}, own)

    columns = {"vector": "v"} | ({} if texts is None else {"text": "text"})
    return Store("index", columns, str(vectors.dtype), batches, len(vectors))


def looked_at(vectors: np.ndarray, texts: list[str] | None = None) -> tuple[VectorProfile, dict[str, str]]:
    """The figures, and the findings' levels by name."""
    index = index_of(vectors, texts)
    alone = look_at_alone(index, seed=0)
    return alone, {finding.name: finding.level for finding in findings_alone(index, alone)}


def cloud(rows: int, dimension: int = 32, seed: int = 0) -> np.ndarray:
    """Vectors that vary more in some directions than in others, as those of texts do."""
    generator = np.random.default_rng(seed)
    basis = generator.normal(size=(dimension, dimension)) * np.exp(-np.arange(dimension) / 8)[:, None]
    found = generator.normal(size=(rows, dimension)) @ basis
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def test_healthy_vectors_have_no_finding_and_the_figures_of_a_slow_reference() -> None:
    vectors = cloud(700)
    alone, found = looked_at(vectors, [f"text {row}" for row in range(700)])
    assert found == {}
    units = vectors.astype(np.float64)
    cosines = units @ units.T
    np.fill_diagonal(cosines, np.nan)
    assert alone.mean_cosine == pytest.approx(np.nanmean(cosines), abs=1e-6)
    values = np.linalg.eigvalsh(np.cov(units.T, bias=True))
    p = values / values.sum()
    assert alone.effective_rank == pytest.approx(np.exp(-(p * np.log(p)).sum()), rel=1e-4)
    nearest = np.argsort(-np.nan_to_num(cosines, nan=-2), axis=1)[:, :10]
    asked = alone.profile.sample.numbers[:500]
    counts = np.zeros(700, int)
    for query in asked:
        counts[nearest[query]] += 1
    assert alone.neighbours is not None
    assert (alone.neighbours.counts == counts).all()
    # The skewness over all rows, from 500 of them.
    every = np.bincount(nearest.ravel(), minlength=700)
    skewness = ((every - every.mean()) ** 3).mean() / every.std() ** 3
    assert alone.neighbours.skewness == pytest.approx(skewness, rel=0.2)
    assert alone.profile.is_normalised
    assert alone.precision == "float32's"


def with_rows(vectors: np.ndarray, places: slice, value: object) -> np.ndarray:
    found = vectors.copy()
    found[places] = value
    return found


VECTORS = cloud(800)
DEFECTS = {
    "NaN": (with_rows(VECTORS, slice(3, 5), np.nan), "not_finite", "problem"),
    "infinity": (with_rows(VECTORS, slice(3, 5), np.inf), "not_finite", "problem"),
    "zeros": (with_rows(VECTORS, slice(3, 5), 0), "zeros", "problem"),
    "one vector for many texts": (with_rows(VECTORS, slice(10, 20), VECTORS[0]), "equal_vectors", "problem"),
    "all alike": (VECTORS * 0.01 + VECTORS[0], "collapse", "problem"),
    "a constant dimension": (np.c_[VECTORS, np.full(800, 0.5, np.float32)], "constant_dimensions", "look"),
    "two lengths": (VECTORS * np.where(np.arange(800) % 5, 1, 3)[:, None].astype(np.float32), "two_lengths", "look"),
    "outliers": (VECTORS * np.where(np.arange(800) % 60, 1, 1.15)[:, None].astype(np.float32), "norm_outliers", "look"),
    "copies": (VECTORS[np.arange(800) // 2] + np.random.default_rng(0).normal(0, 1e-4, (800, 32)), "copies", "look"),
}


@pytest.mark.parametrize(("vectors", "name", "level"), DEFECTS.values(), ids=DEFECTS)
def test_a_defect_is_found(vectors: np.ndarray, name: str, level: str) -> None:
    _, found = looked_at(vectors, [f"text {row}" for row in range(len(vectors))])
    assert found.get(name) == level


def test_of_two_lengths_a_row_of_each_is_named() -> None:
    vectors = DEFECTS["two lengths"][0]
    alone, _ = looked_at(vectors)
    (said,) = [one.sentence for one in findings_alone(index_of(vectors), alone) if one.name == "two_lengths"]
    one, other = (int(place) for place in re.findall(r"row (\d+)", said))
    lengths = np.linalg.norm(vectors, axis=1)
    assert {lengths[one - 1] > lengths.mean(), lengths[other - 1] > lengths.mean()} == {True, False}


def test_equal_vectors_of_one_text_are_no_defect_and_different_ones_are_named() -> None:
    vectors = with_rows(VECTORS, slice(10, 20), VECTORS[0])
    texts = [f"text {row}" for row in range(800)]
    texts[0] = texts[799] = "the same"
    texts[10:20] = ["the same"] * 10
    alone, found = looked_at(vectors, texts)
    assert found == {"one_text_two_vectors": "look", "copied_texts": "look"}
    assert (alone.repeats.repeated_texts, alone.repeats.split_texts) == (11, 1)


def test_a_hub_is_found_and_named() -> None:
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(900, 300)).astype(np.float32) + 0.4
    vectors[77] = 0.4
    _, found = looked_at(vectors)
    assert found.get("hub") == "look"


def test_two_models_in_one_index_are_told_and_two_topics_are_not() -> None:
    ours, topics = cloud(3_000, 96), cloud(3_000, 96)
    turned = np.linalg.qr(np.random.default_rng(1).normal(size=(96, 96)))[0].astype(np.float32)
    mean = np.zeros(96, np.float32)
    mean[5] = 1.2
    order = np.random.default_rng(2).permutation(3_000)
    mixed = np.concatenate([ours[:1_500] + mean, (ours[1_500:] + mean) @ turned])[order]
    shifted = np.concatenate([topics[:1_500] + mean, topics[1_500:] - mean])[order]
    assert two_spaces(mixed) is not None
    assert two_spaces(shifted) is None
    assert two_spaces(ours) is None
    assert two_lengths(np.linalg.norm(ours, axis=1)) is None


PRECISIONS = {
    "float16's": VECTORS.astype(np.float16).astype(np.float32),
    "bfloat16's": (VECTORS.view(np.uint32) & 0xFFFF0000).view(np.float32),
    "whole numbers of one byte (int8 or packed bits)": np.round(VECTORS * 127),
    "bits (binary)": (VECTORS > 0).astype(np.int8),
    "on 256 levels or fewer (int8 before)": (np.round(VECTORS * 100) / 77).astype(np.float32),
    "on the levels of int8, scaled by each row's largest": (
        np.round(VECTORS / np.abs(VECTORS).max(1, keepdims=True) * 127) * np.abs(VECTORS).max(1, keepdims=True) / 127
    ).astype(np.float32),
    "float64's": VECTORS.astype(np.float64) / 3,
}


@pytest.mark.parametrize(("name", "vectors"), PRECISIONS.items(), ids=PRECISIONS)
def test_the_precision_of_numbers(name: str, vectors: np.ndarray) -> None:
    assert precision_of(vectors) == name


def int8_by_dimension(vectors: np.ndarray, kind: type, offset: int) -> np.ndarray:
    """As sentence-transformers' quantize_embeddings does."""
    low, high = vectors.min(axis=0), vectors.max(axis=0)
    return ((vectors - low) / ((high - low) / 255) - offset).astype(kind)


def stored_as(how: str, ours: np.ndarray) -> np.ndarray:
    D = ours.shape[1]
    largest = np.abs(ours).max(axis=1, keepdims=True)
    return {
        "float32": lambda: ours,
        "float16": lambda: ours.astype(np.float16),
        "float32, another length": lambda: ours * 3,
        "the first half": lambda: ours[:, : D // 2],
        "int8 × 127": lambda: np.round(ours * 127).astype(np.int8),
        "int8 cut": lambda: (ours * 127).astype(np.int8),
        "int8 by row": lambda: np.round(ours / largest * 127).astype(np.int8),
        "int8 by dimension": lambda: int8_by_dimension(ours, np.int8, 128),
        "uint8 by dimension": lambda: int8_by_dimension(ours, np.uint8, 0),
        "bits": lambda: (ours > 0).astype(np.uint8),
        "ubinary": lambda: np.packbits(ours > 0, axis=1),
        "binary": lambda: (np.packbits(ours > 0, axis=1).astype(np.int16) - 128).astype(np.int8),
    }[how]()


FORMS = (
    *("float32", "float16", "float32, another length", "the first half", "int8 × 127", "int8 cut", "int8 by row"),
    *("int8 by dimension", "uint8 by dimension", "bits", "ubinary", "binary"),
)


@pytest.mark.parametrize("how", FORMS)
def test_an_index_in_lower_precision_is_recognised_and_other_rows_in_it_are(how: str) -> None:
    """Of 400 rows, 40 are another model's, stored in the same way."""
    ours, others = cloud(400, 256), cloud(400, 256, seed=9)
    mixed = np.concatenate([others[:40], ours[40:]])
    stored = stored_as(how, mixed)
    form = form_of_index(ours, stored)
    assert form is not None
    distances = form.distance(ours, stored)
    assert np.flatnonzero(distances > form.tolerance(distances)).tolist() == list(range(40))


def test_longer_vectors_than_the_checkpoints_have_no_form() -> None:
    assert form_of_index(cloud(50, 16), cloud(50, 32)) is None


def test_the_interval_of_a_finite_population_covers_and_is_exact_at_the_end() -> None:
    generator = np.random.default_rng(0)
    population, trials = 2_000, 300
    for count in (0, 3, 60, 1_000):
        hits = generator.hypergeometric(count, population - count, trials, 400)
        ends = {one: exact_count(int(one), trials, population) for one in np.unique(hits)}
        covered = np.mean([ends[one][0] <= count <= ends[one][1] for one in hits])
        assert covered >= 0.93
    assert exact_count(7, 50, 50) == (7, 7)


def slow_count(hits: int, trials: int, population: int) -> tuple[int, int]:
    """By trying every count."""
    from math import comb

    def chance(x: int, K: int) -> float:
        return comb(K, x) * comb(population - K, trials - x) / comb(population, trials)

    fits = [
        K
        for K in range(population + 1)
        if sum(chance(x, K) for x in range(hits, trials + 1)) > 0.025
        and sum(chance(x, K) for x in range(hits + 1)) > 0.025
    ]
    return min(fits), max(fits)


@given(st.data())
@settings(max_examples=40)
def test_the_interval_is_that_of_trying_every_count(data: st.DataObject) -> None:
    population = data.draw(st.integers(2, 40))
    trials = data.draw(st.integers(1, population))
    hits = data.draw(st.integers(0, trials))
    assert exact_count(hits, trials, population) == slow_count(hits, trials, population)


def test_a_draw_is_uniform_and_the_same_every_time() -> None:
    vectors = np.arange(1_000, dtype=np.float32)[:, None]
    counts = np.zeros(1_000)
    for seed in range(300):
        draw = RowDraw(50, seed)
        for start in range(0, 1_000, 130):
            part = vectors[start : start + 130]
            batch = RowBatch(start, len(part), {1: (np.arange(len(part)), part)})
            draw.add(batch, np.arange(len(part)), part)
        rows = draw.rows()
        assert len(set(rows.numbers.tolist())) == 50
        assert (rows.vectors[:, 0] == rows.numbers).all()
        counts[rows.numbers] += 1
    # 300 draws of 5 %: mean 15, standard deviation 3.8.
    assert counts.mean() == 15
    assert abs(counts.std() - 3.77) < 0.5


def test_rows_of_another_dimension_and_without_a_vector_are_counted() -> None:
    def batches() -> Iterator[RowBatch]:
        yield RowBatch(0, 4, {2: (np.array([0, 3]), np.ones((2, 2), np.float32)), 3: (np.array([1]), np.ones((1, 3)))})

    index = Store("index", {"vector": "v"}, "float32", batches)
    profile = profile_of(index, 0)
    assert (profile.dimensions, profile.first_odd, profile.without_vector, profile.first_without) == (
        {2: 2, 3: 1},
        1,
        1,
        2,
    )
    found = {finding.name: finding.level for finding in findings_alone(index, look_at_alone(index, 0))}
    assert found == {"mixed_dimensions": "problem", "no_vector": "problem", "copies": "look"}


def test_copies_of_one_vector_are_no_space_of_their_own() -> None:
    rng = np.random.default_rng(0)
    own = rng.normal(size=(400, 8)) @ rng.normal(size=(8, 64)) + 3 * rng.normal(size=64)
    one = -3 * own.mean(axis=0)
    for other in (one + 0.001 * rng.normal(size=(300, 64)), np.repeat(one[None], 300, axis=0)):
        vectors = rng.permutation(np.concatenate([own, other])).astype(np.float32)
        assert two_spaces(vectors) is None
