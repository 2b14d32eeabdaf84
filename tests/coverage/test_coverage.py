"""Coverage of intervals that are right, too narrow and missing, from draws; and the command on a few texts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.coverage.command import main
from benchmarks.coverage.draws import Ended, Population, coverage
from embaudit.statistics import mean_with_interval

ITEMS = np.random.default_rng(0).normal(3, 2, size=500)


def population(factor: float, size: int = 50) -> Population:
    """The mean of a draw, with Student's interval times a factor; beside it a constant, and what has no interval."""

    def figures(places: np.ndarray) -> dict[str, Ended]:
        mean, low, high = mean_with_interval(ITEMS[places])
        assert mean is not None
        assert low is not None
        assert high is not None
        ends = mean - factor * (mean - low), mean + factor * (high - mean)
        return {"mean": (mean, *ends), "constant": (1.0, 0.5, 1.5), "without": (mean, None, None)}

    return Population("normal", len(ITEMS), size, figures)


# A fifth of the items shows the finite population: uncorrected, 1.0 would be 1.12.
@pytest.mark.parametrize(("size", "factor"), [(50, 1.0), (100, 1.0), (50, 0.5), (50, 2.0)])
def test_intervals_are_measured_by_how_much_draws_differ(size: int, factor: float) -> None:
    (found,) = coverage(population(factor, size), 400, seed=1)
    assert (found.figure, found.made, found.draws) == ("normal: mean", 400, 400)
    # Student's t is a little more than 1.96, and 400 draws know their spread to 4 %.
    assert found.ratio == pytest.approx(1.02 * factor, rel=0.12)
    assert found.held == pytest.approx({0.5: 0.68, 1.0: 0.95, 2.0: 1.0}[factor], abs=0.04)


def test_the_same_seed_makes_the_same_draws() -> None:
    assert coverage(population(1), 20) == coverage(population(1), 20)
    assert coverage(population(1), 20) != coverage(population(1), 20, seed=1)


def test_each_figure_has_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(f"The {word} text of {place} short ones." for place, word in enumerate("abcdef" * 5)))
    main(["--only", "layers", "--corpus", str(texts), "--draws", "4"])
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert header == "| what | measured | target |"
    (sigma,) = (row for row in rows if "sigma_a" in row)
    assert sigma.startswith("| layers: sigma_a, 6 of them: medians (range); 4 draws of 3 of 30 |")
    assert any(row.startswith("| layers: pooled within_text_cosine; ") for row in rows)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--corpus", "nowhere.txt"], "there is no file nowhere.txt"),
        (["--only", "mercury"], "invalid choice: 'mercury'"),
    ],
)
def test_mistakes_are_told(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    assert said in capsys.readouterr().err
