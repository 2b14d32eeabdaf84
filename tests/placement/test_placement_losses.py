"""Losses by strategy against plain least squares, and what the finding says of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plausible_tasks import placement_rows
from tiny import ENGLISH, tiny_bert

from embaudit.checkpoint import Encoder, LoadOptions, load_checkpoint
from embaudit.measures.placement import PlacementSettings
from embaudit.measures.placement.places import placement_losses
from embaudit.measures.placement.work import findings
from embaudit.measures.sticky.points import every_against_every

WORDS = ENGLISH.split()
TEXTS = [" ".join(WORDS[(5 * i + j * j) % len(WORDS)] for j in range(6)) for i in range(30)]


def test_losses_are_least_squares_against_one_unit(tmp_path: Path) -> None:
    encoder = Encoder(load_checkpoint(str(tiny_bert(tmp_path / "tiny")), LoadOptions(device="cpu")))
    points = every_against_every(encoder, TEXTS[:6], TEXTS[6:], u=0.99, copies=3, seed=0, groups=4)
    generator = np.random.default_rng(0)
    shape = (7, len(points.draws), points.anchors.shape[1])
    plain = encoder.encode_ids([draw.baseline for draw in points.draws])
    by_strategy = {
        name: (plain + noise * generator.normal(size=shape)).astype(np.float32)
        for name, noise in (("rotation", 0.02), ("suffix", 0.04), ("greedy", 0.1))
    }
    found = placement_losses(points, by_strategy, [0, 1], range(2, 7), resamples=100, seed=0)

    def slopes(vectors: np.ndarray) -> list[float]:
        units = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
        return [np.polyfit(points.before.ravel(), (own @ points.anchors.T).ravel(), 1)[0] for own in units]

    unit = np.median(slopes(by_strategy["rotation"])[2:])
    for name, vectors in by_strategy.items():
        expected = 1 - np.array(slopes(vectors)) / unit
        measured = found[name]
        assert [one.value for one in measured.tokens] == pytest.approx(expected[:2], abs=1e-4)
        assert measured.severe.value == pytest.approx(expected[:2].mean(), abs=1e-4)
        assert measured.ordinary.value == pytest.approx(np.median(expected[2:]), abs=1e-4)
        assert measured.severe.low is not None
        assert measured.severe.low < measured.severe.value < measured.severe.high
        if name == "rotation":
            assert measured.severe.change is None
            assert (measured.ordinary.value, measured.ordinary.low) == (0, None), "the unit is certain"
        else:
            assert measured.severe.change == pytest.approx(measured.severe.value - found["rotation"].severe.value)


@pytest.mark.parametrize(
    ("change", "low", "level"), [(0.15, 0.1, "look"), (0.15, -0.01, "ok"), (0.15, None, "ok"), (0.05, 0.04, "ok")]
)
def test_the_finding_is_of_the_worst_places(change: float, low: float | None, level: str) -> None:
    rows = placement_rows()["placement"]
    for row in rows:
        if row["strategy"] == "greedy":
            row |= {"change": change, "change_low": low, "change_high": None if low is None else 0.3}

    def read(table: str) -> list[dict[str, Any]]:
        assert table == "placement"
        return rows

    (found,) = findings(read, PlacementSettings())
    assert found.level == level
    assert "greedy search" in found.sentence
    assert "erase 0.65 of the differences between a text's similarities, against 0.50" in found.sentence
    assert found.value == change


def test_nothing_placed_says_nothing() -> None:
    assert list(findings(lambda table: [], PlacementSettings())) == []
