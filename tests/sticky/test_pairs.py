"""Pairs spread over the whole similarity range, with no sentence used twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embaudit.errors import CorpusError
from embaudit.measures.sticky.pairs import distinct_sentences, sample_pairs


def sentences_with_twins(count: int, seed: int) -> tuple[list[str], np.ndarray]:
    """Vectors of which every second one lies near the one before, at a random distance."""
    generator = np.random.default_rng(seed)
    first = generator.normal(size=(count // 2, 8))
    second = first + generator.uniform(0, 3, size=(count // 2, 1)) * generator.normal(size=first.shape)
    vectors = np.stack([first, second], axis=1).reshape(-1, 8).astype(np.float32)
    return [f"sentence {index}" for index in range(len(vectors))], vectors


@given(seed=st.integers(0, 10**6), count=st.integers(8, 120))
@settings(max_examples=40)
def test_no_sentence_occurs_twice_in_either_set_or_both(seed: int, count: int) -> None:
    sentences, vectors = sentences_with_twins(count, seed)
    sample = sample_pairs(sentences, vectors, 15, 30, seed)
    used = [side for pair in (*sample.scoring, *sample.validation) for side in (pair.first, pair.second)]
    assert len(used) == len(set(used))
    assert len(sample.scoring) <= 15
    assert len(sample.validation) <= 30


def test_similarities_are_spread_evenly_over_the_range() -> None:
    sentences, vectors = sentences_with_twins(400, 1)
    sample = sample_pairs(sentences, vectors, 15, 60, 0)
    values = np.array([pair.similarity for pair in sample.validation])
    counts, _ = np.histogram(values, bins=6, range=(values.min(), values.max()))
    assert len(sample.validation) >= 55
    assert counts.min() >= 6, counts


def test_similarity_is_the_cosine_of_the_two_sentences() -> None:
    sentences, vectors = sentences_with_twins(40, 2)
    place = {sentence: index for index, sentence in enumerate(sentences)}
    for pair in sample_pairs(sentences, vectors, 4, 8, 0).validation:
        a, b = vectors[place[pair.first]], vectors[place[pair.second]]
        assert pair.similarity == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b), abs=1e-6)


def test_the_same_seed_gives_the_same_pairs_and_another_seed_others() -> None:
    sentences, vectors = sentences_with_twins(100, 3)
    assert sample_pairs(sentences, vectors, 5, 10, 7) == sample_pairs(sentences, vectors, 5, 10, 7)
    assert sample_pairs(sentences, vectors, 5, 10, 7) != sample_pairs(sentences, vectors, 5, 10, 8)


def test_too_few_sentences_is_an_error_that_says_how_many() -> None:
    sentences, vectors = sentences_with_twins(6, 0)
    with pytest.raises(CorpusError, match="has 6"):
        sample_pairs(sentences, vectors, 5, 5, 0)


def test_fewer_pairs_come_back_where_sentences_run_out() -> None:
    sentences, vectors = sentences_with_twins(20, 4)
    sample = sample_pairs(sentences, vectors, 15, 250, 0)
    assert 0 < len(sample.scoring) + len(sample.validation) <= 10
    assert sample.validation_wanted == 250


def test_distinct_sentences_drop_blanks_and_repeats_and_keep_order() -> None:
    assert distinct_sentences(["b", "", " a ", "b", "c"], 10, 0) == ["b", "a", "c"]
    drawn = distinct_sentences([str(n) for n in range(100)], 10, 0)
    assert drawn == sorted(drawn, key=int)
    assert len(drawn) == 10
