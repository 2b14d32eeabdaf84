"""The states that pooling averages: the last layer's output, or what a final norm makes of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_sentences import SENTENCES

from embaudit.checkpoint import Checkpoint, Encoder, LoadOptions, load_checkpoint
from embaudit.measures.layers.layers import measure_layers
from embaudit.measures.layers.steps import Collector, LayerSummaries
from embaudit.words.errors import MeasureError


@pytest.fixture(scope="module")
def llama(sink_llama: Path) -> Checkpoint:
    return load_checkpoint(str(sink_llama), LoadOptions(device="cpu"))


def summaries(checkpoint: Checkpoint) -> LayerSummaries:
    collector = Collector()
    for batch in measure_layers(Encoder(checkpoint), SENTENCES):
        collector.add(batch)
    return collector.finish(checkpoint.model)


def by_definition(checkpoint: Checkpoint) -> tuple[float, float, float]:
    """Normalised spread, its ratio of means and the cosine, of the tokens that the encoder pools."""
    spreads, means, cosines = [], [], []
    for _, rows in Encoder(checkpoint).token_embeddings(SENTENCES):
        X = rows.astype(np.float64)
        spreads.append(float(np.square(X - X.mean(0)).sum(1).mean()))
        means.append(float(np.square(X.mean(0)).sum()))
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        cosines.append(float((unit @ unit.T).mean()))
    ratios = np.array(spreads) / np.array(means)
    return float(ratios.mean()), sum(spreads) / sum(means), float(np.mean(cosines))


def test_behind_a_final_norm_a_sink_token_no_longer_is_all_the_spread(llama: Checkpoint) -> None:
    found = summaries(llama)
    spread, of_means, cosine = by_definition(llama)
    assert found.pooled.has_final_norm
    assert found.pooled.texts == len(SENTENCES)
    assert found.pooled.means["normalised_spread"].value == pytest.approx(spread, rel=1e-5)
    assert found.pooled.means["within_text_cosine"].value == pytest.approx(cosine, rel=1e-5)
    assert found.pooled.normalised_spread_of_means == pytest.approx(of_means, rel=1e-5)
    last = found.layers[-1].means["normalised_spread"].value
    assert last is not None
    # One token of n far from all others: S(X)/‖μ(X)‖² is n − 1, whatever the others are like.
    assert last > 5
    assert spread < 1


def test_without_a_final_norm_the_last_layer_is_what_is_pooled(tiny: Checkpoint) -> None:
    found = summaries(tiny)
    assert not found.pooled.has_final_norm
    last = found.layers[-1]
    assert found.pooled.means == {name: last.means[name] for name in found.pooled.means}
    assert found.pooled.normalised_spread_of_means == last.of_means["normalised_spread"]
    assert found.pooled.texts == last.texts


def test_nan_from_the_final_norm_names_it_and_the_text(llama: Checkpoint) -> None:
    import torch

    weight = llama.model.norm.weight
    kept = weight.detach().clone()
    with torch.no_grad():
        weight[0] = float("nan")
    try:
        with pytest.raises(MeasureError, match="The norm after the last layer gives NaN or infinity for text 3"):
            summaries(llama)
    finally:
        with torch.no_grad():
            weight.copy_(kept)
