"""Errors: which are the machine's, what is said of them, and that what code states is what it raises."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from embaudit.measures.layers.terms import RELATIVE_ERROR, exact, krylov
from embaudit.measures.socm.nuclear import Eigenvalues, Polar
from embaudit.measures.socm.summary import QUANTILE_ACCURACY, SMALLEST, QuantileSketch
from embaudit.measures.socm.tightness import sample_pairs
from embaudit.measures.sticky.evidence.shape import LEVELS, similarity_shape
from embaudit.questions.search.exact import scores_of, slack_of
from embaudit.words.errors import machine_failure


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), "The memory ran out"),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
            "The memory ran out",
        ),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "The memory ran out"),
        (MemoryError(), "The memory ran out"),
        (torch.AcceleratorError("CUDA error: unspecified launch failure"), "The device failed: CUDA error"),
        (RuntimeError("CUDA error: no CUDA-capable device is detected"), "The device failed: CUDA error"),
        (RuntimeError("HIP error: the operation cannot be performed"), "The device failed: HIP error"),
        # An id beyond the table of embeddings is the checkpoint's fault.
        (torch.AcceleratorError("CUDA error: device-side assert triggered"), ""),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ""),
        (ValueError("CUDA error: in somebody's words"), ""),
    ],
)
def test_memory_and_devices_fail_in_a_paragraph_of_their_own(error: Exception, said: str) -> None:
    outer = RuntimeError("a task failed")
    outer.__cause__ = error
    for one in (error, outer):
        failure = machine_failure(one)
        assert (failure is None) == (not said)
        if failure is not None:
            assert failure.happened.startswith(said)
            assert "run the same command again" in failure.next_step


# ---- stated ----


N = 254
# Singular values from 1 down, by what is hard about them.
SPECTRA = {
    "all alike": np.ones(N),
    "one": np.r_[1, np.zeros(N - 1)],
    "two": np.r_[1, 1, np.zeros(N - 2)],
    "falling": 1 / np.arange(1, N + 1),
    "falling to 1e-14": np.geomspace(1, 1e-14, N),
    "one above 1e-4": np.r_[1, np.full(N - 1, 1e-4)],
    "one above 1e-6": np.r_[1, np.full(N - 1, 1e-6)],
    "one above 3e-7": np.r_[1, np.full(N - 1, 3e-7)],
    "a thousandth": 1 - 1e-3 * np.linspace(0, 1, N) ** 0.3,
    "a hundredth": np.linspace(1, 0.99, N),
}


def of_spectrum(values: np.ndarray) -> np.ndarray:
    """(n + 1, n + 1) with these singular values, random vectors and columns that sum to zero."""
    generator, n = np.random.default_rng(len(values)), len(values) + 1
    left = np.linalg.qr(np.c_[np.ones(n), generator.normal(size=(n, n - 1))])[0][:, 1:]
    right = np.linalg.qr(generator.normal(size=(n, n - 1)))[0]
    return np.asarray((left * values) @ right.T)


@pytest.mark.parametrize("name", SPECTRA)
def test_nuclear_norms(name: str) -> None:
    """Eigenvalues: 1e-8 of the largest for each singular value. Polar: n·floor, and 1e-6 more in float32."""
    M, wanted = of_spectrum(SPECTRA[name])[None], SPECTRA[name].sum()
    neutral = np.eye(M.shape[2])[None]
    assert Eigenvalues(1).paired(M, neutral)[0] == pytest.approx(wanted, abs=len(M[0]) * 1e-8)
    for norms in (Polar("cpu"), Polar("cpu", is_double=False)):
        stated = len(M[0]) * norms.floor + (0 if norms.floor < 1e-6 else 1e-6)
        assert norms.paired(M, neutral)[0] == pytest.approx(wanted, rel=stated)
        # What is not below the floor is missed nowhere.
        if SPECTRA[name][-1] in (0, 1e-4):
            assert norms.paired(M, neutral)[0] == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("name", SPECTRA)
def test_sigma(name: str) -> None:
    A = torch.tensor(of_spectrum(SPECTRA[name]))[None]
    assert float(exact(A)) == pytest.approx(1, rel=1e-8)
    assert float(krylov(A.float())) == pytest.approx(1, rel=RELATIVE_ERROR)


VALUES = {
    "at edges of buckets": 1.0002 ** np.arange(-5_000, 5_000.0),
    "of any size": np.geomspace(1.001 * SMALLEST, 1e11, 10_001),
    "two": np.r_[np.full(50, 1e-3), np.full(50, 1.0)],
    "one": np.full(100, 1 / 3),
    "zeros": np.r_[np.zeros(60), np.ones(41)],
    "below what counts": np.abs(np.random.default_rng(0).normal(size=1_001)) * SMALLEST,
}


@pytest.mark.parametrize("name", VALUES)
def test_quantiles_of_socm(name: str) -> None:
    sketch = QuantileSketch()
    sketch.add(VALUES[name])
    shares = [0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1]
    found = [sketch.quantile(share) for share in shares]
    wanted = np.quantile(VALUES[name], shares)
    assert found == pytest.approx(wanted, rel=1.0001 * QUANTILE_ACCURACY, abs=4 * SMALLEST)


RANDOM = np.random.default_rng(1)
CLOUDS: dict[str, np.ndarray] = {
    "normal": RANDOM.normal(size=(200, 16)),
    "near each other": 1 + 0.1 * RANDOM.normal(size=(200, 16)),
    "nearer": 1 + 0.03 * RANDOM.normal(size=(200, 16)),
    "all but equal": 1 + 1e-3 * RANDOM.normal(size=(200, 16)),
    "equal": np.ones((60, 8)),
    "on axes": np.eye(40)[RANDOM.integers(0, 40, 200)],
    "opposite": np.r_[np.ones((30, 4)), -np.ones((30, 4))],
}


@pytest.mark.parametrize("name", CLOUDS)
def test_shape_of_similarities(name: str) -> None:
    """Quantiles to 1e-4; the distance from a Gaussian to 4e-5 of its standard deviation, or none."""
    from scipy.stats import norm

    units = CLOUDS[name] / np.linalg.norm(CLOUDS[name], axis=1, keepdims=True)
    cosines = np.sort(np.clip(units @ units.T, -1, 1)[np.triu_indices(len(units), 1)])
    shape = similarity_shape(CLOUDS[name])
    assert shape is not None
    for key, level in LEVELS.items():
        assert shape[key] == pytest.approx(np.quantile(cosines, level, method="inverted_cdf"), abs=1e-4)
    mean, sd = cosines.mean(), cosines.std()
    if sd < 1e-3:
        assert shape["gaussian_distance"] is None
        return
    below, n = norm.cdf(cosines, mean, sd), len(cosines)
    distance = max(np.abs(below - np.arange(n + 1)[end : n + end] / n).max() for end in (0, 1))
    assert shape["gaussian_distance"] == pytest.approx(distance, abs=4e-5 / sd)


@pytest.mark.parametrize("size", [2, 3, 4_097, 94_907, 20_000_003])
def test_pairs_by_their_numbers(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A root that is off by one gives a pair that is none; numbers at both ends of each j are drawn."""
    j = np.unique(np.r_[1, size // 2, size - 1].clip(1, size - 1)).astype(np.int64)
    numbers = np.unique(np.r_[j * (j - 1) // 2, j * (j - 1) // 2 + j - 1])

    class Drawn:
        def choice(self, *_: object, **__: object) -> np.ndarray:
            return numbers

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Drawn())
    first, second = sample_pairs(np.arange(size), 6, 0)
    assert np.isin(second, j).all()
    assert ((first == 0) | (first == second - 1)).all()


D = 4_096
ROWS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "normal": lambda random: random.normal(size=(60, D)),
    "all positive": lambda random: random.random((60, D)),
    "equal numbers": lambda random: np.full((60, D), 1 / 3),
    "of any size": lambda random: random.standard_cauchy((60, D)),
    "nearly orthogonal": lambda random: np.tile([1.0, -1.0], D // 2) * (1 + 1e-3 * random.normal(size=(60, D))),
    "one number of a hundred": lambda random: np.r_[100.0, np.ones(D - 1)] * (1 + 1e-3 * random.normal(size=(60, D))),
}


@pytest.mark.parametrize("metric", ["cosine", "dot", "l2"])
@pytest.mark.parametrize("name", ROWS)
def test_scores_of_an_exact_search(name: str, metric: str) -> None:
    """Scores that are equal differ by less than what counts as equal."""
    rows = ROWS[name](np.random.default_rng(2)).astype(np.float32)
    queries = np.r_[rows[:5], np.ones((1, D), np.float32)]
    precise, asked = rows.astype(np.float64), queries.astype(np.float64)
    lengths, norms = np.linalg.norm(asked, axis=1), np.linalg.norm(precise, axis=1)
    products = asked @ precise.T
    wanted = {
        "cosine": products / np.outer(lengths, norms),
        "dot": products,
        "l2": 2 * products - lengths[:, None] ** 2 - norms**2,
    }[metric]
    found = scores_of(metric, queries, rows)  # type: ignore[arg-type]
    assert (np.abs(found - wanted) <= slack_of(metric, lengths, float(norms.max()))[:, None]).all()  # type: ignore[arg-type]
