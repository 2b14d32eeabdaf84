"""The order of layers and the number of heads, against slow references and on weights that are made for it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
import torch

from embaudit.checkpoint import Checkpoint
from embaudit.measures.integrity.blocks import read_blocks
from embaudit.measures.integrity.integrity import head_findings, spread_of_halves
from embaudit.measures.integrity.layer_order import _unit, best_order


def drifting(layers: int, count: int = 8, d: int = 200, seed: int = 0) -> list[np.ndarray]:
    """Profiles in which each layer is the one before with some noise."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        rows = [generator.normal(size=d)]
        for _ in range(layers - 1):
            rows.append(0.8 * rows[-1] + 0.6 * generator.normal(size=d))
        found.append(np.array(rows))
    return found


def slow_fit(profiles: list[np.ndarray], order: tuple[int, ...]) -> float:
    return float(np.mean([sum(np.corrcoef(one[a], one[b])[0, 1] for a, b in pairwise(order)) for one in profiles]))


def test_a_profile_is_centred_and_scaled_by_itself() -> None:
    profiles = np.array([[1.0, 2.0, 6.0], [10.0, 10.0, 40.0]])
    slow = [(row - row.mean()) / np.sqrt(((row - row.mean()) ** 2).sum()) for row in profiles]
    assert _unit(profiles) == pytest.approx(np.array(slow))


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (0, 3, 2, 1, 4), (1, 0, 2, 3, 4), (0, 2, 3, 4, 1), (3, 0, 4, 1, 2)])
def test_the_order_is_the_best_of_all(order: tuple[int, ...]) -> None:
    profiles = [rows[list(order)] for rows in drifting(5)]
    found = best_order(profiles)
    assert found is not None
    best = max(permutations(range(5)), key=lambda one: slow_fit(profiles, one))
    assert found.places in (best, best[::-1])
    assert found.gain == pytest.approx(slow_fit(profiles, best) - slow_fit(profiles, tuple(range(5))))
    assert found.is_another == (order != (0, 1, 2, 3, 4))


@pytest.mark.parametrize(
    "profiles",
    [
        [],
        drifting(3),
        drifting(6, count=4),
        [np.random.default_rng(seed).normal(size=(6, 200)) for seed in range(8)],
        [np.ones((6, 200))] * 8,
    ],
    ids=["none", "three layers", "four profiles", "layers unlike each other", "constant"],
)
def test_nothing_is_said_without_evidence(profiles: list[np.ndarray]) -> None:
    assert best_order(profiles) is None


def test_a_layer_unlike_all_others_has_no_place() -> None:
    profiles = drifting(6)
    for rows in profiles:
        rows[2] = np.random.default_rng(5).normal(size=rows.shape[1])
    found = best_order(profiles)
    assert found is not None
    assert found.given == (0, 1, 3, 4, 5)
    assert not found.is_another


@pytest.mark.parametrize(("heads", "level"), [(12, None), (6, "problem"), (1, "problem"), (24, "look")])
def test_the_number_of_heads(minilm: Checkpoint, heads: int, level: str | None) -> None:
    blocks = read_blocks(minilm.model)
    config = type(minilm.model.config)(**(minilm.model.config.to_dict() | {"num_attention_heads": heads}))
    model = type("Model", (), {"config": config})()
    found = head_findings(replace(minilm, model=model), blocks)
    assert [finding.level for finding in found] == ([level] if level else [])


def test_halves_of_one_head_are_alike() -> None:
    generator = torch.Generator().manual_seed(0)
    # Twenty heads of 16 rows, each with a size of its own.
    sizes = torch.rand(20, generator=generator).add(0.5).repeat_interleave(16)
    matrix = torch.randn(320, 64, generator=generator) * sizes[:, None]
    norms = matrix.norm(dim=1).log().double().numpy().reshape(-1, 2, 8)
    apart = [(one.mean() - other.mean()) ** 2 for one, other in norms]
    within = [half.var(ddof=1) for pair in norms for half in pair]
    found = spread_of_halves([matrix], 16)
    assert found == pytest.approx(np.mean(apart) / (2 * np.mean(within) / 8), rel=1e-4)
    assert found < 2
    larger = spread_of_halves([matrix], 32)
    assert larger is not None
    assert larger > 20
    assert spread_of_halves([matrix], 24) is None
