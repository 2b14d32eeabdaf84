"""The test of a matrix for noise, against exact figures and over kinds of noise and shapes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
import scipy
import torch
from integrity_copies import noise

from embaudit.checkpoint import Checkpoint
from embaudit.measures.integrity.blocks import read_blocks
from embaudit.measures.integrity.integrity import head_findings, spread_of_halves
from embaudit.measures.integrity.lattice import KURTOSES, can_tell, edge_of, look_at
from embaudit.measures.integrity.layer_order import _unit, best_order

SHAPES = [(32, 32), (64, 32), (32, 200), (128, 384), (384, 128), (512, 512), (1536, 384), (30_000, 128)]


def made(shape: tuple[int, ...], kind: str, std: float = 0.3, seed: int = 0) -> torch.Tensor:
    tensor = torch.empty(shape)
    noise(tensor, std, torch.Generator().manual_seed(seed), kind)
    return tensor


@pytest.mark.parametrize("kind", ["normal", "uniform", "truncated"])
@pytest.mark.parametrize("shape", SHAPES)
def test_noise_is_told(shape: tuple[int, int], kind: str) -> None:
    for seed, std in enumerate((0.02, 1.0, 37.0)):
        assert look_at(made(shape, kind, std, seed)).is_noise


@pytest.mark.parametrize(
    "initialise",
    [
        torch.nn.init.xavier_uniform_,
        torch.nn.init.xavier_normal_,
        torch.nn.init.kaiming_uniform_,
        torch.nn.init.orthogonal_,
    ],
)
def test_what_initialisers_draw_is_told(initialise: object) -> None:
    torch.manual_seed(3)
    assert look_at(initialise(torch.empty(256, 384))).is_noise  # type: ignore[operator]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_noise_in_half_precision_is_told(dtype: torch.dtype) -> None:
    assert look_at(made((384, 384), "normal").to(dtype)).is_noise


@pytest.mark.parametrize("shape", [(512, 384), (30_000, 128)])
def test_the_row_of_padding_hides_no_noise(shape: tuple[int, int]) -> None:
    W = made(shape, "normal")
    W[0] = 0
    assert look_at(W).is_noise


@pytest.mark.parametrize("value", [0.0, 0.1, -3.0])
def test_one_value_throughout_has_no_spread(value: float) -> None:
    constant = torch.full((64, 384), value)
    assert look_at(constant).std == 0
    assert not look_at(constant).is_noise


def test_a_few_rows_left_tell_nothing() -> None:
    W = made((512, 384), "normal")
    W[:-3] = 0
    look = look_at(W)
    assert look.std > 0
    assert not look.is_noise


def test_experts_and_convolutions_of_width_one_are_matrices() -> None:
    assert can_tell(made((4, 32, 64), "normal"))
    assert look_at(made((4, 32, 64), "normal")).is_noise
    assert look_at(made((64, 64, 1), "normal")).is_noise
    assert not can_tell(torch.ones(4096))
    assert not can_tell(torch.ones(2, 384))


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("a direction that stands out", lambda W: W + 2.5 * torch.outer(unit(W.shape[0], 1), unit(W.shape[1], 2)) * 12),
        ("heavy tails", lambda W: W.sign() * W.abs() ** 1.3),
        ("larger rows", lambda W: W * torch.linspace(0.7, 1.3, len(W))[:, None]),
        ("larger columns", lambda W: W * torch.linspace(0.7, 1.3, W.shape[1])),
    ],
)
def test_each_trace_of_training_alone_is_no_noise(what: str, change: object) -> None:
    W = made((384, 384), "normal", 1.0)
    assert not look_at(change(W)).is_noise  # type: ignore[operator]


def unit(n: int, seed: int) -> torch.Tensor:
    return torch.nn.functional.normalize(torch.randn(n, generator=torch.Generator().manual_seed(seed)), dim=0)


def test_figures_are_those_of_slow_references() -> None:
    W = made((200, 120), "normal", 0.5)
    look = look_at(W)
    values = W.double().numpy()
    assert look.std == pytest.approx(values.std(), rel=1e-5)
    assert look.kurtosis == pytest.approx(scipy.stats.kurtosis(values, axis=None), abs=1e-4)
    exact = np.linalg.svd(values - values.mean(), compute_uv=False)[0]
    assert look.edge is not None
    assert look.edge == pytest.approx(exact / (values.std() * (200**0.5 + 120**0.5)), rel=0.03)
    assert look.edge <= exact / (values.std() * (200**0.5 + 120**0.5)) * (1 + 1e-5)
    squares = ((values - values.mean()) / values.std()) ** 2
    assert look.rows == pytest.approx(squares.mean(1).var(ddof=1) / (squares.var() / 120), rel=1e-3)


@pytest.mark.parametrize("name", [name for name in KURTOSES if "truncated" in name])
def test_kurtosis_of_truncated_normal_distributions(name: str) -> None:
    bound = int(name[name.index("(") + 1])
    assert KURTOSES[name] == pytest.approx(float(scipy.stats.truncnorm(-bound, bound).stats("k")), abs=1e-3)


@pytest.mark.parametrize("shape", SHAPES[:-1])
def test_the_edge_bounds_noise(shape: tuple[int, int]) -> None:
    for seed in range(20):
        W = made(shape, "normal", 1.0, seed)
        assert torch.linalg.matrix_norm(W, ord=2) <= edge_of(*shape) * (shape[0] ** 0.5 + shape[1] ** 0.5)


def test_no_trained_matrix_of_the_packaged_checkpoint_is_noise(minilm: Checkpoint) -> None:
    """Its pooler, which was never trained, is."""
    noisy = [name for name, W in minilm.model.named_parameters() if can_tell(W) and look_at(W).is_noise]
    assert noisy == ["pooler.dense.weight"]


# ---- the order of layers and the number of heads, against slow references and on weights that are made for it ----


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
