"""The test of a matrix for noise, against exact figures and over kinds of noise and shapes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
import torch
from integrity_copies import noise

from embaudit.checkpoint import Checkpoint
from embaudit.measures.integrity.lattice import KURTOSES, can_tell, edge_of, look_at

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
