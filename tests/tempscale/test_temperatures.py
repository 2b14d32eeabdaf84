"""What counts as a temperature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from embaudit.remedies.temperature import Temperatures
from embaudit.words.errors import UsageError


@pytest.mark.parametrize(
    ("tau", "table"),
    [
        (0.8, ((0.8, 0.8), (0.8, 0.8), (0.8, 0.8))),
        (1, ((1.0, 1.0), (1.0, 1.0), (1.0, 1.0))),
        (np.float64(0.5), ((0.5, 0.5), (0.5, 0.5), (0.5, 0.5))),
        (torch.tensor(0.5), ((0.5, 0.5), (0.5, 0.5), (0.5, 0.5))),
        ([0.5, 0.75, 1], ((0.5, 0.5), (0.75, 0.75), (1.0, 1.0))),
        (np.array([0.5, 0.75, 1]), ((0.5, 0.5), (0.75, 0.75), (1.0, 1.0))),
        (torch.tensor([[1, 2], [3, 4], [5, 6]]), ((1.0, 2.0), (3.0, 4.0), (5.0, 6.0))),
        (Temperatures.per_head([0.5, 0.75]), ((0.5, 0.75), (0.5, 0.75), (0.5, 0.75))),
    ],
)
def test_a_number_a_vector_or_a_table_has_a_value_for_every_layer_and_head(tau: Any, table: Any) -> None:
    assert Temperatures.of(tau).table(layers=3, heads=2) == table


@pytest.mark.parametrize("value", [0, 0.0, -0.0, -0.5, float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize(
    "shape",
    [
        lambda value: value,
        lambda value: [0.5, value],
        lambda value: [[0.5, value], [0.5, 0.5]],
        lambda value: np.array([0.5, value]),
    ],
)
def test_what_is_not_above_0_and_finite_is_refused(value: float, shape: Any) -> None:
    with pytest.raises(UsageError, match="must be a number greater than 0"):
        Temperatures.of(shape(value))


@pytest.mark.parametrize("value", ["0.8", b"0.8", True, None, {}, [0.8, "0.9"], [0.8, None], [[0.8], ["a"]], 1 + 1j])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="is not a temperature"):
        Temperatures.of(value)


@pytest.mark.parametrize("value", [[], [[]], [[0.5, 0.6], [0.5]], [[0.5], 0.5], [[[0.5]]], np.ones((2, 2, 2))])
def test_what_is_no_vector_and_no_table_is_refused(value: Any) -> None:
    with pytest.raises(UsageError):
        Temperatures.of(value)


@pytest.mark.parametrize(
    ("tau", "reason"),
    [
        ([0.5], "for 1 layer, but the checkpoint has 3"),
        ([0.5] * 4, "for 4 layers, but the checkpoint has 3"),
        ([[0.5] * 2] * 2, "for 2 layers"),
        ([[0.5] * 3] * 3, "for 3 heads, but the checkpoint has 2"),
        (Temperatures.per_head([0.5]), "for 1 heads"),
    ],
)
def test_another_number_of_layers_or_heads_is_refused(tau: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        Temperatures.of(tau).table(layers=3, heads=2)


def test_they_read_as_they_were_given() -> None:
    assert str(Temperatures.of(0.8)) == "0.8"
    assert str(Temperatures.of([0.8, 1])) == "0.8, 1 (layer by layer)"
    assert str(Temperatures.of([[0.8, 1], [1, 1]])) == "[0.8, 1], [1, 1] (layer by layer)"
    assert str(Temperatures.per_head([0.8, 1])) == "[0.8, 1]"


def test_they_read_in_full() -> None:
    assert str(Temperatures.of(1 / 3)) == "0.3333333333333333"


def test_temperatures_of_temperatures_are_the_same() -> None:
    assert Temperatures.of(Temperatures.of(0.5)).values == (0.5,)
