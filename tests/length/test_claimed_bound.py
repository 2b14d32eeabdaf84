"""The published bound, the Gaussian study, and the benchmark that prints it."""

from __future__ import annotations

from math import exp, sqrt

import numpy as np
import pytest

from benchmarks.bound import SIGMAS, TOKENS, main, simulate
from embaudit.measures.length.heads import claimed_bound


def test_the_formula_at_a_known_place() -> None:
    assert float(claimed_bound(128, np.array(2.0))) == pytest.approx(0.211, abs=5e-4)
    assert float(claimed_bound(9, np.array(0.5))) == pytest.approx(sqrt(9 / (2 * sqrt(1 + exp(-0.5)) * 8**1.5 + 1)))


def test_a_cell_is_what_numpy_makes_of_its_matrices() -> None:
    (cell,) = simulate([1.5], [20], matrices=3, seed=7)
    generator = np.random.default_rng([7, 20, 1_500_000])
    values = []
    for _ in range(3):
        weights = np.exp(1.5 * generator.standard_normal((20, 20)))
        A = weights / weights.sum(axis=1, keepdims=True)
        values.append(np.linalg.svd(A - A.mean(axis=0))[1][0])
    assert cell.sigma_a == pytest.approx(np.mean(values))
    assert cell.sigma_a_low is not None
    assert cell.sigma_a_high is not None
    assert cell.sigma_a_high - cell.sigma_a == pytest.approx(4.302653 * np.std(values, ddof=1) / sqrt(3), rel=1e-5)
    assert cell == next(simulate([1.5], [20], matrices=3, seed=7))
    assert list(simulate([0.1, 1.5], [20], matrices=3, seed=7))[1] == cell


def test_one_matrix_has_no_interval_and_equal_logits_have_no_sigma() -> None:
    (cell,) = simulate([0.0], [8], matrices=1)
    assert cell.sigma_a == pytest.approx(0, abs=1e-12)
    assert (cell.sigma_a_low, cell.sigma_a_high, cell.holds) == (None, None, True)


@pytest.mark.parametrize(("sigmas", "tokens", "matrices"), [([-1.0], [4], 1), ([1.0], [1], 1), ([1.0], [4], 0)])
def test_what_cannot_be_simulated_is_refused(sigmas: list[float], tokens: list[int], matrices: int) -> None:
    with pytest.raises(ValueError, match="σ_s must be at least 0"):
        list(simulate(sigmas, tokens, matrices=matrices))


def test_sharp_logits_break_the_bound_and_dull_ones_do_not() -> None:
    cells = {(cell.sigma_s, cell.n): cell for cell in simulate([0.5, 2.0], [16, 128], seed=1)}
    assert [cell.holds for cell in cells.values()] == [True, True, False, False]
    assert cells[2.0, 128].sigma_a == pytest.approx(0.864, abs=0.03)


@pytest.mark.slow
def test_the_study_of_the_docs_comes_out() -> None:
    cells = list(simulate())
    assert len(cells) == len(SIGMAS) * len(TOKENS) == 64
    failed = [cell for cell in cells if not cell.holds]
    assert len(failed) == 38
    assert min(cell.sigma_s for cell in failed) == 1.0
    # Not monotone in n for sharp logits.
    sharp = [cell.sigma_a for cell in cells if cell.sigma_s == 2.0]
    assert np.any(np.diff(sharp) > 0)
    assert np.any(np.diff(sharp) < 0)


def test_the_benchmark_prints_the_study(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--sigma-s", "0.5", "2", "--tokens", "8", "32"])
    printed = capsys.readouterr().out
    assert printed.count("| holds |") == printed.count("| fails |") == 2
    assert "The bound fails in 2 of 4 cells, all with σ_s ≥ 2." in printed


@pytest.mark.parametrize("options", [["--tokens", "1"], ["--sigma-s", "-1"], ["--tokens", "x"], ["--matrices", "0"]])
def test_numbers_that_do_not_fit_are_a_usage_error(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(options)
    assert "error: " in capsys.readouterr().err
