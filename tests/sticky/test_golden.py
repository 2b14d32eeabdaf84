"""Golden figures of all-MiniLM-L6-v2: u, and the definition protocol on the published pairs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from embaudit.checkpoint import Checkpoint, Encoder
from embaudit.sticky.baseline import mean_pairwise_cosine, token_similarity
from embaudit.sticky.pairs import SentencePair
from embaudit.sticky.scores import rho
from embaudit.sticky.validation import prepare_validation, validate_tokens


@pytest.mark.slow
def test_u_of_the_whole_vocabulary(minilm: Checkpoint, shared: Path) -> None:
    golden = json.loads((shared / "golden/std_reference_all_minilm_l6_v2.json").read_text())["u_mean_token_similarity"]
    ids = list(range(minilm.vocabulary_size))
    tokens = minilm.tokenizer.convert_ids_to_tokens(ids)
    similarity = token_similarity(Encoder(minilm), ids, tokens)
    assert similarity.tokens == 30_522
    assert similarity.u == pytest.approx(golden["value"], abs=golden["tolerance"])
    assert 0 <= similarity.u_input_embeddings <= 1
    assert 0 <= similarity.u_ids <= 1


def test_mean_pairwise_cosine_is_the_mean_of_the_whole_matrix() -> None:
    vectors = np.random.default_rng(0).normal(size=(30, 5)).astype(np.float32) + 0.3
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert mean_pairwise_cosine(vectors) == pytest.approx(float((unit @ unit.T).mean()), abs=1e-6)


def test_a_zero_vector_is_no_reason_for_nan() -> None:
    assert mean_pairwise_cosine(np.array([[0.0, 0.0], [1.0, 0.0]])) == pytest.approx(0.25)


@pytest.mark.slow
def test_definition_protocol_on_the_published_pairs(minilm: Checkpoint, shared: Path) -> None:
    golden = json.loads((shared / "golden/std_definition_all_minilm_l6_v2.json").read_text())
    published = json.loads((shared / "data" / golden["pairs"]["file"].removeprefix("data/")).read_text())
    pairs = [_pair(entry) for entry in published]
    assert len(pairs) == golden["pairs"]["total"]
    u = golden["u"]
    encoder = Encoder(minilm)
    inputs = prepare_validation(encoder, pairs, u, 8, 0, rotate_operators=False)
    ids = np.array([token["id"] for token in golden["tokens"]])
    after = validate_tokens(encoder, inputs, ids, 8, 0)
    operators = np.array([operator for _, operator in inputs.points])
    before = inputs.before[operators == "prefix"]
    assert rho(before, before, u) == pytest.approx(golden["rho_0"], abs=golden["tolerance"])
    for row, token in enumerate(golden["tokens"]):
        for operator in ("prefix", "suffix"):
            value = rho(after[row, operators == operator], before, u)
            assert value == pytest.approx(token[f"rho_{operator}"], abs=golden["tolerance"]), (token, operator)


def _pair(entry: object) -> SentencePair:
    if isinstance(entry, dict):
        values = [value for value in entry.values() if isinstance(value, str)]
    else:
        assert isinstance(entry, list)
        values = [value for value in entry if isinstance(value, str)]
    return SentencePair(values[0], values[1], 0.0)
