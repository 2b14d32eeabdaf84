"""What share of a rise each control explains."""

from __future__ import annotations

import numpy as np
import pytest

from embaudit.measures.length.curve import BinValue, Rise, rises
from embaudit.measures.length.spans import MeanCosine, mean_cosine


def value(condition: str, low: int, mean: float | None) -> BinValue:
    return BinValue(condition, low, low + 10, low + 5.0, False, MeanCosine(9, mean, None, None))


def curve(condition: str, *means: float | None) -> list[BinValue]:
    return [value(condition, 10 * place, mean) for place, mean in enumerate(means)]


def by_name(values: list[BinValue]) -> dict[str, Rise]:
    return {rise.condition: rise for rise in rises(values)}


def test_shares_are_of_the_bins_that_both_have() -> None:
    found = by_name(
        [
            *curve("natural", 0.1, 0.2, 0.5, None),
            *curve("truncation", None, 0.1, 0.2, 0.3),
            *curve("windows", 0.2, 0.3, 0.6, 0.7),
        ]
    )
    assert found["natural"].rise == pytest.approx(0.4)
    assert (found["natural"].first_length, found["natural"].last_length) == (5, 25)
    assert found["truncation"].of_natural.value == pytest.approx(0.1 / 0.3)
    assert found["windows"].of_natural.value == pytest.approx(1.0)
    assert found["windows"].of_truncation.value == pytest.approx(0.4 / 0.2)
    assert found["natural"].of_natural.value is None
    assert found["truncation"].of_truncation.value is None
    assert found["input_embeddings"].rise is None


def test_a_curve_that_does_not_rise_explains_and_is_explained_by_nothing() -> None:
    found = by_name([*curve("natural", 0.3, 0.3), *curve("truncation", 0.3, 0.2), *curve("windows", 0.1, 0.5)])
    assert found["windows"].of_natural.value is None
    assert found["windows"].of_truncation.value is None
    assert found["truncation"].rise == pytest.approx(-0.1)
    assert by_name(curve("natural", 0.3))["natural"].rise is None
    assert by_name([])["natural"].rise is None


def test_the_interval_of_a_share_leaves_one_text_out_everywhere() -> None:
    generator = np.random.default_rng(0)
    means = np.zeros((4, 8))
    means[:, 0] = (1.0, 2.0, 1.5, 3.0)
    four = [generator.normal(size=(12, 8)) + mean for mean in means]
    names = (("truncation", 0), ("truncation", 10), ("windows", 0), ("windows", 10))
    values = [
        BinValue(condition, low, low + 10, low + 5.0, False, mean_cosine(vectors))
        for (condition, low), vectors in zip(names, four, strict=True)
    ]
    share = by_name(values)["windows"].of_truncation

    def share_of(parts: list[np.ndarray]) -> float:
        a, b, c, d = (float(mean_cosine(part).mean or 0) for part in parts)
        return (d - c) / (b - a)

    without = np.array([share_of([np.delete(part, place, axis=0) for part in four]) for place in range(12)])
    half = 1.96 * np.sqrt(11 / 12 * np.sum((without - without.mean()) ** 2))
    assert share.value == pytest.approx(share_of(four))
    assert share.low == pytest.approx(share_of(four) - half)
    assert share.high == pytest.approx(share_of(four) + half)
