"""The interval of an overlap of texts that ask for their neighbours among each other."""

from __future__ import annotations

import numpy as np
import pytest

from embaudit.questions.switch.quality import in_two_roles
from embaudit.questions.switch.search import first_ten, shared
from embaudit.statistics import NORMAL
from embaudit.words.estimate import Estimate


@pytest.mark.parametrize(("texts", "dimension", "noise"), [(120, 6, 0.4), (200, 30, 0.4)])
def test_it_is_about_as_wide_as_draws_differ(texts: int, dimension: int, noise: float) -> None:
    generator, can = np.random.default_rng(0), ~np.eye(texts, dtype=bool)
    values, errors = [], []
    for _ in range(80):
        old = generator.normal(size=(texts, dimension))
        new = old + noise * generator.normal(size=old.shape)
        overlaps = shared(*(first_ten(rows @ rows.T, can) for rows in (old, new)))
        mean, half = overlaps.mean(), NORMAL * overlaps.std(ddof=1) / np.sqrt(texts)
        found = in_two_roles(Estimate(mean, mean - half, mean + half))
        assert found.high is not None
        values.append(mean)
        errors.append((found.high - mean) / NORMAL)
    ratio = np.mean(errors) / np.std(values, ddof=1)
    # 80 draws know their spread to 8 %.
    assert 0.85 < ratio < 1.3
    # By those who ask alone, it would be too short.
    assert ratio / np.sqrt(2) < 0.9


def test_it_stays_a_share() -> None:
    assert in_two_roles(Estimate(0.99, 0.98, 1.0)).high == 1.0
    assert in_two_roles(Estimate(0.5)).low is None
