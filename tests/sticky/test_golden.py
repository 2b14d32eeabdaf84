"""u of all-MiniLM-L6-v2, and the mean of pairwise cosines; test_inspect has the definition on the published pairs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.measures.sticky.baseline import mean_pairwise_cosine, token_similarity


@pytest.mark.slow
def test_u_of_the_whole_vocabulary(minilm: Checkpoint, shared: Path) -> None:
    golden = json.loads((shared / "golden/std_reference_all_minilm_l6_v2.json").read_text())["u_mean_token_similarity"]
    ids = list(range(minilm.vocabulary_size))
    tokens = minilm.tokenizer.convert_ids_to_tokens(ids)
    encoder = Encoder(minilm)
    similarity = token_similarity(encoder, ids, tokens)
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
