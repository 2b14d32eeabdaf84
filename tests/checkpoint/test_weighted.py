"""Tokens with weights, on tiny models of several families: read as they are meant, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_models
import torch
from older import transformers_5

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.checkpoint.encoder import require_weights, weighted_vectors
from embaudit.words.errors import NotMeasurable


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert", "albert"])
def test_a_token_without_weight_is_not_there(family: str, tmp_path: Path) -> None:
    transformers_5("a mask of four dimensions for an encoder")
    encoder = Encoder(load_checkpoint(str(tiny_models.build(family, tmp_path / family)), LoadOptions(device="cpu")))
    require_weights(encoder)
    ids = torch.tensor(encoder.tokenize(["the river is long"]))
    positions = torch.arange(ids.shape[1])[None]
    plain = torch.nn.functional.normalize(encoder.encode_dense(ids), dim=1)
    found = weighted_vectors(encoder.checkpoint, ids, positions, torch.ones(ids.shape))
    assert torch.allclose(found, plain, atol=1e-5)
    # Twice the weight is two copies in one place.
    twice = torch.tensor([[*ids[0, :2].tolist(), *ids[0, 1:].tolist()]])
    places = torch.tensor([[0, 1, *range(1, ids.shape[1])]])
    weights = torch.ones(ids.shape)
    weights[0, 1] = 2
    copied = weighted_vectors(encoder.checkpoint, twice, places, torch.ones(twice.shape))
    assert torch.allclose(weighted_vectors(encoder.checkpoint, ids, positions, weights), copied, atol=1e-5)
    assert not torch.allclose(found, copied, atol=1e-3)


@pytest.mark.parametrize("family", ["t5", "mpnet", "llama"])
def test_a_model_that_reads_them_otherwise_is_refused(family: str, tmp_path: Path) -> None:
    encoder = Encoder(load_checkpoint(str(tiny_models.build(family, tmp_path / family)), LoadOptions(device="cpu")))
    with pytest.raises(NotMeasurable, match="weights"):
        require_weights(encoder)
