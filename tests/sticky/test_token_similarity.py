"""u three ways, of all entries or from some, its golden figure, and that no sequence of ids is encoded twice for it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.measures.sticky.baseline import (
    GROUPS,
    TokenSimilarity,
    deal_entries,
    input_embeddings,
    mean_pairwise_cosine,
    sum_entries,
    token_similarity,
)

pytestmark = pytest.mark.usefixtures("one_thread")


def strings(checkpoint: Checkpoint, *, pieces: bool) -> list[str]:
    """Words and punctuation, which come back as their own id; or ``##`` pieces, which come back as several."""
    vocabulary = checkpoint.tokenizer.convert_ids_to_tokens(list(range(checkpoint.vocabulary_size)))
    return [token for token in vocabulary if token.startswith("##") == pieces and not token.startswith("[")]


def each_by_itself(checkpoint: Checkpoint, tokens: list[str]) -> tuple[float, float, float]:
    """The definition: every entry's string as text, then every id, then rows of the embedding matrix."""
    encoder = Encoder(checkpoint)
    ids = checkpoint.tokenizer.convert_tokens_to_ids(tokens)
    as_text = np.concatenate([encoder.encode_texts([token]) for token in tokens])
    as_ids = np.concatenate([encoder.encode_ids([checkpoint.with_special_tokens([one])]) for one in ids])
    return (
        mean_pairwise_cosine(as_text),
        mean_pairwise_cosine(as_ids),
        mean_pairwise_cosine(input_embeddings(encoder)[ids]),
    )


def similarity_of(encoder: Encoder, ids: list[int], tokens: list[str], told: list[int]) -> TokenSimilarity:
    """Of all these entries, in groups."""
    groups = deal_entries(len(ids), None, 0)
    sums = [sum_entries(encoder, [ids[i] for i in one], [tokens[i] for i in one], told.append) for one in groups]
    sizes = [len(one) for one in groups]
    return token_similarity(np.array(sums), sizes, len(ids), input_embeddings(encoder)[ids])


def check(checkpoint: Checkpoint, tokens: list[str]) -> None:
    """Hold the figures against the definition."""
    told: list[int] = []
    ids = checkpoint.tokenizer.convert_tokens_to_ids(tokens)
    similarity = similarity_of(Encoder(checkpoint), ids, tokens, told)
    found = (similarity.u, similarity.u_ids, similarity.u_input_embeddings)
    assert found == pytest.approx(each_by_itself(checkpoint, tokens), abs=1e-6)
    assert (similarity.tokens, similarity.u_low, similarity.u_ids_high) == (len(tokens), None, None)
    assert sum(told) == 2 * len(tokens), "a bar that counts both ways must arrive"


@pytest.mark.parametrize("pieces", [False, True])
def test_all_entries_give_the_mean_over_all_pairs(tiny: Checkpoint, pieces: bool) -> None:
    check(tiny, strings(tiny, pieces=pieces))


def test_a_string_that_comes_back_as_its_id_is_encoded_once(tiny: Checkpoint) -> None:
    for pieces, times in ((False, 1), (True, 2)):
        encoder, tokens = Encoder(tiny), strings(tiny, pieces=pieces)
        sum_entries(encoder, tiny.tokenizer.convert_tokens_to_ids(tokens), tokens)
        assert encoder.texts == times * len(tokens)


@pytest.mark.slow
def test_a_whole_vocabulary_takes_an_encode_for_each_distinct_sequence(tiny: Checkpoint) -> None:
    everything = tiny.tokenizer.convert_ids_to_tokens(list(range(tiny.vocabulary_size)))
    as_text = {tuple(tiny.tokenizer(token)["input_ids"]) for token in everything}
    as_ids = {tuple(tiny.with_special_tokens([token_id])) for token_id in range(tiny.vocabulary_size)}
    encoder = Encoder(tiny)
    sum_entries(encoder, list(range(tiny.vocabulary_size)), everything)
    assert encoder.texts == len(as_text | as_ids) < 2 * len(everything)
    check(tiny, everything)


def test_strings_that_are_read_alike_share_one_encode(tiny: Checkpoint) -> None:
    encoder = Encoder(tiny)
    unknown = ["龸", "龹", "[UNK]"]
    ids = tiny.tokenizer.convert_tokens_to_ids(["river", "town", "[UNK]"])
    sums = sum_entries(encoder, ids, unknown)
    similarity = token_similarity(sums[None], [3], 3, input_embeddings(encoder)[ids])
    assert similarity.u == pytest.approx(1, abs=1e-6)
    assert similarity.u_ids < 1 - 1e-3
    assert encoder.texts == 3


def test_entries_are_dealt_into_groups_and_samples_are_drawn_by_the_seed() -> None:
    everything = [deal_entries(1_003, None, seed) for seed in (0, 1)]
    assert sorted(np.concatenate(everything[0])) == list(range(1_003))
    assert {len(group) for group in everything[0]} == {40, 41}
    assert all(map(np.array_equal, *everything)), "of all entries, the groups are the same whatever the seed"
    assert all(map(np.array_equal, everything[0], deal_entries(1_003, 5_000, 2))), "more than there are: all of them"
    one, other = (np.concatenate(deal_entries(1_003, 200, seed)) for seed in (0, 1))
    assert len(set(one)) == len(set(other)) == 200
    assert set(one) != set(other)
    assert len(deal_entries(2, None, 0)) == 2


def clustered(entries: int, seed: int) -> np.ndarray:
    """Unit vectors around a few directions of unequal weight, with a common one: as vocabularies are."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(6, 16)) + 1.0
    rows = centres[generator.choice(6, size=entries, p=[0.4, 0.25, 0.15, 0.1, 0.07, 0.03])]
    rows = rows + generator.normal(size=rows.shape)
    unit: np.ndarray = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


@pytest.mark.parametrize("wanted", [100, 1_500])
def test_a_samples_interval_covers_and_its_mean_is_right(wanted: int) -> None:
    vectors = clustered(2_000, 0)
    truth = mean_pairwise_cosine(vectors)
    found = []
    for seed in range(400):
        groups = deal_entries(len(vectors), wanted, seed)
        sums = np.array([vectors[group].sum(axis=0) for group in groups])
        sizes = [len(group) for group in groups]
        assert len(groups) == GROUPS
        found.append(token_similarity(np.stack([sums, sums], axis=1), sizes, len(vectors), vectors))
    estimates = np.array([one.u for one in found])
    # Three standard errors; the plain ‖mean‖² of a hundred would be too high by 0.007, eight times that.
    assert abs(estimates.mean() - truth) < 3 * estimates.std() / 20
    covers = np.mean([one.u_low <= truth <= one.u_high for one in found])  # type: ignore[operator]
    assert 0.92 <= covers <= 0.985
    assert all(one.u_ids == one.u for one in found)


def test_vectors_at_right_angles_have_no_negative_similarity() -> None:
    sums = np.stack([np.eye(200)[group].sum(axis=0) for group in deal_entries(200, 100, 0)])
    found = token_similarity(np.stack([sums, sums], axis=1), [4] * 25, 200, np.eye(200))
    assert found.u == pytest.approx(1 / 200)
    assert found.u_low is None or 0 <= found.u_low <= found.u


@pytest.mark.slow
def test_u_of_the_whole_vocabulary(minilm: Checkpoint, shared: Path) -> None:
    golden = json.loads((shared / "golden/std_reference_all_minilm_l6_v2.json").read_text())["u_mean_token_similarity"]
    ids = list(range(minilm.vocabulary_size))
    tokens = minilm.tokenizer.convert_ids_to_tokens(ids)
    encoder = Encoder(minilm)
    similarity = similarity_of(encoder, ids, tokens, [])
    assert similarity.tokens == 30_522
    # 23 699 strings come back as their own id, whose vector serves both ways: 37 345 encodes instead of 61 044.
    assert encoder.texts == 2 * 30_522 - 23_699
    assert similarity.u == pytest.approx(golden["value"], abs=golden["tolerance"])
    assert 0 <= similarity.u_input_embeddings <= 1
    assert 0 <= similarity.u_ids <= 1


def test_mean_pairwise_cosine_is_the_mean_of_the_whole_matrix() -> None:
    vectors = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32) + 0.3
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert mean_pairwise_cosine(vectors) == pytest.approx(float((unit @ unit.T).mean()), abs=1e-6)


def test_a_zero_vector_is_no_reason_for_nan() -> None:
    assert mean_pairwise_cosine(np.array([[0.0, 0.0], [1.0, 0.0]])) == pytest.approx(0.25)
