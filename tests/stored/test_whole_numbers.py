"""Whole numbers: a form that is fitted to an index excuses nothing that is not the checkpoint's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from embaudit.questions.vectors.forms import form_of_index

ROWS, D = 300, 96
Way = Callable[[np.ndarray], np.ndarray]


def _vectors(seed: int, rows: int = ROWS) -> np.ndarray:
    """Unit vectors with a common part, of dimensions of uneven spread; two are hardly used."""
    generator = np.random.default_rng(seed)
    spread = generator.uniform(0.5, 2.0, D)
    spread[[3, 40]] = 0.0
    rows_of = generator.normal(size=(rows, D)) * spread + 0.5 * generator.normal(size=D) * spread
    return np.asarray(rows_of / np.linalg.norm(rows_of, axis=1, keepdims=True), dtype=np.float32)


OURS, OTHER = _vectors(0), _vectors(1)
LOW, HIGH = OURS[:150].min(axis=0), OURS[:150].max(axis=0)


def _by_range(vectors: np.ndarray, low: np.ndarray, high: np.ndarray, *, wraps: bool = False) -> np.ndarray:
    """As sentence-transformers' quantize_embeddings; what is beyond the range is cut, or comes out at the other end."""
    steps = np.trunc((vectors - low) / np.where(high > low, (high - low) / 255, 1) - 128).astype(np.int64)
    return steps.astype(np.int8) if wraps else steps.clip(-128, 127).astype(np.int8)


def _least_to_most(vectors: np.ndarray) -> np.ndarray:
    least = vectors.min(axis=1, keepdims=True)
    return (vectors - least) / (vectors.max(axis=1, keepdims=True) - least) * 255


def _by_largest(vectors: np.ndarray, most: int) -> np.ndarray:
    return np.round(vectors / np.abs(vectors).max(axis=1, keepdims=True) * most).astype(np.int8)


WAYS: dict[str, Way] = {
    "times 127": lambda vectors: np.round(vectors * 127).astype(np.int8),
    "times 127, cut to whole": lambda vectors: np.trunc(vectors * 127).astype(np.int8),
    "times 1000, down": lambda vectors: np.floor(vectors * 1000).astype(np.int16),
    "largest of all": lambda vectors: np.round(vectors / np.abs(vectors).max() * 127).astype(np.int8),
    "row's largest": lambda vectors: _by_largest(vectors, 127),
    "four bits": lambda vectors: _by_largest(vectors, 7),
    "row's least to most, uint8": lambda vectors: np.round(_least_to_most(vectors)).astype(np.uint8),
    "row's least to most, int8": lambda vectors: (np.floor(_least_to_most(vectors)) - 128).astype(np.int8),
    "times 127, and 128": lambda vectors: (np.round(vectors * 127) + 128).astype(np.uint8),
    "cut at two deviations, uint8": lambda vectors: np.round((vectors + 0.2).clip(0, 0.4) / 0.4 * 255).astype(np.uint8),
    "range of each dimension": lambda vectors: _by_range(vectors, vectors.min(axis=0), vectors.max(axis=0)),
    "range of other rows": lambda vectors: _by_range(vectors, LOW, HIGH),
    "range of other rows, around": lambda vectors: _by_range(vectors, LOW, HIGH, wraps=True),
    "three values": lambda vectors: np.round(vectors / vectors.std()).clip(-1, 1).astype(np.int8),
}


def _mixed(share: float) -> np.ndarray:
    mixed = OURS.copy()
    mixed[: int(share * ROWS)] = OTHER[: int(share * ROWS)]
    return mixed


def _related(apart: float) -> np.ndarray:
    """Another function's, at this 1 − cosine of every row."""
    noise = OTHER - (OTHER * OURS).sum(axis=1, keepdims=True) * OURS
    noise /= np.linalg.norm(noise, axis=1, keepdims=True)
    return np.asarray((1 - apart) * OURS + np.sqrt(1 - (1 - apart) ** 2) * noise, dtype=np.float32)


def _foreign(stored: np.ndarray, ours: np.ndarray = OURS) -> np.ndarray:
    form = form_of_index(ours, stored)
    assert form is not None
    distances = form.distance(ours, stored)
    # Every row is compared: one that a form cannot read is no exception.
    assert np.isfinite(distances).all()
    assert form.confuses == 0
    differs = distances > form.tolerance(distances)
    # Nothing passes that is far from the checkpoint's.
    assert (distances[~differs] < 0.05).all()
    return np.asarray(differs)


@pytest.mark.parametrize("way", WAYS)
def test_rows_are_the_checkpoints_in_every_way_to_round(way: str) -> None:
    assert _foreign(WAYS[way](OURS)).mean() <= 0.01
    # As half precision leaves them.
    assert _foreign(WAYS[way](_related(3e-5))).mean() <= 0.02


@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.8])
@pytest.mark.parametrize("way", WAYS)
def test_rows_of_another_function_are_counted_in_every_way_to_round(way: str, share: float) -> None:
    foreign = _foreign(WAYS[way](_mixed(share)))
    assert foreign[: int(share * ROWS)].all()
    assert foreign[int(share * ROWS) :].mean() <= 0.02


@pytest.mark.parametrize("way", WAYS)
def test_nothing_passes_for_the_checkpoints_because_a_fit_is_poor(way: str) -> None:
    generator = np.random.default_rng(2)
    stored = WAYS[way](OURS)
    anything = generator.integers(stored.min(), int(stored.max()) + 1, stored.shape).astype(stored.dtype)
    for foreign in (WAYS[way](OTHER), np.roll(stored, 1, axis=0), generator.permutation(stored), anything):
        assert _foreign(foreign).mean() >= 0.99, way
    assert _foreign(WAYS[way](_related(0.1))).mean() >= 0.95


@pytest.mark.parametrize("rows", [12, 40])
@pytest.mark.parametrize("way", WAYS)
def test_a_few_rows_are_enough(way: str, rows: int) -> None:
    some, others = OURS[:rows], OTHER[:rows]
    assert _foreign(WAYS[way](some), some).mean() <= 0.02
    assert _foreign(WAYS[way](others), some).all()


@pytest.mark.parametrize("way", WAYS)
def test_vectors_of_another_function_are_said_to_be_far(way: str) -> None:
    """Numbers that are all positive point one way, whatever they are of: that is no nearness."""
    form = form_of_index(OURS, WAYS[way](OTHER))
    assert form is not None
    assert np.median(form.distance(OURS, WAYS[way](OTHER))) > 0.6


def test_a_form_that_takes_any_row_for_another_is_said_to() -> None:
    """Of eight bits, most rows have those of another."""
    own = OURS[:, :8]
    form = form_of_index(own, (own > 0).astype(np.int8))
    assert form is not None
    assert form.confuses > 0


def test_coarse_codes_without_signs_and_rows_without_vectors_have_a_form() -> None:
    """They are of the function's dimension: nothing else may be said."""
    codes = np.digitize(OURS, np.quantile(OURS, [0.25, 0.5, 0.75])).astype(np.uint8)
    for ours, stored in ((OURS, codes), (np.full_like(OURS, np.nan), codes), (OURS[:3], codes[:3])):
        assert form_of_index(ours, stored) is not None
    assert _foreign(np.roll(codes, 1, axis=0)).all()


def test_no_form_passes_over_a_row_that_it_cannot_read() -> None:
    """Rows at the end of the range everywhere: a correlation, or a range, has nothing to say of them."""
    stored = WAYS["range of other rows"](OURS)
    stored[:200] = 127
    form = form_of_index(OURS, stored)
    assert form is not None
    distances = form.distance(OURS, stored)
    assert np.isfinite(distances).all()
    assert (distances > form.tolerance(distances))[:200].all()


@pytest.mark.parametrize("foreign", [0, 30, 300])
def test_an_index_of_unsigned_bytes_is_told(foreign: int, tiny_index: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    import embaudit

    mixed = tiny_index.vectors.copy()
    mixed[:foreign] = tiny_index.others[:foreign]
    stored = np.round(_least_to_most(mixed)).astype(np.uint8)
    pq.write_table(pa.table({"text": tiny_index.texts, "v": list(stored)}), tmp_path / "i.parquet")
    report = embaudit.vectors(tmp_path / "i.parquet", tiny_index.folder, device="cpu", rows=600)
    assert report.verdict == ("not wholly its own" if foreign else "wholly its own")
    assert report.against is not None
    assert int(report.against.is_foreign.sum()) == foreign
