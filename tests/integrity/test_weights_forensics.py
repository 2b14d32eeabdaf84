"""What is said about weights of the packaged checkpoint, whole and broken, in memory."""

from __future__ import annotations

import pytest
import torch
from integrity_copies import Change, each_matrix, randomised, with_tensors
from some_rows import mostly_slow

from embaudit.checkpoint import Checkpoint
from embaudit.checkpoint.vocabulary.script import script_of
from embaudit.measures.integrity.integrity import weight_findings
from embaudit.measures.integrity.rows import LIKELIER, likelihood_of_noise, read_rows, row_findings

LAYERS, ROWS = "encoder.layer.", "embeddings.word_embeddings.weight"
OUTPUT = "encoder.layer.3.output.dense.weight"


def rows_changed(count: int, std: float | None) -> Change:
    """Noise, zeros, or (for None) the rows of other tokens in so many ordinary rows."""

    def change(tensors: dict[str, torch.Tensor], generator: torch.Generator) -> None:
        E = tensors[ROWS]
        places = torch.randperm(29_000, generator=generator)[: 2 * count] + 1_000
        some, others = places[:count], places[count:]
        E[some] = E[others[: len(some)]] if std is None else torch.randn(len(some), 384, generator=generator) * std

    return change


def value_changed(value: float) -> Change:
    return lambda tensors, _: tensors[OUTPUT].__setitem__((5, 7), value)


def layer_copied(tensors: dict[str, torch.Tensor], _: torch.Generator) -> None:
    for name, tensor in tensors.items():
        if ".layer.2." in name:
            tensors[name.replace(".layer.2.", ".layer.3.")].copy_(tensor)


def part_copied(tensors: dict[str, torch.Tensor], _: torch.Generator) -> None:
    for part in ("intermediate.dense", "output.dense"):
        tensors[f"encoder.layer.3.{part}.weight"].copy_(tensors[f"encoder.layer.2.{part}.weight"])


def turned(tensors: dict[str, torch.Tensor], _: torch.Generator) -> None:
    for name, tensor in tensors.items():
        if ".layer.1.attention." in name and tensor.dim() == 2:
            tensor.copy_(tensor.T.clone())


def positions_shuffled(tensors: dict[str, torch.Tensor], generator: torch.Generator) -> None:
    table = tensors["embeddings.position_embeddings.weight"]
    table.copy_(table[torch.randperm(len(table), generator=generator)])


def swapped(one: int, other: int) -> Change:
    def change(tensors: dict[str, torch.Tensor], _: torch.Generator) -> None:
        for name, tensor in tensors.items():
            if f".layer.{one}." in name:
                second = tensors[name.replace(f".layer.{one}.", f".layer.{other}.")]
                kept = tensor.clone()
                tensor.copy_(second)
                second.copy_(kept)

    return change


def gains_of_one(part: str) -> Change:
    return lambda tensors, _: [tensor.fill_(1.0) for name, tensor in tensors.items() if name.endswith(part)]


def biases_lost(tensors: dict[str, torch.Tensor], _: torch.Generator) -> None:
    for name, tensor in tensors.items():
        if ".layer.4." in name and name.endswith("dense.bias"):
            tensor.zero_()


def rounded(bits: int) -> Change:
    def function(W: torch.Tensor, _: torch.Generator) -> torch.Tensor:
        scale = W.abs().amax(1, keepdim=True).clamp(min=1e-9) / (2 ** (bits - 1) - 1)
        return (W / scale).round() * scale

    return each_matrix(function)


def noisier(share: float) -> Change:
    return each_matrix(lambda W, generator: W + share * W.std() * torch.randn(W.shape, generator=generator))


def everything(tensors: dict[str, torch.Tensor], generator: torch.Generator) -> None:
    randomised("", 0.02, is_fresh=True)(tensors, generator)


BROKEN: dict[str, tuple[Change, dict[str, str]]] = {
    "as initialised": (
        everything,
        {"untrained_layers": "problem", "untrained_embeddings": "problem", "untrained_matrices": "look"},
    ),
    "layers as initialised": (randomised(LAYERS, is_fresh=True), {"untrained_layers": "problem"}),
    "layers of wide noise": (randomised(LAYERS, 0.06), {"untrained_layers": "problem"}),
    "layers of uniform noise": (randomised(LAYERS, 0.05, "uniform"), {"untrained_layers": "problem"}),
    "layers of truncated noise": (randomised(LAYERS, 0.02, "truncated"), {"untrained_layers": "problem"}),
    "the last layer": (randomised("layer.5."), {"untrained_layers": "problem"}),
    "queries of all layers": (randomised(".query."), {"untrained_matrices": "problem"}),
    "one matrix": (randomised("layer.3.attention.self.value"), {"untrained_matrices": "look"}),
    "positions shuffled": (positions_shuffled, {"position_order": "problem"}),
    "no positions": (each_matrix(lambda W, _: W * 0, "position_embeddings"), {"position_order": "problem"}),
    "wide segments": (each_matrix(lambda W, _: W * 40, "token_type"), {"segment_size": "problem"}),
    "positions": (randomised("position_embeddings"), {"untrained_matrices": "look"}),
    "all rows": (randomised("word_embeddings", 0.055), {"untrained_embeddings": "problem"}),
    "10 000 random rows": (rows_changed(10_000, 0.05), {"untrained_rows": "problem"}),
    "1 000 random rows": (rows_changed(1_000, 0.05), {"untrained_rows": "look"}),
    "1 000 rows as initialised": (rows_changed(1_000, 0.02), {"untrained_rows": "look"}),
    "6 000 rows of zeros": (rows_changed(6_000, 0.0), {"zero_rows": "problem"}),
    "1 000 rows of others": (rows_changed(1_000, None), {"repeated_rows": "look"}),
    "all gains of one": (gains_of_one("Norm.weight"), {"reset_gains": "problem"}),
    "one norm's gains of one": (gains_of_one("layer.5.output.LayerNorm.weight"), {"reset_gains": "look"}),
    "the norm of the embeddings": (randomised("embeddings.LayerNorm", is_fresh=True), {"reset_gains": "look"}),
    "no biases of norms": (
        lambda tensors, _: [tensor.zero_() for name, tensor in tensors.items() if name.endswith("Norm.bias")],
        {"reset_gains": "look"},
    ),
    "attention transposed": (turned, {"transposed_matrices": "problem"}),
    "the biases of one layer": (biases_lost, {"reset_gains": "look"}),
    "two layers swapped": (swapped(1, 4), {"layer_order": "problem"}),
    "neighbours swapped": (swapped(2, 3), {"layer_order": "problem"}),
    "the last two swapped": (swapped(4, 5), {"layer_order": "problem"}),
    "a part of a layer copied": (part_copied, {"equal_layers": "problem"}),
    "a layer copied": (layer_copied, {"equal_layers": "problem"}),
    "a layer of zeros": (each_matrix(lambda W, _: W * 0, "layer.4."), {"constant_matrices": "problem"}),
    "a matrix of zeros": (each_matrix(lambda W, _: W * 0, "layer.4.output."), {"constant_matrices": "look"}),
    "a flipped bit": (value_changed(4_000.0), {"outlier": "problem"}),
    "a tensor 10 000 times as large": (
        lambda tensors, _: tensors["encoder.layer.2.intermediate.dense.weight"].mul_(1e4),
        {"outlier": "problem"},
    ),
    "another dtype's bytes": (value_changed(1e30), {"value_range": "problem"}),
    "4 bits": (rounded(4), {"rounded_weights": "look"}),
    "8 bits": (rounded(8), {"rounded_weights": "look"}),
}
HARMLESS: dict[str, Change] = {
    "as published": lambda tensors, _: None,
    "bfloat16": each_matrix(lambda W, _: W.bfloat16().float()),
    "float16": each_matrix(lambda W, _: W.half().float()),
    "1 % noise": noisier(0.01),
    "noise of half the spread": noisier(0.5),
    "50 rows of others": rows_changed(50, None),
    "50 rows of zeros": rows_changed(50, 0.0),
    "norms untouched": lambda tensors, _: [
        tensor.fill_(float(name.endswith("weight"))) for name, tensor in tensors.items() if "Norm." in name
    ],
    "no biases": lambda tensors, _: [t.zero_() for name, t in tensors.items() if name.endswith("key.bias")],
    "pruned layers": each_matrix(lambda W, _: torch.where(W.abs() < 1.5 * W.std(), 0.0, W), LAYERS),
    "a pooler never trained": randomised("pooler", is_fresh=True),
}

# What others show in the same way, of another size or in another place.
QUICK = ("the last layer", "a flipped bit")


def levels(checkpoint: Checkpoint) -> dict[str, str]:
    """Levels of all but ``ok``, by the rule."""
    findings = weight_findings(checkpoint)
    return {finding.name: finding.level for finding in findings if finding.level != "ok"}


@pytest.mark.parametrize("name", mostly_slow(BROKEN, QUICK))
def test_broken_weights_are_named(minilm: Checkpoint, name: str) -> None:
    change, expected = BROKEN[name]
    assert levels(with_tensors(minilm, change)) == expected


@pytest.mark.parametrize("name", mostly_slow(HARMLESS, ("as published", "norms untouched")))
def test_harmless_variants_are_fine(minilm: Checkpoint, name: str) -> None:
    found = weight_findings(with_tensors(minilm, HARMLESS[name]))
    assert [finding.level for finding in found] == ["ok"] * 3


def test_findings_name_layers_rows_and_places(minilm: Checkpoint) -> None:
    [last] = [f for f in weight_findings(with_tensors(minilm, BROKEN["the last layer"][0])) if f.level == "problem"]
    assert "1 of 6 layers holds random numbers: encoder.layer.5." in last.sentence
    assert "the initializer_range of config.json (0.02)" in last.sentence
    assert last.value == pytest.approx(1 / 6)
    [flipped] = [f for f in weight_findings(with_tensors(minilm, value_changed(4_000.0))) if f.level == "problem"]
    assert f"{OUTPUT} holds 4e+03 at [5, 7]" in flipped.sentence
    [zero] = [f for f in weight_findings(with_tensors(minilm, rows_changed(6_000, 0.0))) if f.level == "problem"]
    assert "6000 of 29523 ordinary tokens (20.3% [19.9%, 20.8%])" in zero.sentence
    assert "Latin" in zero.sentence
    assert zero.low is not None
    assert zero.low < 6_000 / 29_523 < zero.high


def test_a_script_of_random_rows_is_named(minilm: Checkpoint) -> None:
    """Too few of all tokens to be noticed among them."""
    entries = minilm.tokenizer.get_vocab()
    made = [number for token, number in entries.items() if script_of(token.lstrip("#")) == "Cyrillic"]

    def change(tensors: dict[str, torch.Tensor], generator: torch.Generator) -> None:
        tensors[ROWS][made] = 0.02 * torch.randn(len(made), 384, generator=generator)

    checkpoint = with_tensors(minilm, change)
    [found] = row_findings(checkpoint, read_rows(checkpoint))
    assert (found.name, found.level) == ("untrained_rows", "look")
    assert "tested tokens of the script Cyrillic" in found.sentence


def test_noisy_rows_are_the_ones_that_were_made_noise(minilm: Checkpoint) -> None:
    generator = torch.Generator().manual_seed(1)
    made = torch.randperm(30_522, generator=generator)[:1_000]

    def change(tensors: dict[str, torch.Tensor], generator: torch.Generator) -> None:
        tensors[ROWS][made] = 0.05 * torch.randn(1_000, 384, generator=generator)

    rows = read_rows(with_tensors(minilm, change))
    expected = set(made.tolist())
    assert len(set(rows.noisy) - expected) <= 5
    tested_share = rows.tested / rows.ordinary
    assert len(set(rows.noisy) & expected) >= 0.9 * tested_share * 1_000


def test_likelihood_is_that_of_two_normal_distributions(minilm: Checkpoint) -> None:
    """Against scipy's densities, each at its likeliest scale."""
    import numpy as np
    import scipy

    E = minilm.model.get_input_embeddings().weight.detach()[2_000:3_200, :64].contiguous()
    ours = likelihood_of_noise(E)
    U = torch.nn.functional.normalize(E, dim=1).double().numpy() * 8
    moments = U.T @ U / len(U)
    for place in (0, 7, 100):
        y = U[place]
        alike = scipy.stats.multivariate_normal(cov=(y @ np.linalg.solve(moments, y) / 64) * moments).logpdf(y)
        noise = scipy.stats.multivariate_normal(cov=(y @ y / 64) * np.eye(64)).logpdf(y)
        assert float(ours[place]) == pytest.approx(noise - alike, abs=0.05)
    assert float((ours > LIKELIER).double().mean()) < 0.05
